"""Accumulations along a dimension."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy
from thunder_torch.convert import to_torch_dtype


def _in_own_dtype(a: TensorProxy, dim: int) -> Any:
    return arguments(a, dim, dtype=to_torch_dtype(a.dtype)) if a.dtype.is_exact else arguments(a, dim)


executor.calls(torch.cumsum, prims.cumsum)(_in_own_dtype)
executor.calls(torch.cumprod, prims.cumprod)(_in_own_dtype)
executor.implements(prims.logcumsumexp)(torch.logcumsumexp)
executor.implements(prims.cummax)(torch.cummax)
executor.implements(prims.cummin)(torch.cummin)
