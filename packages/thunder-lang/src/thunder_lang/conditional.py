"""Choosing and blending, elementwise."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import DTypeError, ShapeError, TensorProxy, dtypes
from thunder_ir.dtypes import Kind
from thunder_lang.dims import need_tensor
from thunder_lang.elementwise_binary import Operand
from thunder_lang.language import core
from thunder_lang.operands import broadcast, broadcast_shapes, broadcast_to, convert, matched
from thunder_lang.promotion import kind_of, result_type

__all__ = ["clamp", "lerp", "masked_fill", "where"]


@core.method("where")
def where(condition: TensorProxy, a: Operand, b: Operand) -> TensorProxy:
    """``a`` where the condition holds, elsewhere ``b``.

    Args:
        condition: ``bool8``.
        a, b: tensors or numbers, which promote and broadcast.

    Raises:
        DTypeError: the condition is not ``bool8``.

    Source:
        ``torch.where``.
    """
    condition = need_tensor("where", condition, "the condition")
    if not condition.dtype.is_bool:
        raise DTypeError(f"where needs a condition of bool8, got {condition.type_string}")
    if isinstance(a, TensorProxy) or isinstance(b, TensorProxy):
        a, b = matched("where", a, b)
    else:
        dtype = result_type(a, b)
        a = prims.full((), a, dtype, condition.device)
    common = broadcast_shapes(*[o.shape for o in (condition, a, b) if isinstance(o, TensorProxy)])
    condition, a, b = [broadcast_to(o, common) if isinstance(o, TensorProxy) else o for o in (condition, a, b)]
    return prims.where(condition, a, b)


@core.method("masked_fill")
def masked_fill(a: TensorProxy, mask: TensorProxy, value: Any) -> TensorProxy:
    """``value`` where the mask holds, elsewhere ``a``; in the dtype of ``a``.

    Args:
        a: any dtype.
        mask: ``bool8``, which broadcasts with ``a``.
        value: a number, or a tensor without dimensions.

    Raises:
        DTypeError: the mask is not ``bool8``, or the value is complex and ``a`` is not.
        ShapeError: the value has dimensions.
    """
    a = need_tensor("masked_fill", a)
    if not need_tensor("masked_fill", mask, "the mask").dtype.is_bool:
        raise DTypeError(f"masked_fill needs a mask of bool8, got {mask.type_string}")
    if isinstance(value, TensorProxy):
        if value.shape:
            raise ShapeError(f"masked_fill takes a value without dimensions, got {value.type_string}")
        kind = value.dtype.kind
        value = convert(value, a.dtype)
    else:
        kind = kind_of(value)
        value = value if kind <= a.dtype.kind or kind is Kind.COMPLEX else dtypes.python_type(a.dtype)(value)
    if kind is Kind.COMPLEX and not a.dtype.is_complex:
        raise DTypeError(f"a complex value cannot be put into {a.type_string} without overflow")
    a, mask = broadcast(a, mask)
    value = broadcast_to(value, a.shape) if isinstance(value, TensorProxy) else value
    return prims.where(mask, value, a)


@core.method("clamp", "clip")
def clamp(a: TensorProxy, min: Operand | None = None, max: Operand | None = None) -> TensorProxy:
    """``a``, but ``min`` where it is below and ``max`` where it is above; ``max`` wins where they contradict.

    Raises:
        ShapeError: neither bound is given.

    Source:
        ``torch.clamp``.
    """
    if min is None and max is None:
        raise ShapeError("clamp needs at least one of min and max")
    operands = iter(matched("clamp", *[o for o in (a, min, max) if o is not None]))
    a = next(operands)
    low = None if min is None else next(operands)
    high = None if max is None else next(operands)
    return prims.clamp(a, low, high)


@core.method("lerp")
def lerp(start: TensorProxy, end: TensorProxy, weight: Operand) -> TensorProxy:
    """``start + weight * (end - start)``.

    Raises:
        DTypeError: the tensors are of different dtypes.
    """
    for other in (end, weight):
        if isinstance(other, TensorProxy) and other.dtype is not start.dtype and other.shape:
            raise DTypeError(f"lerp needs tensors of one dtype, got {start.type_string} and {other.type_string}")
    return prims.lerp(*matched("lerp", start, end, weight))
