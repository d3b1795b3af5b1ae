"""Operations that make tensors out of none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import thunder_prims as prims
from thunder_ir import Device, DType, NumberProxy, ShapeError, TensorProxy, devices, dtypes
from thunder_lang.dims import as_tensor, need_tensor, spread
from thunder_lang.operands import convert
from thunder_lang.promotion import get_default_dtype, kind_of

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace", "ones", "ones_like", "tensor",
    "tri", "zeros", "zeros_like",
]  # fmt: skip


def _dtype_of(value: Any) -> DType:
    """The dtype that a number has as a tensor."""
    default = get_default_dtype()
    return (dtypes.bool8, dtypes.int64, default, dtypes.complex_of(default))[kind_of(value)]


def _fitting(value: Any, dtype: DType) -> Any:
    """The number as one of the dtype's kind, as PyTorch converts it."""
    if isinstance(value, NumberProxy) or kind_of(value) <= dtype.kind:
        return value
    return dtypes.python_type(dtype)(value)


def full(
    shape: Sequence[Any], fill_value: Any, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Make a tensor with one value everywhere.

    Args:
        shape: of the result.
        fill_value: a number, or a tensor without dimensions.
        dtype: of the result; the value's if not given: ``bool8``, ``int64``, or the default floating-point dtype.
        device: where the result lives.
    """
    if isinstance(fill_value, TensorProxy):
        value = convert(fill_value, dtype if dtype is not None else fill_value.dtype)
        return as_tensor(prims.broadcast_in_dim(value, tuple(shape), ()))
    dtype = dtype if dtype is not None else _dtype_of(fill_value)
    return as_tensor(prims.full(spread((shape,)), _fitting(fill_value, dtype), dtype, device))


def zeros(*shape: Any, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Make a tensor of zeros, by default in the default floating-point dtype."""
    return full(spread(shape), 0, dtype if dtype is not None else get_default_dtype(), device)


def ones(*shape: Any, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Make a tensor of ones, by default in the default floating-point dtype."""
    return full(spread(shape), 1, dtype if dtype is not None else get_default_dtype(), device)


def empty(*shape: Any, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Make a tensor with uninitialised elements."""
    return as_tensor(prims.empty(spread(shape), dtype if dtype is not None else get_default_dtype(), device))


def full_like(a: TensorProxy, fill_value: Any, dtype: DType | None = None, device: Device | None = None) -> TensorProxy:
    """Make a tensor of one value with the shape of ``a``, and its dtype and device if not given."""
    a = need_tensor("full_like", a)
    return full(
        a.shape, fill_value, dtype if dtype is not None else a.dtype, device if device is not None else a.device
    )


def zeros_like(a: TensorProxy, dtype: DType | None = None, device: Device | None = None) -> TensorProxy:
    """Make zeros with the shape of ``a``, and its dtype and device if not given."""
    return full_like(a, 0, dtype, device)


def ones_like(a: TensorProxy, dtype: DType | None = None, device: Device | None = None) -> TensorProxy:
    """Make ones with the shape of ``a``, and its dtype and device if not given."""
    return full_like(a, 1, dtype, device)


def empty_like(a: TensorProxy, dtype: DType | None = None, device: Device | None = None) -> TensorProxy:
    """Make a tensor like ``a`` with uninitialised elements."""
    a = need_tensor("empty_like", a)
    made = prims.empty(a.shape, dtype if dtype is not None else a.dtype, device if device is not None else a.device)
    return as_tensor(made)


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Make ``start, start + step, ...`` up to ``end``, which is not included.

    Args:
        start, end, step: numbers; with one number, it is the end and the start is 0.
        dtype: of the result; ``int64`` for integers, else the default floating-point dtype.
        device: where the result lives.

    Raises:
        ShapeError: ``step`` is zero, or leads away from ``end``.

    Source:
        ``torch.arange``.
    """
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ShapeError("arange needs a step that is not zero")
    if (end > start and step < 0) or (end < start and step > 0):
        raise ShapeError(f"arange from {start} to {end}: the bounds are inconsistent with the sign of step {step}")
    whole = all([kind_of(n) <= dtypes.Kind.INTEGER for n in (start, end, step)])
    if dtype is None:
        dtype = dtypes.int64 if whole else get_default_dtype()
    length = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if dtype.is_integer and not whole:
        start, step = int(start), int(step)
    return as_tensor(prims.iota(length, start, step, dtype, device))


def linspace(
    start: Any, end: Any, steps: int, *, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Make ``steps`` numbers at equal distances from ``start`` to ``end``, both included.

    Raises:
        ShapeError: ``steps`` is negative.

    Source:
        ``torch.linspace``.
    """
    if steps < 0:
        raise ShapeError(f"linspace needs a number of steps that is not negative, got {steps}")
    default = get_default_dtype()
    if dtype is None:
        dtype = dtypes.complex_of(default) if isinstance(start, complex) or isinstance(end, complex) else default
    work = dtype if dtype.is_inexact else default
    if steps < 2:
        return full((steps,), start, dtype, device)
    count = prims.iota(steps, 0, 1, dtypes.int64, device)
    step = (end - start) / (steps - 1)
    rising = prims.add(prims.mul(convert(count, work), step), start)
    left = prims.sub(steps - 1, count)
    falling = prims.sub(end, prims.mul(convert(left, work), step))  # exact at the end, as the other at the start
    return as_tensor(convert(prims.where(prims.lt(count, steps // 2), rising, falling), dtype))


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Make ``base`` to the power of what :func:`linspace` makes."""
    exponents = linspace(start, end, steps, dtype=dtype, device=device)
    return as_tensor(prims.pow(float(base), exponents))


def tri(
    n: int, m: int | None = None, diagonal: int = 0, *, dtype: DType | None = None, device: Device = devices.cpu
) -> TensorProxy:
    """Make a matrix with ones on a diagonal and below, and zeros above."""
    columns = n if m is None else m
    row, column = _row_and_column(n, columns, diagonal, device)
    return as_tensor(convert(prims.le(column, row), dtype if dtype is not None else get_default_dtype()))


def eye(n: int, m: int | None = None, *, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Make a matrix with ones on the diagonal and zeros elsewhere."""
    columns = n if m is None else m
    row, column = _row_and_column(n, columns, 0, device)
    return as_tensor(convert(prims.eq(column, row), dtype if dtype is not None else get_default_dtype()))


def _row_and_column(n: int, m: int, offset: int, device: Device) -> tuple[TensorProxy, TensorProxy]:
    if n < 0 or m < 0:
        raise ShapeError(f"a matrix needs numbers of rows and columns that are not negative, got {n} and {m}")
    row = prims.broadcast_in_dim(prims.iota(n, offset, 1, dtypes.int64, device), (n, m), (0,))
    column = prims.broadcast_in_dim(prims.iota(m, 0, 1, dtypes.int64, device), (n, m), (1,))
    return row, column


def tensor(data: Any, dtype: DType | None = None, device: Device = devices.cpu) -> TensorProxy:
    """Make a tensor of numbers in nested sequences; a tensor is returned as it is, converted.

    Args:
        data: a number, or a list or tuple of such of equal lengths at each depth.
        dtype: of the result; the highest of the numbers' if not given.
        device: where the result lives.
    """
    if isinstance(data, TensorProxy):
        return as_tensor(convert(data, dtype if dtype is not None else data.dtype))
    if not isinstance(data, (tuple, list)):
        return full((), data, dtype, device)
    numbers = list(_numbers(data))
    if dtype is None:
        dtype = max([_dtype_of(n) for n in numbers], key=lambda d: d.kind) if numbers else get_default_dtype()
    return as_tensor(prims.tensor_from_sequence(_converted(data, dtype), dtype, device))


def _numbers(data: Any) -> Any:
    for item in data:
        if isinstance(item, (tuple, list)):
            yield from _numbers(item)
        else:
            yield item


def _converted(data: Any, dtype: DType) -> Any:
    if isinstance(data, (tuple, list)):
        return [_converted(item, dtype) for item in data]
    return _fitting(data, dtype)
