"""Reference of the prims that reduce, scan and sort."""

from __future__ import annotations

from typing import Any

import numpy as np

import thunder_prims as prims
from thunder_testing.reference.machine import reference

_FUNCTIONS: dict[Any, Any] = {
    prims.amax: np.amax, prims.amin: np.amin, prims.argmax: np.argmax, prims.argmin: np.argmin,
    prims.cumprod: np.cumprod, prims.cumsum: np.cumsum, prims.logcumsumexp: np.logaddexp.accumulate,
    prims.var: lambda a, dims, correction: var(a, dims, correction),
    prims.std: lambda a, dims, correction: np.sqrt(var(a, dims, correction)),
    prims.var_mean: lambda a, dims, correction: (var(a, dims, correction), np.mean(a, dims)),
}  # fmt: skip

for _symbol, _function in _FUNCTIONS.items():
    reference(_symbol)(_function)


@reference(prims.sum)
def sum(a: Any, dims: Any) -> Any:
    """In the dtype of ``a``."""
    return np.sum(a, dims, dtype=a.dtype)


@reference(prims.prod)
def prod(a: Any, dims: Any) -> Any:
    """In the dtype of ``a``."""
    return np.prod(a, dims, dtype=a.dtype)


def var(a: Any, dims: Any, correction: float) -> Any:
    """The variance, with a divisor that is not negative."""
    count = int(np.prod([a.shape[d] for d in dims], dtype=int))
    if not dims:
        distance = np.zeros(a.shape)
    else:
        distance = np.sum(np.abs(a - np.mean(a, dims, keepdims=True)) ** 2, dims)
    return np.true_divide(distance, max(0, count - correction))


def _running(a: Any, dim: int, better: Any) -> tuple[Any, Any]:
    values, places = np.array(a), np.zeros(a.shape, np.int64)
    moved, where = np.moveaxis(values, dim, 0), np.moveaxis(places, dim, 0)
    for i in range(1, len(moved)):
        keep = better(moved[i - 1], moved[i])
        moved[i], where[i] = np.where(keep, moved[i - 1], moved[i]), np.where(keep, where[i - 1], i)
    return values, places


@reference(prims.cummax)
def cummax(a: Any, dim: int) -> tuple[Any, Any]:
    """The last of equal ones."""
    return _running(a, dim, np.greater)


@reference(prims.cummin)
def cummin(a: Any, dim: int) -> tuple[Any, Any]:
    """The last of equal ones."""
    return _running(a, dim, np.less)


@reference(prims.argsort)
def argsort(a: Any, dim: int, descending: bool, stable: bool) -> Any:
    """Stable in both directions."""
    if not descending:
        return np.argsort(a, dim, kind="stable")
    backwards = np.argsort(np.flip(a, dim), dim, kind="stable")
    return np.flip(a.shape[dim] - 1 - backwards, dim)


@reference(prims.sort)
def sort(a: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    """What stands at the sorted indices."""
    places = argsort(a, dim, descending, stable)
    return np.take_along_axis(a, places, dim), places


@reference(prims.topk)
def topk(a: Any, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Any, Any]:
    """The first of the sorted ones."""
    places = np.take(argsort(a, dim, largest, True), np.arange(k), dim)
    return np.take_along_axis(a, places, dim), places


@reference(prims.searchsorted)
def searchsorted(ordered: Any, values: Any, right: bool) -> Any:
    """Row by row."""
    side: Any = "right" if right else "left"
    if ordered.ndim == 1:
        return np.searchsorted(ordered, values, side)
    rows = zip(ordered.reshape(-1, ordered.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    return np.array([np.searchsorted(o, v, side) for o, v in rows]).reshape(values.shape)
