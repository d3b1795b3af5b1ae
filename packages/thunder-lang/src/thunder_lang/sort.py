"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import ShapeError, TensorProxy, dtypes
from thunder_lang.dims import canonical_dim, need_tensor
from thunder_lang.language import core
from thunder_lang.operands import convert
from thunder_lang.promotion import result_type
from thunder_lang.shape import reshape

__all__ = ["argsort", "searchsorted", "sort", "topk"]


def _lifted(a: TensorProxy) -> TensorProxy:
    return a if a.shape else reshape(a, (1,))


@core.method("argsort")
def argsort(a: TensorProxy, dim: int = -1, descending: bool = False, stable: bool = False) -> TensorProxy:
    """The indices that sort along a dimension, as ``int64``."""
    a = need_tensor("argsort", a)
    dim = canonical_dim("argsort", a.ndim, dim)
    found = prims.argsort(_lifted(a), dim, descending, stable)
    return found if a.shape else reshape(found, ())


@core.method("sort")
def sort(
    a: TensorProxy, dim: int = -1, descending: bool = False, stable: bool = False
) -> tuple[TensorProxy, TensorProxy]:
    """The elements in order along a dimension, and where they stood."""
    a = need_tensor("sort", a)
    dim = canonical_dim("sort", a.ndim, dim)
    values, places = prims.sort(_lifted(a), dim, descending, stable)
    return (values, places) if a.shape else (reshape(values, ()), reshape(places, ()))


@core.method("topk")
def topk(
    a: TensorProxy, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[TensorProxy, TensorProxy]:
    """The ``k`` largest (or smallest) elements along a dimension, and where they stand.

    Raises:
        ShapeError: the dimension has fewer.
    """
    a = need_tensor("topk", a)
    dim = canonical_dim("topk", a.ndim, dim)
    lifted = _lifted(a)
    if not 0 <= k <= lifted.shape[dim]:
        raise ShapeError(f"topk: selected index k out of range: {k} of {a.type_string} along dimension {dim}")
    values, places = prims.topk(lifted, k, dim, largest, sorted)
    return (values, places) if a.shape or k != 1 else (reshape(values, ()), reshape(places, ()))


def searchsorted(ordered: TensorProxy, values: Any, right: bool = False) -> TensorProxy:
    """Where each value would be inserted to keep the last dimension of ``ordered`` in order.

    Args:
        ordered: shape ``(n,)``, or leading dimensions of ``values`` with ``n`` behind.
        values: a tensor, or a number.
        right: behind equal elements rather than in front.
    """
    ordered = need_tensor("searchsorted", ordered)
    if not isinstance(values, TensorProxy):
        values = prims.full((), values, result_type(ordered, values), ordered.device)
    dtype = result_type(ordered, values)
    found = prims.searchsorted(convert(ordered, dtype), convert(values, dtype), right)
    return convert(found, dtypes.int64)  # type: ignore[no-any-return]
