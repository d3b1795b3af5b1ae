"""Elementwise prims of two operands; PyTorch wants a tensor first, and sometimes two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.calls import as_tensor, first_tensor, is_number
from thunder_executors_torch.executor import executor, torch_function
from thunder_ir import BoundSymbol, Symbol, TensorProxy


def number_first(bound: BoundSymbol) -> bool:
    """Whether the left operand is a number."""
    return is_number(bound.args[0])


def number_second(bound: BoundSymbol) -> bool:
    """Whether the right operand is a number."""
    return is_number(bound.args[1])


def two_tensors(bound: BoundSymbol) -> bool:
    """Whether both operands are tensors."""
    return isinstance(bound.args[0], TensorProxy) and isinstance(bound.args[1], TensorProxy)


def swapped(a: Any, b: Any) -> Any:
    """Put the operands in the other order."""
    return arguments(b, a)


def with_tensors(operator: Symbol) -> Callable[..., Any]:
    """Return a transform that calls ``operator`` with a tensor for each number."""

    def transform(a: Any, b: Any) -> Any:
        like = first_tensor(a, b)
        return operator(as_tensor(a, like), as_tensor(b, like))

    return transform


def like_larger(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """The metadata of the operand of more dimensions."""
    return a.like() if a.ndim >= b.ndim else b.like()


COMMUTATIVE: tuple[tuple[Symbol, Callable[..., Any]], ...] = (
    (prims.add, torch.add),
    (prims.mul, torch.mul),
    (prims.bitwise_and, torch.bitwise_and),
    (prims.bitwise_or, torch.bitwise_or),
    (prims.bitwise_xor, torch.bitwise_xor),
)
for _prim, _function in COMMUTATIVE:
    executor.calls(_function, _prim, when=number_first)(swapped)
    executor.implements(_prim)(_function)

for _prim, _function in (
    (prims.pow, torch.pow),
    (prims.remainder, torch.remainder),
    (prims.bitwise_left_shift, torch.bitwise_left_shift),
    (prims.bitwise_right_shift, torch.bitwise_right_shift),
):
    executor.implements(_prim)(_function)  # PyTorch takes a number on either side

executor.calls(torch.rsub, prims.sub, when=number_first)(swapped)
executor.implements(prims.sub)(torch.sub)

executor.implements(prims.copysign, when=lambda bound: not number_first(bound))(torch.copysign)
executor.implements(prims.fmod, when=lambda bound: not number_first(bound))(torch.fmod)
executor.implements(prims.div, when=lambda bound: not number_first(bound))(torch.div)

executor.calls(torch.clamp_min, prims.maximum, when=number_first)(swapped)
executor.implements(prims.maximum, when=number_second)(torch.clamp_min)
executor.implements(prims.maximum)(torch.maximum)
executor.calls(torch.clamp_max, prims.minimum, when=number_first)(swapped)
executor.implements(prims.minimum, when=number_second)(torch.clamp_max)
executor.implements(prims.minimum)(torch.minimum)

for _prim, _path in (
    (prims.atan2, "torch.atan2"),
    (prims.nextafter, "torch.nextafter"),
    (prims.hypot, "torch.hypot"),
    (prims.logaddexp, "torch.logaddexp"),
    (prims.logaddexp2, "torch.logaddexp2"),
    (prims.gcd, "torch.gcd"),
    (prims.lcm, "torch.lcm"),
    (prims.copysign, "torch.copysign"),
    (prims.fmod, "torch.fmod"),
    (prims.div, "torch.div"),
):
    _operator = executor.call(_path, like_larger)
    if _prim not in (prims.copysign, prims.fmod, prims.div):
        executor.implements(_prim, when=two_tensors)(torch_function(_path))
    executor.transforms(_prim)(with_tensors(_operator))


@executor.calls(torch.div, prims.floor_divide, when=lambda bound: not number_first(bound))
def floor_divide(a: Any, b: Any) -> Any:
    return arguments(a, b, rounding_mode="floor")


@executor.calls(torch.div, prims.trunc_divide, when=lambda bound: not number_first(bound))
def trunc_divide(a: Any, b: Any) -> Any:
    return arguments(a, b, rounding_mode="trunc")


def _divided(a: TensorProxy, b: TensorProxy, *, rounding_mode: str) -> TensorProxy:
    return b.like()


_rounded = executor.call("torch.div", _divided)


@executor.transforms(prims.floor_divide)
def number_floor_divide(a: Any, b: TensorProxy) -> Any:
    return _rounded(as_tensor(a, b), b, rounding_mode="floor")


@executor.transforms(prims.trunc_divide)
def number_trunc_divide(a: Any, b: TensorProxy) -> Any:
    return _rounded(as_tensor(a, b), b, rounding_mode="trunc")


executor.implements(prims.complex)(torch.complex)
