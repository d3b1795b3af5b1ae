"""Choosing and blending."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors_torch.calls import as_tensor, first_tensor, is_number
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy

executor.implements(prims.where)(torch.where)


def bounds_of_one_kind(bound: BoundSymbol) -> bool:
    """Whether the bounds are all tensors or all numbers, as PyTorch wants them."""
    return len({is_number(b) for b in bound.args[1:] if b is not None}) < 2


def _clamped(a: TensorProxy, low: Any, high: Any) -> TensorProxy:
    return a.like()


def unbounded(bound: BoundSymbol) -> bool:
    """Whether there is no bound at all."""
    return bound.args[1] is None and bound.args[2] is None


executor.implements(prims.clamp, when=lambda bound: bounds_of_one_kind(bound) and not unbounded(bound))(torch.clamp)
_clamp = executor.call("torch.clamp", _clamped)


@executor.transforms(prims.clamp)
def clamp(a: TensorProxy, low: Any, high: Any) -> Any:
    if low is None and high is None:
        return a
    return _clamp(a, as_tensor(low, a), as_tensor(high, a))


def ends_are_tensors(bound: BoundSymbol) -> bool:
    """Whether what is blended are tensors."""
    return not is_number(bound.args[0]) and not is_number(bound.args[1])


def _lerped(start: TensorProxy, end: TensorProxy, weight: Any) -> TensorProxy:
    return max((t for t in (start, end, weight) if isinstance(t, TensorProxy)), key=lambda t: t.ndim).like()


executor.implements(prims.lerp, when=ends_are_tensors)(torch.lerp)
_lerp = executor.call("torch.lerp", _lerped)


@executor.transforms(prims.lerp)
def lerp(start: Any, end: Any, weight: Any) -> Any:
    like = first_tensor(start, end, weight)
    return _lerp(as_tensor(start, like), as_tensor(end, like), weight)
