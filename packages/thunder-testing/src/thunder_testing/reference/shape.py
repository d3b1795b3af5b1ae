"""Reference of the prims that move elements, and of those that make tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import thunder_prims as prims
from thunder_testing.reference.machine import numpy_dtype, reference

_FUNCTIONS: dict[Any, Any] = {
    prims.transpose: np.transpose, prims.reshape: np.reshape, prims.view: np.reshape, prims.squeeze: np.squeeze,
    prims.flip: np.flip, prims.cat: np.concatenate,
}  # fmt: skip

for _symbol, _function in _FUNCTIONS.items():
    reference(_symbol)(_function)


@reference(prims.broadcast_in_dim)
def broadcast_in_dim(a: Any, shape: Any, dims: Any) -> Any:
    """Dimensions of length 1 where ``a`` has none, then a broadcast."""
    lengths = [1] * len(shape)
    for length, dim in zip(a.shape, dims, strict=True):
        lengths[dim] = length
    return np.broadcast_to(np.reshape(a, lengths), shape)


@reference(prims.slice)
def slice_(a: Any, starts: Any, ends: Any, strides: Any = None) -> Any:
    """A slice per dimension."""
    return a[tuple(map(slice, starts, ends, strides or (1,) * a.ndim))]


@reference(prims.slice_scatter)
def slice_scatter(a: Any, values: Any, starts: Any, ends: Any, strides: Any) -> Any:
    """A copy, written to."""
    a = np.array(a)
    a[tuple([slice(*s) for s in zip(starts, ends, strides, strict=True)])] = values
    return a


@reference(prims.pad)
def pad(a: Any, value: Any, config: Any) -> Any:
    """Room for all, of which negative sizes cut off a part."""
    interior = [c[2] for c in config]
    inner = [n + max(0, n - 1) * i for n, i in zip(a.shape, interior, strict=True)]
    whole = [n + max(0, low) + max(0, high) for n, (low, high, _) in zip(inner, config, strict=True)]
    result = np.full(whole, value, a.dtype)
    steps = zip(config, inner, interior, strict=True)
    result[tuple([slice(max(0, low), max(0, low) + n, i + 1) for (low, _, _), n, i in steps])] = a
    cuts = zip(config, whole, strict=True)
    return result[tuple([slice(max(0, -low), n - max(0, -high)) for (low, high, _), n in cuts])]


@reference(prims.unfold)
def unfold(a: Any, dim: int, size: int, step: int) -> Any:
    """NumPy's windows, every ``step``-th of them."""
    if a.ndim == 0:
        return np.reshape(a, (1,))[:size]
    windows = np.lib.stride_tricks.sliding_window_view(a, size, dim)
    return windows[(*[slice(None)] * dim, slice(None, None, step))]


@reference(prims.full)
def full(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    """One value everywhere."""
    return np.full(shape, value, numpy_dtype(dtype))


@reference(prims.empty)
def empty(shape: Any, dtype: Any, device: Any) -> Any:
    """Zeros, as good as anything."""
    return np.zeros(shape, numpy_dtype(dtype))


@reference(prims.iota)
def iota(length: int, start: Any, step: Any, dtype: Any, device: Any) -> Any:
    """Products rather than sums, so that no error grows."""
    return (np.arange(length) * step + start).astype(numpy_dtype(dtype))


@reference(prims.tensor_from_sequence)
def tensor_from_sequence(sequence: Any, dtype: Any, device: Any) -> Any:
    """What NumPy makes of it."""
    return np.array(sequence, numpy_dtype(dtype))
