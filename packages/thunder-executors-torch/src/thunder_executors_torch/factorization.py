"""Factors of matrices."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy

executor.implements(prims.eigh)(torch.linalg.eigh)
executor.implements(prims.qr)(torch.linalg.qr)


@executor.calls(torch.linalg.svd, prims.svd)
def svd(a: TensorProxy) -> Any:
    return arguments(a, full_matrices=False)
