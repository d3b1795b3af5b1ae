"""Elementwise prims that choose or blend: where, clamp, lerp."""

from __future__ import annotations

from thunder_ir import DTypeError, OpTags, TensorProxy
from thunder_ir.proxies import Number
from thunder_prims.checks import ANY, INEXACT, ORDERED, check_same, check_tensor, elementwise
from thunder_prims.prim import prim

__all__ = ["clamp", "lerp", "where"]

ELEMENTWISE = OpTags.ELEMENTWISE
Operand = TensorProxy | Number


@prim(ELEMENTWISE)
def where(pred: TensorProxy, a: Operand, b: Operand) -> TensorProxy:
    """``a`` where ``pred`` holds, elsewhere ``b``.

    Args:
        pred: ``bool8``.
        a, b: tensors of the shape of ``pred`` and of one dtype; one of them may be a number.

    Raises:
        DTypeError: ``pred`` is not ``bool8``, or ``a`` and ``b`` are not of one dtype.
        ShapeError, DeviceError: the tensors do not fit together.
    """
    check_tensor("where", pred, "pred")
    if not pred.dtype.is_bool:
        raise DTypeError(f"where needs a bool8 tensor as pred, got {pred.type_string}")
    result = elementwise("where", ANY, a, b)
    check_same("where", pred, result, dtype=False)
    return result


@prim(ELEMENTWISE)
def clamp(a: TensorProxy, low: Operand | None, high: Operand | None) -> TensorProxy:
    """``a``, but ``low`` where it is below and ``high`` where it is above; ``high`` wins where ``low`` is above it.

    Args:
        a: any dtype but complex ones.
        low, high: like ``a``, or numbers, or ``None`` for no bound.
    """
    check_tensor("clamp", a)
    return elementwise("clamp", ORDERED, *[x for x in (a, low, high) if x is not None])


@prim(ELEMENTWISE)
def lerp(start: Operand, end: Operand, weight: Operand) -> TensorProxy:
    """``start + weight * (end - start)``."""
    return elementwise("lerp", INEXACT, start, end, weight)
