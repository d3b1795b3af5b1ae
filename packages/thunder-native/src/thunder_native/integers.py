"""Rows of arithmetic on few integers, and of checks of indices."""

from __future__ import annotations

from math import prod

import torch

from thunder_ir import BoundSymbol, TensorProxy, dtypes
from thunder_native.layout import Layout, layout
from thunder_native.schema import dispatch, dtype_word
from thunder_native.table import CannotExpress, Table, Words
from thunder_torch.convert import to_torch_dtype

MOST = 4096
"""How many elements a sum may have: one is added after the other."""

WORD = 2**63


def is_sum(bound: BoundSymbol) -> bool:
    """Whether a call of ``torch.add`` is of tensors of int64, or of one and an integer."""
    return isinstance(bound.output, TensorProxy) and bound.output.dtype is dtypes.int64


def integer_sum(table: Table, bound: BoundSymbol) -> None:
    """``a + b`` of tensors of int64, or of one and an integer.

    Raises:
        CannotExpress: they are others, or have symbolic sizes or many elements.
    """
    if len(bound.args) != 2 or bound.kwargs:
        raise CannotExpress("it has other arguments than two operands")
    a, b = bound.args if isinstance(bound.args[0], TensorProxy) else bound.args[::-1]
    shape = list(bound.output.shape)
    tensors = [v for v in (a, b) if isinstance(v, TensorProxy)]
    if not all([t.dtype is dtypes.int64 for t in tensors]) or not tensors:
        raise CannotExpress("its operands are not all int64")
    if not all([s.__class__ is int for t in (*tensors, bound.output) for s in t.shape]) or prod(shape) > MOST:
        raise CannotExpress("it has symbolic sizes, or many elements")
    if len(shape) > 1:
        raise CannotExpress("how the result lies in memory depends on how its operands do")
    number = 0
    if len(tensors) == 1:
        if b.__class__ is not int or not -WORD <= b < WORD:
            raise CannotExpress(f"{b!r} is no number of 64 bits")
        number, b = b, a
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    words = [a.name, b.name, len(tensors) - 1, number]
    out, dtype = bound.output.name, dtype_word(torch.int64)
    lies = Words(tuple(shape)), Words(tuple(strides))
    table.step("integer_sum", *words, out, dtype, len(shape), prod(shape), *lies, a.ndim, b.ndim)


def checked_indices(table: Table, bound: BoundSymbol) -> None:
    """That all elements are indices of a dimension; Python says what is wrong if not."""
    indices, _, size = bound.args
    if indices.dtype is not dtypes.int64 or indices.ndim > 1 or size.__class__ is not int:
        raise CannotExpress("its indices are no row of int64, or its size is open")
    table.step("within", indices.name, indices.ndim, size)


def index_copy(table: Table, bound: BoundSymbol) -> None:
    """Slices at indices: of a copy, or of the tensor itself."""
    out = bound.kwargs.get("out")
    if out is None:
        return dispatch(table, bound, "aten::index_copy", "")
    if out.name != bound.args[0].name:
        raise CannotExpress("it writes to another tensor than the one that it changes")
    if not _slices_written(table, bound):
        dispatch(table, bound.replace(kwargs={}), "aten::index_copy_", "")


def _slices_written(table: Table, bound: BoundSymbol) -> bool:
    """Append the step that writes slices, of which none is of the last dimension; return whether the call is that."""
    if len(bound.args) != 4:
        return False
    a, dim, index, source = bound.args
    if dim.__class__ is not int or a.dtype is not source.dtype or not 1 < a.ndim == source.ndim:
        return False
    if index.dtype is not dtypes.int64 or index.ndim > 1 or dim % a.ndim == a.ndim - 1:
        return False
    lies = layout()
    assert isinstance(lies, Layout)  # or nothing is native
    size = to_torch_dtype(a.dtype).itemsize
    words = (a.ndim, dim % a.ndim, size, index.ndim, lies.keys, lies.plain, lies.storage)
    table.step("slices_written", a.name, index.name, source.name, bound.output.name, *words)
    return True
