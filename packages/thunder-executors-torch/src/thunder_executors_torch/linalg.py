"""Products of matrices, and what solves with them."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy

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
