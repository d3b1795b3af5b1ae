"""Prims that make a tensor out of no tensor."""

from __future__ import annotations

from typing import Any

from thunder_ir import Device, DType, DTypeError, OpTags, ShapeError, TensorProxy
from thunder_ir.number_proxies import Dimension, Number
from thunder_prims.checks import check_device, check_dtype, check_integer, check_number, check_shape, described
from thunder_prims.prim import prim, strict

__all__ = ["empty", "full", "iota", "tensor_from_sequence"]

CREATION, CONSTANT = OpTags.CREATION, OpTags.CONSTANT_FOR_DERIVATIVE


def created(operation: str, shape: tuple[Dimension, ...], dtype: DType, device: Device) -> TensorProxy:
    """Check shape, dtype and device of a new tensor, and return it.

    Raises:
        ShapeError: a size is negative.
        DTypeError: the dtype is that of a Python number.
        TypeError: one is something else.
    """
    check_shape(operation, shape)
    check_dtype(operation, dtype)
    check_device(operation, device)
    return TensorProxy(tuple(shape), dtype, device)


@prim(CREATION, CONSTANT)
def full(shape: tuple[Dimension, ...], value: Number, dtype: DType, device: Device) -> TensorProxy:
    """Make a tensor with ``value`` everywhere.

    Args:
        shape: of the result.
        value: a number that fits the dtype.
        dtype: of the result.
        device: where the result lives.

    Raises:
        ShapeError: a size is negative.
        DTypeError: ``value`` does not fit ``dtype``.
    """
    result = created("full", shape, dtype, device)
    check_number("full", value, dtype)
    return result


@strict.method("zeros_like")
def zeros_like(a: TensorProxy) -> TensorProxy:
    """Return zeros of the shape, dtype and device of ``a``; a shorthand, no prim."""
    return full(a.shape, 0, a.dtype, a.device)


@prim(CREATION, CONSTANT)
def empty(shape: tuple[Dimension, ...], dtype: DType, device: Device) -> TensorProxy:
    """Make a tensor with uninitialised elements."""
    return created("empty", shape, dtype, device)


@prim(CREATION, CONSTANT)
def iota(length: Dimension, start: Number, step: Number, dtype: DType, device: Device) -> TensorProxy:
    """Make ``start, start + step, start + 2*step, ...``.

    Args:
        length: number of elements.
        start, step: numbers that fit the dtype.
        dtype: integer or floating-point.
        device: where the result lives.

    Returns:
        shape ``(length,)``.

    Raises:
        ShapeError: ``length`` is negative.
        DTypeError: ``dtype`` is another one, or a number does not fit it.
    """
    check_integer("iota", length, "length")
    result = created("iota", (length,), dtype, device)
    if not (dtype.is_integer or dtype.is_floating):
        raise DTypeError(f"iota of {dtype} needs an integer or floating-point dtype")
    check_number("iota", start, dtype)
    check_number("iota", step, dtype)
    return result


@prim(CREATION, CONSTANT)
def tensor_from_sequence(sequence: Any, dtype: DType, device: Device) -> TensorProxy:
    """Make a tensor of the numbers in nested sequences.

    Args:
        sequence: a number, or a list or tuple of such of equal lengths at each depth.
        dtype: of the result; the numbers fit it.
        device: where the result lives.

    Returns:
        a dimension per depth.

    Raises:
        ShapeError: the lengths differ.
        DTypeError: a number does not fit.
    """
    return created("tensor_from_sequence", _shape_of(sequence, dtype), dtype, device)


def _shape_of(sequence: Any, dtype: DType) -> tuple[int, ...]:
    if not isinstance(sequence, (tuple, list)):
        check_number("tensor_from_sequence", sequence, dtype)
        return ()
    shapes = [_shape_of(item, dtype) for item in sequence]
    if any([shape != shapes[0] for shape in shapes]):
        raise ShapeError(f"tensor_from_sequence needs items of one shape, got {described(sequence)}")
    return (len(sequence), *(shapes[0] if shapes else ()))
