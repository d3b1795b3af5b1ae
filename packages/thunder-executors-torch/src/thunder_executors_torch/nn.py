"""Embeddings, padding that repeats, products by groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.calls import long
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, OpTags, TensorProxy, dtypes


def narrow(indices: TensorProxy) -> bool:
    """Whether PyTorch does not take the dtype as that of indices."""
    return indices.dtype not in (dtypes.int32, dtypes.int64)


def narrow_indices(position: int) -> Any:
    """Return a checker for integer dtypes, of a positional argument, that PyTorch does not take as indices."""

    def when(bound: BoundSymbol) -> bool:
        return narrow(bound.args[position])

    return when


@executor.transforms(prims.embedding, when=narrow_indices(0))
def embedding_of_narrow_indices(indices: TensorProxy, *rest: Any) -> Any:
    return prims.embedding(long(indices), *rest)


@executor.calls(torch.embedding, prims.embedding)
def embedding(
    indices: TensorProxy, weight: TensorProxy, padding_index: int = -1, scale_grad_by_freq: bool = False
) -> Any:
    return arguments(weight, indices)  # the rest matters to the gradient only


@executor.transforms(prims.embedding_backward, when=narrow_indices(1))
def embedding_backward_of_narrow_indices(dy: TensorProxy, indices: TensorProxy, *rest: Any) -> Any:
    return prims.embedding_backward(dy, long(indices), *rest)


LARGE = 65536
"""Elements of a weight from which on it does not matter that Python stands between kernels."""

FEW_THREADS = 2
"""Threads that add rows up together no faster than one that calls PyTorch once."""


def is_large(dy: TensorProxy, rows: Any, scale_grad_by_freq: bool) -> bool:
    """Whether the gradient of a weight on the CPU is large; each of its elements is a plain sum in its own dtype."""
    wide = dy.dtype in (dtypes.float32, dtypes.float64)
    known = isinstance(rows, int) and isinstance(dy.shape[-1], int)
    return wide and known and dy.device.type == "cpu" and not scale_grad_by_freq and rows * dy.shape[-1] >= LARGE


def rows_added(dy: torch.Tensor, indices: torch.Tensor, rows: int, padding_index: int) -> torch.Tensor:
    """Return the gradient of an embedding's weight, with the bits of PyTorch's kernel, which calls itself for each row.

    Args:
        dy: shape ``(..., k)``.
        indices: shape ``(...)``.
        rows: of the weight.
        padding_index: the row that gets none; -1 for none such.
    """
    if torch.get_num_threads() > FEW_THREADS:
        made: torch.Tensor = torch.ops.aten.embedding_dense_backward.default(dy, indices, rows, padding_index, False)
        return made
    width = dy.shape[-1]
    made = dy.new_zeros((rows, width)).index_add_(0, indices.reshape(-1), dy.reshape(indices.numel(), width))
    if padding_index >= 0:
        made[padding_index].zero_()
    return made


def _rows_added(dy: TensorProxy, indices: TensorProxy, rows: Any, padding_index: int) -> TensorProxy:
    return dy.like(shape=(rows, dy.shape[-1]))


_rows_added_operator = executor.function(rows_added, _rows_added, OpTags.NEW_MEMORY)


@executor.transforms(prims.embedding_backward, when=lambda bound: is_large(bound.args[0], bound.args[2], bound.args[4]))
def embedding_backward_of_many_rows(
    dy: TensorProxy, indices: TensorProxy, rows: int, padding_index: int, *_: Any
) -> Any:
    return _rows_added_operator(dy, indices, rows, padding_index)


executor.implements(prims.embedding_backward)(torch.ops.aten.embedding_dense_backward.default)


def _one_hot(indices: TensorProxy, classes: Any) -> TensorProxy:
    return indices.like(shape=(*indices.shape, classes))


_one_hot_operator = executor.call("torch.nn.functional.one_hot", _one_hot)


@executor.transforms(prims.one_hot)
def one_hot(indices: TensorProxy, classes: Any) -> Any:
    return _one_hot_operator(long(indices), classes)


@executor.implements(prims.extend)
def extend(a: torch.Tensor, padding: Sequence[tuple[int, int]], mode: str) -> torch.Tensor:
    for dim, (low, high) in enumerate(padding):
        if low or high:
            a = torch.index_select(a, dim, _places(a.shape[dim], low, high, mode, a.device))
    return a


@executor.implements(prims.extend_backward)
def extend_backward(dy: torch.Tensor, padding: Sequence[tuple[int, int]], mode: str) -> torch.Tensor:
    for dim, (low, high) in enumerate(padding):
        if low or high:
            length = dy.shape[dim] - low - high
            shape = [*dy.shape[:dim], length, *dy.shape[dim + 1 :]]
            dy = dy.new_zeros(shape).index_add_(dim, _places(length, low, high, mode, dy.device), dy)
    return dy


def _places(length: int, low: int, high: int, mode: str, device: torch.device) -> torch.Tensor:
    """Return for each place of a lengthened dimension the place that it repeats."""
    places = torch.arange(-low, length + high, device=device)
    if mode == "circular":
        return places % length
    if mode == "replicate":
        return places.clamp_(0, length - 1)
    return (length - 1) - ((length - 1) - places.abs()).abs()


@executor.implements(prims.grouped_mm)
def grouped_mm(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    if a.is_cuda and a.dtype is torch.bfloat16:
        return torch._grouped_mm(a, b, offs=ends.to(torch.int32))  # the only integers that its kernel takes
    stops = ends.tolist()
    parts = list(zip([0, *stops[:-1]], stops, strict=True))
    if a.ndim == b.ndim:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in parts])
    if a.ndim == 2:
        rows = [a[i:j] @ b[g] for g, (i, j) in enumerate(parts)]
        return torch.cat([*rows, a.new_zeros(a.shape[0] - stops[-1], b.shape[-1])])
    columns = [a[g] @ b[:, i:j] for g, (i, j) in enumerate(parts)]
    return torch.cat([*columns, a.new_zeros(a.shape[-2], b.shape[1] - stops[-1])], -1)


def _looked_up(weight: TensorProxy, indices: TensorProxy) -> TensorProxy:
    return weight.like(shape=(*indices.shape, weight.shape[1]))


def _dense_backward(dy: TensorProxy, indices: TensorProxy, rows: Any, padding_index: int, scale: bool) -> TensorProxy:
    return dy.like(shape=(rows, dy.shape[-1]))


_embedding_forward = executor.call("torch.embedding", _looked_up)
_embedding_backward = executor.call("torch.ops.aten.embedding_dense_backward.default", _dense_backward)


def looked_up(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> bool:
    """Whether an embedding is a mere look-up, with a dense gradient."""
    return max_norm is None and not sparse and weight.dtype.is_floating and not narrow(input)


@executor.differentiates_torch(torch.nn.functional.embedding, when=looked_up)
def functional_embedding(
    input: TensorProxy,
    weight: TensorProxy,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Save the indices."""
    rows = weight.shape[0]
    row = -1 if padding_idx is None else padding_idx if padding_idx >= 0 else rows + padding_idx

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        if is_large(dy, rows, scale_grad_by_freq):
            return None, _rows_added_operator(dy, input, rows, row)
        return None, _embedding_backward(dy, input, rows, row, scale_grad_by_freq)

    return _embedding_forward(weight, input), pullback
