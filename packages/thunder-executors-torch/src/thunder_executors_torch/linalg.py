"""Products of matrices, and what solves with them."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, TensorProxy, is_one


def is_outer(bound: BoundSymbol) -> bool:
    """Whether a product of real matrices sums nothing up: columns times rows."""
    a, _ = bound.args
    return is_one(a.shape[-1]) and not a.dtype.is_complex


@executor.implements(prims.matmul, when=is_outer)
def outer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return columns times rows, each pair of elements multiplied once, in rows as a product of matrices lies."""
    return torch.mul(a, b).contiguous()


def is_batch(bound: BoundSymbol) -> bool:
    """Whether a product is one of batches of matrices, which ``torch.matmul`` hands to ``torch.bmm`` in the end."""
    a, _ = bound.args
    return bool(a.ndim == 3)


executor.implements(prims.matmul, when=is_batch)(torch.bmm)
executor.implements(prims.matmul)(torch.matmul)
executor.implements(prims.linear)(torch.nn.functional.linear)
executor.implements(prims.solve)(torch.linalg.solve)
executor.implements(prims.inverse)(torch.linalg.inv)
executor.implements(prims.cholesky)(torch.linalg.cholesky)
executor.implements(prims.det)(torch.linalg.det)
executor.implements(prims.slogdet)(torch.linalg.slogdet)


@executor.calls(torch.linalg.solve_triangular, prims.triangular_solve)
def triangular_solve(a: TensorProxy, b: TensorProxy, upper: bool, left: bool, unitriangular: bool) -> Any:
    return arguments(a, b, upper=upper, left=left, unitriangular=unitriangular)
