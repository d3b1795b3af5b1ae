"""Reading and writing by index."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import BoundSymbol, OpTags, TensorProxy, dtypes
from thunder_torch.convert import contiguous_strides
from thunder_torch.places import setitem as setitem_by_torch
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

FAILS = (Trait.MAY_FAIL,)
state("gather", "index_select", "scatter", "scatter_add", "take", "take_along_dim", traits=(Trait.IN_ROWS,))
state("index_reduce", "index_reduce_", "put", "put_", "scatter_reduce", "scatter_reduce_", "__setitem__", traits=FAILS)
state("nonzero_static", traits=(Trait.OTHERWISE_ON_META,))
state("_embedding_bag", "embedding_bag", "segment_reduce", "_segment_reduce", "_assert", "_assert_async", traits=FAILS)


def _by_torch(key: Any) -> bool:
    """Whether an index holds what only PyTorch can say: real tensors, arrays, masks among other indices."""
    keys = key if isinstance(key, (tuple, list)) else (key,)
    for item in keys:
        if isinstance(item, Tensor) or item.__class__.__module__ == "numpy":
            return True
        if isinstance(item, TensorProxy) and item.dtype not in (dtypes.int64, dtypes.int32):
            return True
        if isinstance(item, (tuple, list)) and _by_torch(item):
            return True
        if isinstance(item, list) or isinstance(item, (range, str)):
            return True
    return isinstance(key, list)


@torchsymbol(Tensor.__getitem__, name="getitem", tags=(OpTags.VIEW,), traits=(Trait.MAY_VIEW, *FAILS))
def getitem(a: TensorProxy, key: Any) -> Any:
    """The elements that an index selects."""
    return NotImplemented if _by_torch(key) else lang.getitem(a, key)


def fits(bound: BoundSymbol) -> bool:
    """Whether a call is an index of numbers, lists of numbers and slices, each of which fits its dimension."""
    if bound.symbol.origin is not Tensor.__getitem__ or any([p is not bound.args[0] for p in bound.inputs]):
        return False
    shape, key = bound.args[0].shape, bound.args[1]
    items = key if isinstance(key, tuple) else (key,)
    return len(items) <= len(shape) and all([_item_fits(i, d) for i, d in zip(items, shape, strict=False)])


def _item_fits(item: Any, size: Any) -> bool:
    if item.__class__ is slice:
        return all([n is None or n.__class__ is int for n in (item.start, item.stop, item.step)])
    numbers = item if item.__class__ is list else [item]
    return size.__class__ is int and all([n.__class__ is int and -size <= n < size for n in numbers])


@torchsymbol(setitem_by_torch, name="setitem", traits=(Trait.SAVES_NOTHING, *FAILS))
def setitem(a: TensorProxy, key: Any, value: Any) -> Any:
    """What ``a`` holds after ``a[key] = value``."""
    mask = isinstance(key, TensorProxy) and key.dtype.is_bool
    if isinstance(value, Tensor) or (_by_torch(key) and not mask):
        return NotImplemented
    if isinstance(value, TensorProxy) and (value.dtype is not a.dtype or (mask and _one_by_one(a, key, value))):
        return NotImplemented
    return lang.setitem(a, key, value)


def _one_by_one(a: TensorProxy, mask: TensorProxy, value: TensorProxy) -> bool:
    """Whether a value has something of its own for each place that a mask selects; how many these are, a run tells."""
    return value.ndim > a.ndim - mask.ndim and value.shape[0] != 1


@torchsymbol(torch.index_select, Tensor.index_select)
def index_select(a: TensorProxy, dim: Any, index: TensorProxy) -> Any:
    """The slices of a dimension at the places in ``index``."""
    if isinstance(dim, str) or a.ndim == 0 or index.ndim != 1 or not _are_places(index):
        return NotImplemented
    return prims.take(a, _long(index), int(dim) % a.ndim)


def _are_places(index: TensorProxy) -> bool:
    """Whether PyTorch takes a tensor for places; numbers of other dtypes would be rounded to some."""
    return index.dtype in (dtypes.int64, dtypes.int32)


def _long(index: TensorProxy) -> TensorProxy:
    return index if index.dtype is dtypes.int64 else lang.to(index, dtypes.int64)


def _scalar(*tensors: Any) -> bool:
    return any(isinstance(t, TensorProxy) and t.ndim == 0 for t in tensors)


@torchsymbol(torch.gather, Tensor.gather)
def gather(a: TensorProxy, dim: Any, index: TensorProxy, *, sparse_grad: bool = False) -> Any:
    """The elements along a dimension at the places in ``index``."""
    if isinstance(dim, str) or _scalar(a, index) or a.ndim != index.ndim or not _are_places(index):
        return NotImplemented
    return prims.gather(a, _long(index), int(dim) % a.ndim)


@torchsymbol(torch.take_along_dim, Tensor.take_along_dim)
def take_along_dim(a: TensorProxy, indices: TensorProxy, dim: int | None = None) -> Any:
    """The elements along a dimension at the places in ``indices``, counted round and round, broadcast in the others."""
    if dim is None or _scalar(a, indices) or not _are_places(indices):
        return NotImplemented
    return lang.take_along_dim(a, lang.remainder(indices, a.shape[dim]), dim)


@torchsymbol(torch.take, Tensor.take, traits=FAILS)
def take(a: TensorProxy, index: TensorProxy) -> Any:
    """The elements at places counted as if ``a`` had one dimension."""
    if a.numel == 0 or index.dtype is not dtypes.int64:
        return NotImplemented
    flat = lang.reshape(a, (a.numel,))
    return lang.reshape(lang.getitem(flat, lang.reshape(index, (index.numel,))), tuple(index.shape))


@torchsymbol(torch.scatter_add, Tensor.scatter_add)
def scatter_add(a: TensorProxy, dim: Any, index: TensorProxy, src: TensorProxy) -> Any:
    """``a`` with the elements of ``src`` added at the places in ``index``."""
    if isinstance(dim, str) or _scalar(a, index, src) or a.ndim != index.ndim or not _are_places(index):
        return NotImplemented
    return prims.scatter_add(a, _long(index), src, int(dim) % a.ndim)


@torchsymbol(torch.scatter, Tensor.scatter)
def scatter(a: TensorProxy, dim: Any, index: TensorProxy, *args: Any, **kwargs: Any) -> Any:
    """``a`` with elements replaced at the places in ``index``."""
    source = args[0] if args else kwargs.get("src", kwargs.get("value"))
    if isinstance(dim, str) or "reduce" in kwargs or len(args) > 1 or _scalar(a, index, source) or a.ndim != index.ndim:
        return NotImplemented
    if not _are_places(index):
        return NotImplemented
    if not isinstance(source, TensorProxy):
        if isinstance(source, (bool, int, float)) and not a.dtype.is_complex:
            return prims.scatter(a, _long(index), source, int(dim) % a.ndim)
        return NotImplemented
    return prims.scatter(a, _long(index), source, int(dim) % a.ndim)


def _index_writes(a: TensorProxy, dim: Any, index: TensorProxy, source: Any) -> bool:
    fits = index.ndim == 1 and _are_places(index) and a.dtype is source.dtype
    return fits and not (isinstance(dim, str) or _scalar(a, source))


@torchsymbol(torch.index_add, Tensor.index_add)
def index_add(a: TensorProxy, dim: Any, index: TensorProxy, source: TensorProxy, *, alpha: Any = 1) -> Any:
    """``a`` with slices of ``source`` added at the places in ``index``."""
    if not _index_writes(a, dim, index, source):
        return NotImplemented
    return prims.index_add(a, _long(index), source if alpha == 1 else source * alpha, int(dim) % a.ndim)


@torchsymbol(torch.index_copy, Tensor.index_copy)
def index_copy(a: TensorProxy, dim: Any, index: TensorProxy, source: TensorProxy) -> Any:
    """``a`` with slices replaced at the places in ``index``."""
    if not _index_writes(a, dim, index, source) or index.dtype is not dtypes.int64:
        return NotImplemented
    return prims.index_copy(a, index, source, int(dim) % a.ndim)


@torchsymbol(torch.index_put, Tensor.index_put)
def index_put(a: TensorProxy, indices: Any, values: TensorProxy, accumulate: bool = False) -> Any:
    """``a`` with elements replaced by, or increased by, values at an index of tensors."""
    plain = all(isinstance(i, TensorProxy) and i.dtype in (dtypes.int32, dtypes.int64) for i in indices)
    if not plain or not hasattr(lang, "index_put"):
        return NotImplemented
    return lang.index_put(a, tuple(indices), values, accumulate)


@torchsymbol(torch.index_fill, Tensor.index_fill)
def index_fill(a: TensorProxy, dim: Any, index: TensorProxy, value: Any) -> Any:
    """``a`` with slices filled with a number at the places in ``index``."""
    if isinstance(dim, str) or isinstance(value, TensorProxy) or a.ndim == 0 or index.ndim != 1:
        return NotImplemented
    if index.dtype is not dtypes.int64:
        return NotImplemented
    shape = list(a.shape)
    shape[dim] = index.shape[0]
    filled = lang.full(tuple(shape), value, a.dtype, a.device)
    return prims.index_copy(a, index, filled, int(dim) % a.ndim)


def _one_hot_meta(a: TensorProxy, num_classes: int = -1) -> Any:
    """Laid out in order, whatever the layout of the indices: PyTorch's fake kernel says otherwise."""
    shape = (*a.shape, num_classes)
    if a.dtype is not dtypes.int64 or num_classes <= 0 or any([d.__class__ is not int for d in shape]):
        return NotImplemented
    made = a.like(shape=shape)
    made.strides = contiguous_strides(shape)
    return made


@torchsymbol(F.one_hot, torch._C._nn.one_hot, tags=(OpTags.CONSTANT_FOR_DERIVATIVE,), meta=_one_hot_meta)
def one_hot(a: TensorProxy, num_classes: int = -1) -> Any:
    """Vectors of zeros with a one at each place."""
    return NotImplemented if num_classes <= 0 else prims.one_hot(a, num_classes)


__all__ = [
    "gather", "getitem", "index_add", "index_copy", "index_fill", "index_put", "index_select", "one_hot", "scatter",
    "scatter_add", "setitem", "take", "take_along_dim",
]  # fmt: skip
