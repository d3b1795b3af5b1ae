"""Reference of the prims that read and write at indices, and of products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import thunder_prims as prims
from thunder_testing.reference.machine import reference

_FUNCTIONS: dict[Any, Any] = {
    prims.take: np.take, prims.take_along_axis: np.take_along_axis, prims.matmul: np.matmul,
    prims.inverse: np.linalg.inv, prims.solve: np.linalg.solve, prims.det: np.linalg.det,
    prims.cholesky: np.linalg.cholesky,
}  # fmt: skip

for _symbol, _function in _FUNCTIONS.items():
    reference(_symbol)(_function)


def _key(indices: Any) -> tuple[Any, ...]:
    return tuple([slice(None) if index is None else index for index in indices])


@reference(prims.index)
def index(a: Any, indices: Any) -> Any:
    """``a[indices]``."""
    return a[_key(indices)]


@reference(prims.index_put)
def index_put(a: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """A copy, written to."""
    a = np.array(a)
    if accumulate:
        np.add.at(a, _key(indices), values)
    else:
        a[_key(indices)] = values
    return a


def _at(a: Any, dim: int, indices: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, np.reshape(indices, (-1,)))


@reference(prims.index_add)
def index_add(a: Any, indices: Any, values: Any, dim: int) -> Any:
    """A copy, added to."""
    a = np.array(a)
    np.add.at(a, _at(a, dim, indices), values)
    return a


@reference(prims.index_copy)
def index_copy(a: Any, indices: Any, values: Any, dim: int) -> Any:
    """A copy, written to."""
    a = np.array(a)
    a[_at(a, dim, indices)] = values
    return a


def _grid(indices: Any, dim: int) -> tuple[Any, ...]:
    grid: list[Any] = list(np.indices(indices.shape))
    grid[dim] = indices
    return tuple(grid)


@reference(prims.gather)
def gather(a: Any, indices: Any, dim: int) -> Any:
    """What stands at a grid with one coordinate replaced."""
    return a[_grid(indices, dim)] if a.ndim else np.broadcast_to(a, indices.shape)


def _part(source: Any, indices: Any) -> Any:
    return source[tuple([slice(n) for n in indices.shape])] if np.ndim(source) else source


@reference(prims.scatter)
def scatter(a: Any, indices: Any, source: Any, dim: int) -> Any:
    """A copy, written to at a grid with one coordinate replaced."""
    a = np.array(a)
    a[_grid(indices, dim)] = _part(source, indices)
    return a


@reference(prims.scatter_add)
def scatter_add(a: Any, indices: Any, source: Any, dim: int) -> Any:
    """A copy, added to at a grid with one coordinate replaced."""
    a = np.array(a)
    np.add.at(a, _grid(indices, dim), _part(source, indices))
    return a


@reference(prims.linear)
def linear(a: Any, weight: Any, bias: Any) -> Any:
    """``a @ weight.T + bias``."""
    product = np.matmul(a, weight.T)
    return product if bias is None else product + bias
