"""Making, shaping, joining and indexing arrays under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import DType, NumberProxy, TensorProxy, dtypes
from thunder_lang.numpy.language import numpy
from thunder_lang.numpy.promotion import array, as_array, dtype_of, result_type
from thunder_lang.operands import convert
from thunder_lang.promotion import default_dtype, kind_of

__all__ = [
    "arange", "asarray", "astype", "broadcast_arrays", "broadcast_to", "concat", "concatenate", "diff", "empty",
    "empty_like", "expand_dims", "eye", "flip", "full", "full_like", "linspace", "matrix_transpose", "meshgrid",
    "moveaxis", "ones", "ones_like", "permute_dims", "ravel", "repeat", "reshape", "roll", "split", "squeeze", "stack",
    "swapaxes", "take", "take_along_axis", "tile", "transpose", "tril", "triu", "unstack", "where", "zeros",
    "zeros_like",
]  # fmt: skip


def _or(dtype: Any, default: DType) -> DType:
    return default if dtype is None else dtype_of(dtype)


def asarray(obj: Any, dtype: Any = None) -> TensorProxy:
    """Make an array of numbers in nested sequences; an array is returned as it is, converted."""
    x = as_array(obj)
    return convert(x, _or(dtype, x.dtype))  # type: ignore[no-any-return]


def astype(x: TensorProxy, dtype: Any) -> TensorProxy:
    """Return ``x`` in another dtype."""
    return convert(x, dtype_of(dtype))  # type: ignore[no-any-return]


@numpy.method("astype")
def _astype(x: TensorProxy, dtype: Any) -> TensorProxy:
    return astype(x, dtype)


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> TensorProxy:
    """Make an array with one value everywhere."""
    of = _or(dtype, (dtypes.bool8, dtypes.int64, dtypes.float64, dtypes.complex128)[kind_of(fill_value)])
    return lang.full(_shape(shape), fill_value, of)


def zeros(shape: Any, dtype: Any = None) -> TensorProxy:
    """Make an array of zeros, by default ``float64``."""
    return lang.full(_shape(shape), 0, _or(dtype, dtypes.float64))


def ones(shape: Any, dtype: Any = None) -> TensorProxy:
    """Make an array of ones, by default ``float64``."""
    return lang.full(_shape(shape), 1, _or(dtype, dtypes.float64))


def empty(shape: Any, dtype: Any = None) -> TensorProxy:
    """Make an array with uninitialised elements."""
    return lang.empty(*_shape(shape), dtype=_or(dtype, dtypes.float64))


def full_like(x: TensorProxy, fill_value: Any, dtype: Any = None) -> TensorProxy:
    """Make an array of one value with the shape of ``x``."""
    return lang.full_like(x, fill_value, _or(dtype, x.dtype))


def zeros_like(x: TensorProxy, dtype: Any = None) -> TensorProxy:
    """Make zeros with the shape of ``x``."""
    return full_like(x, 0, dtype)


def ones_like(x: TensorProxy, dtype: Any = None) -> TensorProxy:
    """Make ones with the shape of ``x``."""
    return full_like(x, 1, dtype)


def empty_like(x: TensorProxy, dtype: Any = None) -> TensorProxy:
    """Make an array like ``x`` with uninitialised elements."""
    return lang.empty_like(x, _or(dtype, x.dtype))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> TensorProxy:
    """Make ``start, start + step, ...`` up to ``stop``, which is not included; empty where the step leads away."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ZeroDivisionError("arange needs a step that is not zero")
    if (stop > start) == (step < 0):
        stop = start
    with default_dtype(dtypes.float64):
        return lang.arange(start, stop, step, dtype=None if dtype is None else dtype_of(dtype))


