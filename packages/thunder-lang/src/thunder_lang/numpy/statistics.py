"""Reducing, sorting, searching and multiplying arrays under NumPy's names."""

from __future__ import annotations

from typing import Any

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import DType, TensorProxy, dtypes
from thunder_lang.numpy.language import numpy
from thunder_lang.numpy.promotion import as_array, dtype_of, result_type
from thunder_lang.operands import convert

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "dot", "einsum", "inner", "matmul", "max", "mean", "min", "outer", "prod",
    "searchsorted", "sort", "std", "sum", "tensordot", "trace", "var", "vecdot",
]  # fmt: skip


def _alike(*operands: Any) -> Any:
    tensors = [as_array(x) for x in operands]
    dtype = result_type(*tensors)
    return [convert(x, dtype) for x in tensors]


def _wide(x: TensorProxy, dtype: Any) -> DType:
    """The dtype of a sum: small integers are added with 64 bits."""
    if dtype is not None:
        return dtype_of(dtype)
    if x.dtype.is_integer and not x.dtype.signed:
        return dtypes.uint64
    return dtypes.int64 if x.dtype.is_exact else x.dtype


def _dims(x: TensorProxy, axis: Any) -> Any:
    return tuple(range(x.ndim)) if axis is None else axis


def _whole(x: TensorProxy, axis: Any) -> bool:
    """Whether no dimension is reduced at all: NumPy takes ``()`` for none, the core language for all."""
    return isinstance(axis, tuple) and not axis


@numpy.method("sum")
def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TensorProxy:
    """Add up the elements along dimensions; integers with 64 bits."""
    x = as_array(x)
    wide = _wide(x, dtype)
    return convert(x, wide) if _whole(x, axis) else lang.sum(x, _dims(x, axis), keepdims, dtype=wide)


@numpy.method("prod")
def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TensorProxy:
    """Multiply the elements along dimensions; integers with 64 bits."""
    x = as_array(x)
    wide = _wide(x, dtype)
    return convert(x, wide) if _whole(x, axis) else lang.prod(x, _dims(x, axis), keepdims, dtype=wide)


def _floating(x: Any, dtype: Any = None) -> TensorProxy:
    x = as_array(x)
    wanted = dtype_of(dtype) if dtype is not None else (dtypes.float64 if x.dtype.is_exact else x.dtype)
    return convert(x, wanted)  # type: ignore[no-any-return]


@numpy.method("mean")
def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TensorProxy:
    """The mean along dimensions; of integers in ``float64``."""
    x = _floating(x, dtype)
    return x if _whole(x, axis) else lang.mean(x, axis, keepdims)


@numpy.method("var")
def var(x: Any, axis: Any = None, correction: float = 0, keepdims: bool = False) -> TensorProxy:
    """The variance along dimensions; of integers in ``float64``."""
    return lang.var(_floating(x), axis, keepdims, correction=correction)


@numpy.method("std")
def std(x: Any, axis: Any = None, correction: float = 0, keepdims: bool = False) -> TensorProxy:
    """The standard deviation along dimensions; of integers in ``float64``."""
    return lang.std(_floating(x), axis, keepdims, correction=correction)


def _extremum(function: Any, x: Any, axis: Any, keepdims: bool) -> TensorProxy:
    x = as_array(x)
    if _whole(x, axis):
        return x  # type: ignore[no-any-return]
    dims = lang.canonical_dims(function.__name__, x.ndim, axis)
    if [d for d in dims if x.shape[d] == 0]:
        raise ValueError("zero-size array to reduction operation which has no identity")
    return function(x, axis, keepdims)  # type: ignore[no-any-return]


@numpy.method("max")
def max(x: Any, axis: Any = None, keepdims: bool = False) -> TensorProxy:
    """The largest element along dimensions; NaN where there is one.

    Raises:
        ValueError: there are no elements.
    """
    return _extremum(lang.amax, x, axis, keepdims)


@numpy.method("min")
def min(x: Any, axis: Any = None, keepdims: bool = False) -> TensorProxy:
    """The smallest element along dimensions; NaN where there is one.

    Raises:
        ValueError: there are no elements.
    """
    return _extremum(lang.amin, x, axis, keepdims)


amax, amin = max, min


def _truth(x: Any) -> TensorProxy:
    x = as_array(x)
    return x if x.dtype.is_bool else prims.ne(x, 0)


@numpy.method("any")
def any(x: Any, axis: Any = None, keepdims: bool = False) -> TensorProxy:
    """Whether an element along dimensions is not zero."""
    return lang.any(_truth(x), axis, keepdims)


