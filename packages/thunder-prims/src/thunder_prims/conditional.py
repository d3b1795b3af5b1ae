"""Elementwise prims that choose or blend: where, clamp, lerp."""

from __future__ import annotations

from typing import Any

from thunder_ir import DTypeError, TensorProxy
from thunder_ir.number_proxies import Number
from thunder_prims.batching import elementwise_prim
from thunder_prims.checks import ANY, INEXACT, ORDERED, check_same, check_tensor, elementwise
from thunder_prims.derivatives import Map, derivatives

__all__ = ["clamp", "jointly_clamped_maps", "lerp", "where"]

Operand = TensorProxy | Number
Bound = Operand | None


@elementwise_prim()
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


@derivatives(where)
def where_maps(pred: TensorProxy, a: Any, b: Any, y: TensorProxy) -> tuple[None, Map, Map]:
    """``d`` where ``pred`` holds, else 0, for ``a``; the other way round for ``b``."""
    return None, lambda d: where(pred, d, 0), lambda d: where(pred, 0, d)


@elementwise_prim()
def clamp(a: TensorProxy, low: Bound, high: Bound) -> TensorProxy:
    """``a``, but ``low`` where it is below and ``high`` where it is above; ``high`` wins where ``low`` is above it.

    Args:
        a: any dtype but complex ones.
        low, high: like ``a``, or numbers, or ``None`` for no bound.
    """
    check_tensor("clamp", a)
    return elementwise("clamp", ORDERED, *[x for x in (a, low, high) if x is not None])


@derivatives(clamp)
def clamp_maps(a: TensorProxy, low: Any, high: Any, y: TensorProxy) -> tuple[Map, Map, Map]:
    """``d`` for the one of the three that is the result, both bounds belonging to ``a``; else 0."""
    return (
        lambda d: _within(a, low, high, d),
        lambda d: where(_both(a < low, None if high is None else low < high), d, 0),
        lambda d: where(a > high if low is None else (a > high) | (high < low), d, 0),
    )


Maybe = Map | None


def jointly_clamped_maps(a: TensorProxy, low: Any, high: Any, y: TensorProxy) -> tuple[Maybe, Maybe, Maybe]:
    """``d`` for what is the result, half of it for each of two tensors that are; ``a`` has none on a bound by a number.

    The rule of a host that shares gradients among equals, which it registers by ``derivatives(clamp, replace=True)``.
    Where something is NaN, all of the gradient is that of ``a``, unless it is beyond a bound.
    """
    if not isinstance(low, TensorProxy) and not isinstance(high, TensorProxy):
        inside = _both(None if low is None else a > low, None if high is None else a < high)
        return lambda d: where(inside, d, 0), None, None
    if high is None:
        return *_shared(a == low, a < low, a > low), None
    if low is None:
        own, others = _shared(a == high, a > high, a < high)
        return own, None, others
    below, above, ordered = a < low, a > high, low <= high
    at_low, at_high = (a == low) & (low < high), (a == high) & (low < high)
    return (
        lambda d: where(at_low | at_high, d / 2, where(below | above, 0, d)),
        lambda d: where(at_low, d / 2, where(below & ordered, d, 0)),
        lambda d: where(at_high, d / 2, where((above & ordered) | (low > high), d, 0)),
    )


def _shared(equal: Any, beyond: Any, within: Any) -> tuple[Map, Map]:
    """Return the maps of a tensor and of its only bound: where one is NaN, each gets all."""
    return lambda d: where(equal, d / 2, where(beyond, 0, d)), lambda d: where(equal, d / 2, where(within, 0, d))


def _within(a: TensorProxy, low: Any, high: Any, d: TensorProxy) -> TensorProxy:
    inside = _both(None if low is None else a >= low, None if high is None else a <= high)
    return d if inside is None else where(inside, d, 0)


def _both(p: Any, q: Any) -> Any:
    return q if p is None else p if q is None else p & q


@elementwise_prim()
def lerp(start: Operand, end: Operand, weight: Operand) -> TensorProxy:
    """``start + weight * (end - start)``."""
    return elementwise("lerp", INEXACT, start, end, weight)


@derivatives(lerp)
def lerp_maps(start: Any, end: Any, weight: Any, y: TensorProxy) -> tuple[Map, Map, Map]:
    """``d * (1 - weight)``, ``d * weight`` and ``d * (end - start)``."""
    return lambda d: d * (1 - weight), lambda d: d * weight, lambda d: d * (end - start)
