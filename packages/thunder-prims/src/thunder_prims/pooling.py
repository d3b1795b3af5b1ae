"""Pooling over windows, and its backward."""

from __future__ import annotations

from typing import Any

from thunder_ir import ShapeError, TensorProxy, dtypes
from thunder_ir.proxies import Dimension
from thunder_prims.checks import NUMERIC, REAL, check_accepts
from thunder_prims.operands import check_has_shape, check_indices, check_operands
from thunder_prims.prim import prim

__all__ = [
    "adaptive_avg_pool", "adaptive_avg_pool_backward", "avg_pool", "avg_pool_backward", "max_pool", "max_pool_backward",
]  # fmt: skip

Ints = tuple[int, ...]


def _pooled(
    operation: str,
    a: TensorProxy,
    shape: tuple[Dimension, ...],
    window: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[Any, ...]:
    """Return the shape of the result for input of ``shape``; ``a`` is for messages."""
    count = len(window)
    if count < 1 or len(shape) < count or not len(stride) == len(padding) == len(dilation) == count:
        raise ShapeError(
            f"{operation} of {a.type_string} needs windows, strides, paddings and dilations of one number of trailing "
            f"dimensions, got {window}, {stride}, {padding} and {dilation}"
        )
    if (
        min(window) < 1
        or min(stride) < 1
        or min(dilation) < 1
        or any([not 0 <= 2 * p <= w for p, w in zip(padding, window, strict=True)])
    ):
        raise ShapeError(
            f"{operation} of {a.type_string} needs positive windows, strides and dilations, and paddings of at most "
            f"half a window, got {window}, {stride}, {dilation} and {padding}"
        )
    lengths = []
    for length, w, s, p, d in zip(shape[-count:], window, stride, padding, dilation, strict=True):
        spare = length + 2 * p - d * (w - 1) - 1
        result = (spare + s - 1 if ceil_mode else spare) // s + 1
        if ceil_mode and (result - 1) * s >= length + p:  # no window starts in the padding at the end
            result = result - 1
        if result < 1:
            raise ShapeError(f"{operation} of {a.type_string} with windows {window} and padding {padding} is empty")
        lengths.append(result)
    return (*shape[:-count], *lengths)


@prim(method="max_pool")
def max_pool(
    a: TensorProxy, window: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[TensorProxy, TensorProxy]:
    """Return the largest element of each window over the trailing dimensions, and where it stands.

    Args:
        a: shape ``(..., d_1, ..., d_k)``, real; for executors of shape ``(n, c, d_1, ..., d_k)``.
        window, stride, padding, dilation: ``k`` numbers each; padding is never the largest.
        ceil_mode: keep windows that reach beyond the end.

    Returns:
        The elements, shape ``(..., e_1, ..., e_k)``, and their places, ``int64``, in the flattened trailing dimensions
        of ``a``.

    Source:
        ``torch.nn.functional.max_pool2d`` with ``return_indices=True``.
    """
    check_accepts("max_pool", a, REAL)
    shape = _pooled("max_pool", a, a.shape, window, stride, padding, dilation, ceil_mode)
    return a.like(shape=shape), a.like(shape=shape, dtype=dtypes.int64)


@prim(method="max_pool_backward")
def max_pool_backward(
    dy: TensorProxy,
    a: TensorProxy,
    indices: TensorProxy,
    window: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> TensorProxy:
    """Add up ``dy`` at the places that ``max_pool`` found.

    Args:
        dy: of the shape of the elements that ``max_pool`` returned.
        a: what ``max_pool`` read; only its shape matters.
        indices: what ``max_pool`` returned.
        window, stride, padding, dilation, ceil_mode: as for ``max_pool``.

    Returns:
        The shape of ``a``.

    Source:
        ``torch.ops.aten.max_pool2d_with_indices_backward``.
    """
    check_operands("max_pool_backward", dy, a)
    check_indices("max_pool_backward", a, indices)
    shape = _pooled("max_pool_backward", a, a.shape, window, stride, padding, dilation, ceil_mode)
    check_has_shape("max_pool_backward", "the gradient of the result", dy, shape)
    check_has_shape("max_pool_backward", "indices", indices, shape)
    return dy.like(shape=a.shape)


@prim(method="avg_pool")
def avg_pool(
    a: TensorProxy,
    window: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> TensorProxy:
    """Return the average of each window over the trailing dimensions.

    Args:
        a: shape ``(..., d_1, ..., d_k)``; for executors of shape ``(n, c, d_1, ..., d_k)``.
        window, stride, padding: ``k`` numbers each; padding is zero.
        ceil_mode: keep windows that reach beyond the end.
        count_include_pad: count elements of the padding.
        divisor: of every sum, in place of the count.

    Returns:
        shape ``(..., e_1, ..., e_k)``.

    Source:
        ``torch.nn.functional.avg_pool2d``.
    """
    check_accepts("avg_pool", a, NUMERIC)
    if divisor == 0:
        raise ValueError("avg_pool cannot divide by a divisor of 0")
    return a.like(shape=_pooled("avg_pool", a, a.shape, window, stride, padding, (1,) * len(window), ceil_mode))


@prim(method="avg_pool_backward")
def avg_pool_backward(
    dy: TensorProxy,
    shape: tuple[Dimension, ...],
    window: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> TensorProxy:
    """Return the gradient of an ``a`` of ``shape`` of ``avg_pool(a, window, ...)``.

    Args:
        dy: of the shape of the result of ``avg_pool``.
        shape: of ``a``, and of the result.

    Source:
        ``torch.ops.aten.avg_pool2d_backward``.
    """
    check_accepts("avg_pool_backward", dy, NUMERIC)
    pooled = _pooled("avg_pool_backward", dy, shape, window, stride, padding, (1,) * len(window), ceil_mode)
    check_has_shape("avg_pool_backward", "the gradient of the result", dy, pooled)
    return dy.like(shape=tuple(shape))


@prim(method="adaptive_avg_pool")
def adaptive_avg_pool(a: TensorProxy, lengths: tuple[Dimension, ...]) -> TensorProxy:
    """Average the trailing dimensions down to ``lengths``.

    Args:
        a: shape ``(..., d_1, ..., d_k)``; for executors of shape ``(n, c, d_1, ..., d_k)``.
        lengths: ``k`` of them. Of ``e``, the element ``i`` averages those from ``floor(i d / e)`` to before
            ``ceil((i + 1) d / e)``.

    Source:
        ``torch.nn.functional.adaptive_avg_pool2d``.
    """
    check_accepts("adaptive_avg_pool", a, NUMERIC)
    if not 1 <= len(lengths) <= a.ndim or any([n < 0 for n in lengths]) or 0 in a.shape[-len(lengths) :]:
        raise ShapeError(f"adaptive_avg_pool of {a.type_string} cannot have the lengths {lengths}")
    return a.like(shape=(*a.shape[: -len(lengths)], *lengths))


@prim(method="adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(dy: TensorProxy, lengths: tuple[Dimension, ...]) -> TensorProxy:
    """Return the gradient of an ``a`` with ``lengths`` of trailing dimensions of ``adaptive_avg_pool``.

    Args:
        dy: of the shape of the result of ``adaptive_avg_pool``.
        lengths: of the trailing dimensions of ``a``, and of the result.
    """
    check_accepts("adaptive_avg_pool_backward", dy, NUMERIC)
    if not 1 <= len(lengths) <= dy.ndim or any([n < 1 for n in lengths]):
        raise ShapeError(f"adaptive_avg_pool_backward of {dy.type_string} cannot have the lengths {lengths}")
    return dy.like(shape=(*dy.shape[: -len(lengths)], *lengths))
