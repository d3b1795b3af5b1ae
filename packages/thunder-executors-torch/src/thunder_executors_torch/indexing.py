"""Reading and writing slices at indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.calls import long
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, OpTags, TensorProxy, are_one_number, devices, dtypes


def rows_of_a_table(bound: BoundSymbol) -> bool:
    """Whether rows of a matrix are taken, which PyTorch has a kernel for."""
    a, indices, dim = bound.args
    return a.ndim == 2 and dim == 0 and indices.dtype in (dtypes.int32, dtypes.int64)


def list_of_slices(bound: BoundSymbol) -> bool:
    """Whether the indices are one list, of a dtype that PyTorch takes."""
    indices = bound.args[1]
    return indices.ndim == 1 and indices.dtype in (dtypes.int32, dtypes.int64)


executor.calls(torch.embedding, prims.take, when=rows_of_a_table)(lambda a, indices, dim: arguments(a, indices))
executor.calls(torch.index_select, prims.take, when=list_of_slices)(lambda a, indices, dim: arguments(a, dim, indices))


def _indexed(a: TensorProxy, indices: Sequence[TensorProxy | None]) -> TensorProxy:
    meta = prims.index.meta
    assert meta is not None
    found: TensorProxy = meta(a, tuple(indices))
    return found


index_by_tensors = executor.call("torch.ops.aten.index.Tensor", _indexed)


@executor.transforms(prims.take)
def take(a: TensorProxy, indices: TensorProxy, dim: int) -> Any:
    return index_by_tensors(a, [*[None] * dim, long(indices)])


@executor.transforms(prims.index)
def index(a: TensorProxy, indices: Sequence[TensorProxy | None]) -> Any:
    return index_by_tensors(a, [None if i is None else long(i) for i in indices])


def _like_first(a: TensorProxy, *rest: Any, **kwargs: Any) -> TensorProxy:
    return a.like()


_index_put = executor.call("torch.ops.aten.index_put.default", _like_first)
_index_add = executor.call("torch.index_add", _like_first)
_index_copy = executor.call("torch.index_copy", _like_first)


@executor.transforms(prims.index_put)
def index_put(a: TensorProxy, indices: Sequence[TensorProxy | None], values: TensorProxy, accumulate: bool) -> Any:
    return _index_put(a, [None if i is None else long(i) for i in indices], values, accumulate)


@executor.transforms(prims.index_add)
def index_add(a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> Any:
    return _index_add(a, dim, long(indices), values)


@executor.transforms(prims.index_copy)
def index_copy(a: TensorProxy, indices: TensorProxy, values: TensorProxy, dim: int) -> Any:
    return _index_copy(a, dim, long(indices), values)


def check_indices(indices: torch.Tensor, dim: int, size: int) -> None:
    """Raise what ``index_copy`` raises where one of the indices is none of a dimension."""
    numbers = (indices,) if indices.numel() == 1 else torch.aminmax(indices) if indices.numel() else ()
    if not all([0 <= int(i) < size for i in numbers]):
        shape = [1] * dim
        torch.zeros([*shape, size]).index_copy(dim, indices, torch.zeros([*shape, indices.numel()]))


_check_indices = executor.plain(check_indices, lambda *args: None, OpTags.DONT_DCE, OpTags.BEFORE_WRITES)


@executor.checked_by(torch.index_copy)
def _checks_of_index_copy(bound: BoundSymbol) -> list[BoundSymbol] | None:
    """Return the check of an ``index_copy`` on the CPU; on others it raises nothing that a caller could catch."""
    a, dim, indices, _ = bound.args
    if a.device.type is not devices.cpu.type:
        return []
    if a.shape[dim].__class__ is not int or bound.kwargs:
        return None
    tags = frozenset({OpTags.BEFORE_WRITES})
    return [BoundSymbol(_check_indices, (indices, dim, a.shape[dim]), {}, None, bound.location, tags)]


def _partial_dims(
    a: TensorProxy, starts: Sequence[Any], ends: Sequence[Any], strides: Sequence[int]
) -> list[tuple[int, Any, Any, int]]:
    parts = zip(range(a.ndim), starts, ends, strides, strict=True)
    return [part for part in parts if not all(map(are_one_number, part[1:], (0, a.shape[part[0]], 1)))]


def along_one(bound: BoundSymbol) -> bool:
    """Whether only part of one dimension is written."""
    a, _, *bounds = bound.args
    return len(_partial_dims(a, *bounds)) == 1


@executor.calls(torch.slice_scatter, prims.slice_scatter, when=along_one)
def slice_scatter(a: TensorProxy, values: TensorProxy, starts: Any, ends: Any, strides: Any) -> Any:
    ((dim, start, end, stride),) = _partial_dims(a, starts, ends, strides)
    return arguments(a, values, dim, start, end, stride)


@executor.implements(prims.slice_scatter)
def slice_scatter_along_several(
    a: torch.Tensor, values: torch.Tensor, starts: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> torch.Tensor:
    out = a.clone()
    out[tuple(map(slice, starts, ends, strides))] = values
    return out
