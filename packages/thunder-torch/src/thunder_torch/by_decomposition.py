"""Metadata of PyTorch's operations by their decompositions, where these say all that PyTorch would.

PyTorch's mode for fake tensors goes through much Python code for each operation. The result of an elementwise
operation, a reduction or a product of tensors without gaps has none either, so that its sizes and its dtype say all of
it. How a kernel lays out what it makes of other tensors PyTorch is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_ir import OpTags, TensorProxy
from thunder_torch.convert import contiguous_strides
from thunder_torch.specs import TensorSpec, tensors_of
from thunder_torch.views import view_argument

KINDS = frozenset({OpTags.ELEMENTWISE, OpTags.REDUCTION, OpTags.MATMUL})


def told_by(
    decomposed: Callable[..., Any], origin: Callable[..., Any], traits: frozenset[OpTags]
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
    """Return what tells the specifications of the results of an operation; ``None`` if PyTorch is always asked.

    Args:
        decomposed: returns the proxies that the decomposition makes of its arguments, and records nothing.
        origin: PyTorch's function.
        traits: of the operation.
    """
    if traits.isdisjoint(KINDS) or OpTags.RANDOM in traits or view_argument(origin) is not None:
        return None
    product = OpTags.MATMUL in traits

    def told(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = tensors_of(args, kwargs)
        if not _alike(tensors) or any([v is True for v in (*args, *kwargs.values())]):  # which may be ``inplace``
            return None
        if product and not all([t.device.type == "cpu" and t.dtype.is_inexact for t in tensors]):
            return None
        try:
            output = decomposed(*args, **kwargs)
        except Exception:  # as PyTorch may know it, and else says it in the right words
            return None
        return _specified(output, tensors)

    return told


def _alike(tensors: list[Any]) -> bool:
    """Whether tensors are on one device, and laid out in order in the only way that can be."""
    if not tensors or any([t.__class__ is not TensorProxy for t in tensors]):
        return False
    device = tensors[0].device
    return device.type != "meta" and all([t.device == device and _without_gaps(t) for t in tensors])


def _without_gaps(tensor: TensorProxy) -> bool:
    shape: Any = tuple(tensor.shape)
    if tensor.strides is not None and tuple(tensor.strides) != contiguous_strides(shape):
        return False
    return len(shape) < 3 or 1 not in shape[1:]  # else it could be taken for an image with its channels last


def _specified(output: Any, given: list[Any]) -> Any:
    if output.__class__ is not TensorProxy or any([output is t for t in given]):
        return None
    shape: Any = tuple(output.shape)
    known = all([t.strides is not None for t in given])
    tracked = torch.is_grad_enabled() and output.dtype.is_inexact and any([t.requires_grad for t in given])
    strides = contiguous_strides(shape) if known else None
    return TensorSpec(shape, output.dtype, output.device, tracked, strides, None, None)


__all__ = ["told_by"]
