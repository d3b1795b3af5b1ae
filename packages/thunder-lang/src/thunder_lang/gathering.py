"""Functions that read and write along one dimension, at indices that a tensor holds."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import DimensionError, DTypeError, ShapeError, TensorProxy, dtypes
from thunder_lang.dims import as_tensor, canonical_dim, need_tensor
from thunder_lang.language import core
from thunder_lang.operands import broadcast_shapes, broadcast_to, convert

__all__ = [
    "gather", "index_add", "index_copy", "index_select", "scatter", "scatter_add", "take_along_dim",
]  # fmt: skip


def _index_tensor(operation: str, indices: Any) -> TensorProxy:
    index = need_tensor(operation, indices, "the indices")
    if not index.dtype.is_integer:
        raise DTypeError(f"{operation} needs indices of an integer dtype, got {index.type_string}")
    return index


@core.method("index_select")
def index_select(a: TensorProxy, dim: int, index: TensorProxy) -> TensorProxy:
    """Return the slices at ``index``, which is not negative, along a dimension.

    Raises:
        DimensionError: ``index`` has more than one dimension.
    """
    a, index = need_tensor("index_select", a), _index_tensor("index_select", index)
    if index.ndim > 1:
        raise DimensionError(f"index_select needs a vector of indices, got {index.type_string}")
    if not a.shape:
        return a
    dim = canonical_dim("index_select", a.ndim, dim)
    vector = index if index.shape else prims.broadcast_in_dim(index, (1,), ())
    return as_tensor(prims.take(a, vector, dim))


def source_like(operation: str, a: TensorProxy, source: Any) -> TensorProxy:
    source = need_tensor(operation, source, "the source")
    if source.dtype is not a.dtype:
        raise DTypeError(f"{operation} needs tensors of one dtype, got {a.type_string} and {source.type_string}")
    return as_tensor(source)


@core.method("index_add")
def index_add(a: TensorProxy, dim: int, index: TensorProxy, source: TensorProxy, *, alpha: Any = 1) -> TensorProxy:
    """Return ``a`` with slices of ``alpha * source`` added at ``index``, repeatedly where an index repeats."""
    dim = canonical_dim("index_add", a.ndim, dim)
    source = source_like("index_add", a, source)
    source = source if alpha == 1 else as_tensor(prims.mul(source, alpha))
    return as_tensor(prims.index_add(a, _index_tensor("index_add", index), source, dim))


@core.method("index_copy")
def index_copy(a: TensorProxy, dim: int, index: TensorProxy, source: TensorProxy) -> TensorProxy:
    """Return ``a`` with slices replaced by those of ``source`` at ``index``."""
    dim = canonical_dim("index_copy", a.ndim, dim)
    return as_tensor(prims.index_copy(a, _index_tensor("index_copy", index), source_like("index_copy", a, source), dim))


@core.method("gather")
def gather(a: TensorProxy, dim: int, index: TensorProxy) -> TensorProxy:
    """Return for each place of ``index`` the element of ``a`` there, but at that index along ``dim``."""
    a, index = need_tensor("gather", a), _index_tensor("gather", index)
    return as_tensor(prims.gather(a, index, canonical_dim("gather", a.ndim, dim)))


@core.method("scatter")
def scatter(a: TensorProxy, dim: int, index: TensorProxy, src: Any) -> TensorProxy:
    """Return ``a`` with the elements that :func:`gather` reads replaced by those of ``src``, or by one number."""
    a, index = need_tensor("scatter", a), _index_tensor("scatter", index)
    source = source_like("scatter", a, src) if isinstance(src, TensorProxy) else src
    return as_tensor(prims.scatter(a, index, source, canonical_dim("scatter", a.ndim, dim)))


@core.method("scatter_add")
def scatter_add(a: TensorProxy, dim: int, index: TensorProxy, src: TensorProxy) -> TensorProxy:
    """Return ``a`` with those of ``src`` added to the elements that :func:`gather` reads."""
    a, index = need_tensor("scatter_add", a), _index_tensor("scatter_add", index)
    return as_tensor(
        prims.scatter_add(a, index, source_like("scatter_add", a, src), canonical_dim("scatter_add", a.ndim, dim))
    )


@core.method("take_along_dim")
def take_along_dim(a: TensorProxy, indices: TensorProxy, dim: int | None = None) -> TensorProxy:
    """Return the elements at ``indices`` along a dimension, the others broadcast; of all in one if none is given."""
    a, indices = need_tensor("take_along_dim", a), _index_tensor("take_along_dim", indices)
    if dim is None:
        a, indices, dim = prims.reshape(a, (a.numel,)), prims.reshape(indices, (indices.numel,)), 0
    if a.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_dim needs as many dimensions of each, got {a.type_string} and {indices.type_string}"
        )
    dim = canonical_dim("take_along_dim", a.ndim, dim)
    rest = broadcast_shapes(*[(*t.shape[:dim], 1, *t.shape[dim + 1 :]) for t in (a, indices)])
    a, indices = (broadcast_to(t, (*rest[:dim], t.shape[dim], *rest[dim + 1 :])) for t in (a, indices))
    return as_tensor(prims.take_along_axis(a, convert(indices, dtypes.int64), dim))
