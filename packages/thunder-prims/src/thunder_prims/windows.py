"""The prim that takes windows out of a tensor."""

from __future__ import annotations

from typing import Any

from thunder_autograd import Pullback, vjp_rule
from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_ir.number_proxies import Dimension
from thunder_prims.checks import check_dim, check_integer, windows_in
from thunder_prims.creation import iota, zeros_like
from thunder_prims.derivatives import linear
from thunder_prims.indexing import index_add
from thunder_prims.prim import prim
from thunder_prims.shape import batch_first, broadcast_in_dim, reshape, transpose
from thunder_vmap import batching_rule

__all__ = ["unfold"]


@prim(OpTags.SHAPE_OP, OpTags.VIEW)
def unfold(a: TensorProxy, dim: int, size: int, step: int) -> TensorProxy:
    """Take all windows along a dimension.

    Args:
        a: shape ``(..., d, ...)``, any dtype.
        dim: of ``d``.
        size: elements per window, at most ``d``.
        step: elements between the starts of two windows.

    Returns:
        shape ``(..., (d - size) // step + 1, ..., size)``, dtype of ``a``.

    Raises:
        ShapeError: ``size`` is negative or more than ``d``, or ``step`` is not positive.
        DimensionError: ``dim`` is no dimension of ``a``.

    Source:
        ``torch.Tensor.unfold``.
    """
    check_dim("unfold", a, dim)
    check_integer("unfold", size, "size")
    check_integer("unfold", step, "step")
    length = a.shape[dim]
    if step < 1 or not (0 <= size and size <= length):
        raise ShapeError(
            f"unfold of {a.type_string} along {dim} needs a size in 0..{length} and a positive step, "
            f"got {size} and {step}"
        )
    windows = windows_in(length, size, step)
    return a.like(shape=(*a.shape[:dim], windows, *a.shape[dim + 1 :], size))


@vjp_rule(unfold)
def unfold_vjp(a: TensorProxy, dim: int, size: int, step: int) -> tuple[TensorProxy, Pullback]:
    """Each element gets the sum of ``dy`` over the windows that it is in."""
    y = unfold(a, dim, size, step)

    def pullback(dy: TensorProxy) -> TensorProxy:
        windows = y.shape[dim]
        last = dy.ndim - 1
        order = (*range(dim + 1), last, *range(dim + 1, last))  # each window's elements behind the windows
        values = reshape(transpose(dy, order), (*a.shape[:dim], windows * size, *a.shape[dim + 1 :]))
        starts = broadcast_in_dim(iota(windows, 0, step, dtypes.int64, a.device), (windows, size), (0,))
        within = broadcast_in_dim(iota(size, 0, 1, dtypes.int64, a.device), (windows, size), (1,))
        places = reshape(starts + within, (windows * size,))
        return index_add(zeros_like(a), places, values, dim)

    return y, pullback


linear(unfold)


@batching_rule(unfold)
def unfold_batching(extent: Dimension, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension is one more in front."""
    (a, dim, size, step), (batch, *_) = args, dims
    return unfold(batch_first(a, batch, extent), dim + 1, size, step), 0
