"""An executor over NumPy, as an outsider would write one: it runs the prims that the tests need."""

from __future__ import annotations

from typing import Any

import numpy as np

import thunder_prims as prims
from thunder_executors import OperatorExecutor, arguments
from thunder_ir import DType, TensorProxy, dtypes


def dtype_of(dtype: DType) -> Any:
    """Return NumPy's dtype."""
    return np.dtype("bool" if dtype is dtypes.bool8 else dtype.name)


def missing() -> str | None:
    """Why this executor cannot run here, or ``None``."""
    return None


executor = OperatorExecutor("numpy", version=np.__version__, missing=missing, modules=("numpy",))

for prim, function in (
    (prims.add, np.add),
    (prims.sub, np.subtract),
    (prims.mul, np.multiply),
    (prims.div, np.divide),
    (prims.neg, np.negative),
    (prims.exp, np.exp),
    (prims.log, np.log),
    (prims.sin, np.sin),
    (prims.cos, np.cos),
    (prims.tanh, np.tanh),
    (prims.sqrt, np.sqrt),
    (prims.matmul, np.matmul),
    (prims.transpose, np.transpose),
    (prims.reshape, np.reshape),
    (prims.where, np.where),
):
    executor.implements(prim)(function)


@executor.calls(np.sum, prims.sum)
def total(a: TensorProxy, dims: tuple[int, ...]) -> Any:
    return arguments(a, axis=tuple(dims), dtype=dtype_of(a.dtype))


@executor.calls(np.full, prims.full)
def full(shape: tuple[int, ...], value: Any, dtype: DType, device: Any) -> Any:
    return arguments(shape, value, dtype_of(dtype))


@executor.implements(prims.broadcast_in_dim)
def broadcast_in_dim(a: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    sizes = [1] * len(shape)
    for size, dim in zip(a.shape, dims, strict=True):
        sizes[dim] = size
    return np.broadcast_to(a.reshape(sizes), shape)