def linspace(start: Any, stop: Any, num: int = 50, dtype: Any = None, endpoint: bool = True) -> TensorProxy:
    """Make ``num`` numbers at equal distances from ``start`` to ``stop``."""
    of = None if dtype is None else dtype_of(dtype)
    with default_dtype(dtypes.float64):
        whole = lang.linspace(start, stop, num if endpoint else num + 1, dtype=of)
    return whole if endpoint else whole[:num]


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None) -> TensorProxy:
    """Make a matrix with ones on a diagonal and zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    below, strictly = (lang.tri(n_rows, columns, offset, dtype=dtypes.bool8) for offset in (k, k - 1))
    return convert(prims.bitwise_xor(below, strictly), _or(dtype, dtypes.float64))  # type: ignore[no-any-return]


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[TensorProxy]:
    """Return for vectors the grid of their combinations."""
    return list(lang.meshgrid(*[as_array(a) for a in arrays], indexing=indexing))


def tril(x: TensorProxy, k: int = 0) -> TensorProxy:
    """Return the matrices with zeros above a diagonal."""
    return lang.tril(as_array(x), k)


def triu(x: TensorProxy, k: int = 0) -> TensorProxy:
    """Return the matrices with zeros below a diagonal."""
    return lang.triu(as_array(x), k)


def reshape(x: Any, shape: Any) -> TensorProxy:
    """Return the elements in another shape."""
    return lang.reshape(as_array(x), *_shape(shape))


def ravel(x: Any) -> TensorProxy:
    """Return the elements in one dimension."""
    return lang.ravel(as_array(x))


def permute_dims(x: Any, axes: Sequence[int]) -> TensorProxy:
    """Reorder the dimensions."""
    return lang.permute(as_array(x), *axes)


@numpy.method("transpose")
def transpose(x: Any, *axes: Any) -> TensorProxy:
    """Reorder the dimensions, or reverse their order if no order is given."""
    x = as_array(x)
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return lang.permute(x, tuple(reversed(range(x.ndim))) if order is None or order == () else tuple(order))


def matrix_transpose(x: Any) -> TensorProxy:
    """Swap the last two dimensions."""
    return lang.matrix_transpose(as_array(x))


def swapaxes(x: Any, axis1: int, axis2: int) -> TensorProxy:
    """Swap two dimensions."""
    return lang.transpose(as_array(x), axis1, axis2)


def moveaxis(x: Any, source: Any, destination: Any) -> TensorProxy:
    """Move dimensions to other places."""
    return lang.movedim(as_array(x), source, destination)


def expand_dims(x: Any, axis: Any = 0) -> TensorProxy:
    """Insert dimensions of length 1."""
    return lang.unsqueeze(as_array(x), axis)


def squeeze(x: Any, axis: Any = None) -> TensorProxy:
    """Drop dimensions of length 1.

    Raises:
        ValueError: a named one has another length.
    """
    x = as_array(x)
    for dim in lang.canonical_dims("squeeze", x.ndim, axis) if axis is not None else ():
        if x.shape[dim] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return lang.squeeze(x, axis)


def broadcast_to(x: Any, shape: Any) -> TensorProxy:
    """Repeat dimensions of length 1, and add new ones in front."""
    return lang.broadcast_to(as_array(x), _shape(shape))


def broadcast_arrays(*arrays: Any) -> tuple[TensorProxy, ...]:
    """Return the arrays broadcast to one shape."""
    return lang.broadcast_tensors(*[as_array(a) for a in arrays])


def concat(arrays: Sequence[Any], axis: int | None = 0) -> TensorProxy:
    """Join arrays along a dimension, or all their elements if none is given."""
    items = [as_array(a) for a in arrays]
    if axis is None:
        items, axis = [lang.ravel(a) for a in items], 0
    dtype = result_type(*items)
    return lang.cat([convert(a, dtype) for a in items], axis)


concatenate = concat


def stack(arrays: Sequence[Any], axis: int = 0) -> TensorProxy:
    """Join arrays of one shape along a new dimension."""
    items = [as_array(a) for a in arrays]
    dtype = result_type(*items)
    return lang.stack([convert(a, dtype) for a in items], axis)


def unstack(x: TensorProxy, axis: int = 0) -> tuple[TensorProxy, ...]:
    """Return the slices along a dimension, without it."""
    return lang.unbind(as_array(x), axis)


def split(x: TensorProxy, indices_or_sections: Any, axis: int = 0) -> list[TensorProxy]:
    """Cut into that many equal parts, or at the places given.

    Raises:
        ValueError: the parts would not be equal.
    """
    x = as_array(x)
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return list(lang.tensor_split(x, indices_or_sections, axis))


def flip(x: Any, axis: Any = None) -> TensorProxy:
    """Reverse the order of the elements along dimensions, all if none is given."""
    x = as_array(x)
    return lang.flip(x, lang.canonical_dims("flip", x.ndim, axis))


def roll(x: Any, shift: Any, axis: Any = None) -> TensorProxy:
    """Shift the elements along dimensions, those that fall out coming back on the other side."""
    x = as_array(x)
    if axis is not None and not isinstance(axis, (tuple, list)) and isinstance(shift, (tuple, list)):
        axis = (axis,) * len(shift)
    if axis is not None and isinstance(axis, (tuple, list)) and not isinstance(shift, (tuple, list)):
        shift = (shift,) * len(axis)
    return lang.roll(x, shift, axis)


def repeat(x: Any, repeats: int, axis: int | None = None) -> TensorProxy:
    """Repeat each element along a dimension."""
    return lang.repeat_interleave(as_array(x), repeats, axis)


def tile(x: Any, repetitions: Any) -> TensorProxy:
    """Repeat the whole array along dimensions."""
    x = as_array(x)
    return lang.tile(x, *_shape(repetitions))


def where(condition: Any, x1: Any, x2: Any) -> TensorProxy:
    """``x1`` where the condition is not zero, elsewhere ``x2``."""
    condition = as_array(condition)
    if not condition.dtype.is_bool:
        condition = prims.ne(condition, 0)
    dtype = result_type(array(x1), array(x2))
    x1, x2 = [convert(as_array(x), dtype) for x in (x1, x2)]
    return lang.where(condition, x1, x2)


def take(x: Any, indices: Any, axis: int | None = None) -> TensorProxy:
    """Return the elements at indices along a dimension, or of all of them if none is given."""
    return lang.take(as_array(x), convert(as_array(indices), dtypes.int64), axis)


def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> TensorProxy:
    """Return the elements at indices along a dimension, the others broadcast."""
    return lang.take_along_dim(as_array(x), as_array(indices), axis)


def diff(x: Any, n: int = 1, axis: int = -1) -> TensorProxy:
    """Return the differences of neighbours, ``n`` times."""
    x = as_array(x)
    for _ in range(n):
        length = x.shape[axis]
        later, earlier = lang.narrow(x, axis, 1, length - 1), lang.narrow(x, axis, 0, length - 1)
        x = prims.ne(later, earlier) if x.dtype.is_bool else prims.sub(later, earlier)
    return x  # type: ignore[no-any-return]


@numpy.method("getitem")
def _getitem(x: TensorProxy, key: Any) -> TensorProxy:
    """NumPy's indexing: slices may go backwards, lists are arrays, and integers beside arrays count as arrays."""
    keys = list(key) if isinstance(key, tuple) else [key]
    keys = [array(k) if isinstance(k, list) and not _all_bool(k) else k for k in keys]
    if any([isinstance(k, (TensorProxy, list)) and getattr(k, "shape", (1,)) for k in keys]):
        keys = [lang.tensor([k], dtypes.int64, x.device) if _is_integer(k) else k for k in keys]
    used = sum([_consumed(k) for k in keys])
    dim = 0
    for place, k in enumerate(keys):
        if k is ...:
            dim += x.ndim - used
        elif isinstance(k, slice) and isinstance(k.step, int) and k.step < 0:
            x, keys[place] = _turned(x, dim, k)
            dim += 1
        else:
            dim += _consumed(k)
    return lang.getitem(x, tuple(keys))


def _all_bool(key: Any) -> bool:
    return all([_all_bool(k) if isinstance(k, list) else isinstance(k, bool) for k in key]) and bool(key)


def _is_integer(key: Any) -> bool:
    return isinstance(key, (int, NumberProxy)) and not isinstance(key, bool)


def _consumed(key: Any) -> int:
    if key is None or key is ... or isinstance(key, bool):
        return 0
    depth = 1
    while isinstance(key, list) and key and isinstance(key[0], list):
        key, depth = key[0], depth + 1
    return depth


def _turned(x: TensorProxy, dim: int, key: slice) -> tuple[TensorProxy, slice]:
    """The array with a dimension turned around, and the slice that then selects what a backward one does."""
    length = int(x.shape[dim])
    places = range(*key.indices(length))
    if not places:
        return x, slice(0, 0)
    first = length - 1 - places[0]
    step = -key.step
    return lang.flip(x, dim), slice(first, first + (len(places) - 1) * step + 1, step)
