"""Reading and writing single elements at indices."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_executors_torch.calls import long
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy


def _gathered(a: TensorProxy, dim: int, indices: TensorProxy) -> TensorProxy:
    return a.like(shape=indices.shape)


def _written(a: TensorProxy, dim: int, indices: TensorProxy, source: Any) -> TensorProxy:
    return a.like()


_gather = executor.call("torch.gather", _gathered)
_scatter = executor.call("torch.scatter", _written)
_scatter_add = executor.call("torch.scatter_add", _written)


@executor.transforms(prims.gather)
def gather(a: TensorProxy, indices: TensorProxy, dim: int) -> Any:
    return _gather(a, dim, long(indices))


executor.transforms(prims.take_along_axis)(gather)


@executor.transforms(prims.scatter)
def scatter(a: TensorProxy, indices: TensorProxy, source: Any, dim: int) -> Any:
    return _scatter(a, dim, long(indices), source)


@executor.transforms(prims.scatter_add)
def scatter_add(a: TensorProxy, indices: TensorProxy, source: TensorProxy, dim: int) -> Any:
    return _scatter_add(a, dim, long(indices), source)
