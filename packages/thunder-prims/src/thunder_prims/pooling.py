"""Pooling over windows, and its backward."""

from __future__ import annotations

import math
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import ShapeError, Symbol, TensorProxy, dtypes
from thunder_ir.number_proxies import Dimension
from thunder_prims.checks import NUMERIC, REAL, check_accepts, windows_in
from thunder_prims.derivatives import linear
from thunder_prims.gathering import gather
from thunder_prims.operands import check_has_shape, check_indices, check_operands
from thunder_prims.prim import prim
from thunder_prims.shape import batch_first, reshape
from thunder_vmap import batching_rule

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
        padded = length + 2 * p
        result = windows_in(padded + s - 1 if ceil_mode else padded, d * (w - 1) + 1, s)
        if ceil_mode and (result - 1) * s >= length + p:  # no window starts in the padding at the end
            result = result - 1
        if result < 1:
            raise ShapeError(f"{operation} of {a.type_string} with windows {window} and padding {padding} is empty")
        lengths.append(result)
    return (*shape[:-count], *lengths)


@prim()
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


def _flattened(a: Any, count: int) -> Any:
    """Return ``a`` with its last ``count`` dimensions in one."""
    return reshape(a, (*a.shape[:-count], math.prod(a.shape[-count:])))


def _at_places(a: Any, indices: TensorProxy, count: int) -> Any:
    """Return the elements of ``a`` at places in its last ``count`` dimensions, flattened."""
    flat = _flattened(indices, count)
    return reshape(gather(_flattened(a, count), flat, flat.ndim - 1), indices.shape)


@vjp_rule(max_pool)
def max_pool_vjp(a: TensorProxy, *windows: Any) -> tuple[Any, Pullback]:
    """Each of ``dy`` is added where its value stood."""
    y, indices = max_pool(a, *windows)
    return (y, indices), lambda dy, _: max_pool_backward(dy, a, indices, *windows)


@jvp_rule(max_pool)
def max_pool_jvp(a: TensorProxy, *windows_and_tangents: Any) -> tuple[Any, Any]:
    """``da`` from where each value stood."""
    *windows, da = windows_and_tangents[:6]
    y, indices = max_pool(a, *windows)
    return (y, indices), (_at_places(da, indices, len(windows[0])), None)


@prim()
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


@vjp_rule(max_pool_backward)
def max_pool_backward_vjp(dy: Any, a: Any, indices: Any, *windows: Any) -> tuple[TensorProxy, Pullback]:
    """What ``dy`` became is taken from where it was added; of ``a`` only the shape mattered."""
    count = len(windows[0])
    return max_pool_backward(dy, a, indices, *windows), lambda dda: _at_places(dda, indices, count)


@jvp_rule(max_pool_backward)
def max_pool_backward_jvp(dy: Any, a: Any, indices: Any, *windows_and_tangents: Any) -> tuple[TensorProxy, Any]:
    """The tangent of ``dy`` goes the way of ``dy``; of ``a`` only the shape matters."""
    *windows, ddy = windows_and_tangents[:6]
    y = max_pool_backward(dy, a, indices, *windows)
    return y, None if ddy is None else max_pool_backward(ddy, a, indices, *windows)


@prim()
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


@vjp_rule(avg_pool)
def avg_pool_vjp(a: TensorProxy, *windows: Any) -> tuple[TensorProxy, Pullback]:
    """Each of ``dy`` in equal parts to its window."""
    return avg_pool(a, *windows), lambda dy: avg_pool_backward(dy, a.shape, *windows)


@prim()
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


@vjp_rule(avg_pool_backward)
def avg_pool_backward_vjp(dy: TensorProxy, shape: Any, *windows: Any) -> tuple[TensorProxy, Pullback]:
    """The transpose of the transpose is the average."""
    return avg_pool_backward(dy, shape, *windows), lambda da: avg_pool(da, *windows)


@prim()
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


@vjp_rule(adaptive_avg_pool)
def adaptive_avg_pool_vjp(a: TensorProxy, lengths: Any) -> tuple[TensorProxy, Pullback]:
    """Each of ``dy`` in equal parts to its window."""
    return adaptive_avg_pool(a, lengths), lambda dy: adaptive_avg_pool_backward(dy, a.shape[-len(lengths) :])


@prim()
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


@vjp_rule(adaptive_avg_pool_backward)
def adaptive_avg_pool_backward_vjp(dy: TensorProxy, lengths: Any) -> tuple[TensorProxy, Pullback]:
    """The transpose of the transpose is the average."""
    y = adaptive_avg_pool_backward(dy, lengths)
    return y, lambda da: adaptive_avg_pool(da, dy.shape[-len(lengths) :])


linear(avg_pool, avg_pool_backward, adaptive_avg_pool, adaptive_avg_pool_backward)


def _batches_pooling(*symbols: Symbol) -> None:
    """Give pooling its batching rule: the batch joins the first of the leading dimensions, so that there stay as many.

    The leading arguments that are tensors are batched alike; where the shape of one is a parameter, it grows as well.
    """

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            joined = [
                _joined(batch_first(a, d, size)) if isinstance(a, TensorProxy) else a
                for a, d in zip(args, dims, strict=True)
            ]
            if symbol is avg_pool_backward:
                shape = args[1]
                joined[1] = (size * shape[0], *shape[1:])
            output = symbol(*joined)
            if isinstance(output, tuple):
                return tuple([_parted(o, size) for o in output]), (0,) * len(output)
            return _parted(output, size), 0

    for symbol in symbols:
        register(symbol)


def _joined(a: Any) -> Any:
    return reshape(a, (a.shape[0] * a.shape[1], *a.shape[2:]))


def _parted(a: Any, size: Any) -> Any:
    return reshape(a, (size, a.shape[0] // size, *a.shape[1:]))


_batches_pooling(
    max_pool, max_pool_backward, avg_pool, avg_pool_backward, adaptive_avg_pool, adaptive_avg_pool_backward
)  # fmt: skip