@numpy.method("all")
def all(x: Any, axis: Any = None, keepdims: bool = False) -> TensorProxy:
    """Whether no element along dimensions is zero."""
    return lang.all(_truth(x), axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> TensorProxy:
    """How many elements along dimensions are not zero."""
    return lang.sum(_truth(x), axis, keepdims)


def _place(function: Any, x: Any, axis: int | None, keepdims: bool) -> TensorProxy:
    x = as_array(x)
    if x.numel == 0 and (axis is None or x.shape[axis] == 0):
        raise ValueError(f"attempt to get {function.__name__} of an empty sequence")
    return function(x, axis, keepdims)  # type: ignore[no-any-return]


@numpy.method("argmax")
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> TensorProxy:
    """Where the largest element stands.

    Raises:
        ValueError: there are no elements.
    """
    return _place(lang.argmax, x, axis, keepdims)


@numpy.method("argmin")
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> TensorProxy:
    """Where the smallest element stands.

    Raises:
        ValueError: there are no elements.
    """
    return _place(lang.argmin, x, axis, keepdims)


def argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> TensorProxy:
    """The indices that sort along a dimension."""
    return lang.argsort(as_array(x), axis, descending, stable)


def sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> TensorProxy:
    """The elements in order along a dimension."""
    return lang.sort(as_array(x), axis, descending, stable)[0]


def searchsorted(x1: Any, x2: Any, side: str = "left") -> TensorProxy:
    """Where each element of ``x2`` would be inserted to keep ``x1`` in order.

    Raises:
        ValueError: ``side`` is neither ``"left"`` nor ``"right"``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right', got {side!r}")
    ordered, values = _alike(x1, x2)
    return lang.searchsorted(ordered, values, side == "right")


def cumulative_sum(x: Any, axis: int | None = None, dtype: Any = None) -> TensorProxy:
    """The sums of the elements up to each place, of all in one if no dimension is given."""
    x, axis = (lang.ravel(as_array(x)), 0) if axis is None else (as_array(x), axis)
    return lang.cumsum(x, axis, dtype=_wide(x, dtype))


def cumulative_prod(x: Any, axis: int | None = None, dtype: Any = None) -> TensorProxy:
    """The products of the elements up to each place, of all in one if no dimension is given."""
    x, axis = (lang.ravel(as_array(x)), 0) if axis is None else (as_array(x), axis)
    return lang.cumprod(x, axis, dtype=_wide(x, dtype))


cumsum, cumprod = cumulative_sum, cumulative_prod


@numpy.method("matmul")
def matmul(x1: Any, x2: Any) -> TensorProxy:
    """``x1 @ x2``.

    Raises:
        ValueError: the shapes do not fit.
    """
    x1, x2 = _alike(x1, x2)
    if not x1.shape or not x2.shape or x1.shape[-1] != (x2.shape[0] if x2.ndim == 1 else x2.shape[-2]):
        raise ValueError(f"matmul: shapes do not fit: {x1.type_string} and {x2.type_string}")
    return lang.matmul(x1, x2)


def dot(x1: Any, x2: Any) -> TensorProxy:
    """The product of arrays: the last dimension of the first with the last but one of the second."""
    x1, x2 = _alike(x1, x2)
    if not x1.shape or not x2.shape:
        return prims.mul(*lang.broadcast(x1, x2))
    return lang.tensordot(x1, x2, ((x1.ndim - 1,), (x2.ndim - 2 if x2.ndim > 1 else 0,)))


def inner(x1: Any, x2: Any) -> TensorProxy:
    """The sums of products over the last dimensions of both."""
    return lang.inner(*_alike(x1, x2))


def outer(x1: Any, x2: Any) -> TensorProxy:
    """The products of each element of one array with each of another."""
    x1, x2 = _alike(x1, x2)
    return lang.outer(lang.ravel(x1), lang.ravel(x2))


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> TensorProxy:
    """Sum products over dimensions of both."""
    first, second = _alike(x1, x2)
    return lang.tensordot(first, second, axes)


def vecdot(x1: Any, x2: Any, axis: int = -1) -> TensorProxy:
    """``sum(conj(x1) * x2)`` along a dimension."""
    first, second = _alike(x1, x2)
    return lang.vecdot(first, second, axis)


def trace(x: Any, offset: int = 0) -> TensorProxy:
    """The sum of a diagonal of a matrix."""
    x = as_array(x)
    return lang.sum(lang.diagonal(x, offset), -1, dtype=_wide(x, None))


def einsum(equation: str, *operands: Any) -> TensorProxy:
    """Sum products as an equation in Einstein's notation says."""
    return lang.einsum(equation, *_alike(*operands))
