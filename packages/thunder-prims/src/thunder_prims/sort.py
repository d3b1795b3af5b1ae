"""Prims that order elements and search in ordered ones."""

from __future__ import annotations

import math
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_prims.axes import filled, shifted
from thunder_prims.checks import ORDERED, check_accepts, check_dim
from thunder_prims.gathering import gather, scatter
from thunder_prims.operands import check_has_shape, check_operands, replaced
from thunder_prims.prim import prim
from thunder_prims.scan import batches_along
from thunder_prims.shape import batch_first, reshape
from thunder_vmap import batching_rule

__all__ = ["argsort", "searchsorted", "sort", "topk"]


@prim(OpTags.CONSTANT_FOR_DERIVATIVE)
def argsort(a: TensorProxy, dim: int, descending: bool, stable: bool) -> TensorProxy:
    """Return the places that would sort ``a`` along ``dim``, ``int64``; arguments as for ``sort``."""
    check_accepts("argsort", a, ORDERED)
    check_dim("argsort", a, dim)
    return a.like(dtype=dtypes.int64)


@prim()
def sort(a: TensorProxy, dim: int, descending: bool, stable: bool) -> tuple[TensorProxy, TensorProxy]:
    """Sort ``a`` along ``dim``.

    Args:
        a: real.
        dim: a dimension of ``a``.
        descending: largest first. NaN counts as the largest.
        stable: whether equal elements must keep their order.

    Returns:
        The elements in order, and where each stood, ``int64``; both of the shape of ``a``.
    """
    check_accepts("sort", a, ORDERED)
    check_dim("sort", a, dim)
    return a.like(), a.like(dtype=dtypes.int64)


@vjp_rule(sort)
def sort_vjp(a: TensorProxy, dim: int, descending: bool, stable: bool) -> tuple[Any, Pullback]:
    """Each of ``dy`` to where its value stood."""
    y, indices = sort(a, dim, descending, stable)
    return (y, indices), lambda dy, _: scatter(filled(dy, 0), indices, dy, dim)


@jvp_rule(sort)
def sort_jvp(a: Any, dim: int, descending: bool, stable: bool, da: Any, *_: None) -> tuple[Any, Any]:
    """``da`` from where each value stood."""
    y, indices = sort(a, dim, descending, stable)
    return (y, indices), (gather(da, indices, dim), None)


batches_along(argsort, sort)


@prim()
def topk(a: TensorProxy, k: int, dim: int, largest: bool, sorted: bool) -> tuple[TensorProxy, TensorProxy]:
    """Return the ``k`` largest or smallest elements along ``dim``, and where they stand.

    Args:
        a: real.
        k: how many, at most the length of ``dim``.
        dim: a dimension of ``a``.
        largest: the largest ones; the smallest ones if false.
        sorted: whether they must come in order.

    Returns:
        The elements, and their places, ``int64``; both of the shape of ``a`` with ``k`` at ``dim``.
    """
    check_accepts("topk", a, ORDERED)
    check_dim("topk", a, dim)
    if not 0 <= k <= a.shape[dim]:
        raise ShapeError(f"topk of {a.type_string} along dimension {dim} needs k in 0..{a.shape[dim]}, got {k}")
    shape = replaced(a.shape, dim, k)
    return a.like(shape=shape), a.like(shape=shape, dtype=dtypes.int64)


@vjp_rule(topk)
def topk_vjp(a: TensorProxy, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Any, Pullback]:
    """Each of ``dy`` to where its value stood."""
    y, indices = topk(a, k, dim, largest, sorted)
    return (y, indices), lambda dy, _: scatter(filled(dy, 0, a.shape), indices, dy, dim)


@jvp_rule(topk)
def topk_jvp(a: Any, k: int, dim: int, largest: bool, sorted: bool, da: Any, *_: None) -> tuple[Any, Any]:
    """``da`` from where each value stood."""
    y, indices = topk(a, k, dim, largest, sorted)
    return (y, indices), (gather(da, indices, dim), None)


@batching_rule(topk)
def topk_batching(size: Any, args: Any, dims: Any) -> tuple[Any, tuple[int, int]]:
    """The batch dimension stays in place."""
    (a, k, dim, *rest), (batch, *_) = args, dims
    return topk(a, k, shifted(dim, batch), *rest), (batch, batch)


@prim(OpTags.CONSTANT_FOR_DERIVATIVE)
def searchsorted(ordered: TensorProxy, values: TensorProxy, right: bool) -> TensorProxy:
    """Return where in ``ordered`` each of ``values`` belongs.

    Args:
        ordered: shape ``(n,)`` for ``values`` of any shape, or ``(..., n)`` for ``values`` of shape ``(..., k)``.
        values: of the same dtype.
        right: behind equal elements; in front of them if false.

    Returns:
        The shape of ``values``, ``int64``, each in ``0..n``.
    """
    check_accepts("searchsorted", ordered, ORDERED)
    check_operands("searchsorted", ordered, values)
    if ordered.ndim == 0:
        raise ShapeError(f"searchsorted needs a sequence to search in, got {ordered.type_string}")
    if ordered.ndim > 1:
        check_has_shape("searchsorted", "values", values, (*ordered.shape[:-1], *values.shape[-1:]))
    return values.like(dtype=dtypes.int64)


@batching_rule(searchsorted)
def searchsorted_batching(size: Any, args: Any, dims: Any) -> tuple[Any, int]:
    """One sequence for all stays one; a sequence for each example takes the example's values flattened."""
    (ordered, values, right), (of_ordered, of_values, _) = args, dims
    if of_ordered is None and ordered.ndim == 1:
        return searchsorted(ordered, values, right), of_values
    ordered, values = batch_first(ordered, of_ordered, size), batch_first(values, of_values, size)
    if ordered.ndim > 2:
        return searchsorted(ordered, values, right), 0
    found = searchsorted(ordered, reshape(values, (size, math.prod(values.shape[1:]))), right)
    return reshape(found, values.shape), 0
