"""Orders, and searching in them."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy


def _named(a: TensorProxy, dim: int, descending: bool, stable: bool) -> Any:
    return arguments(a, dim=dim, descending=descending, stable=stable)


executor.calls(torch.argsort, prims.argsort)(_named)
executor.calls(torch.sort, prims.sort)(_named)
executor.implements(prims.topk)(torch.topk)


@executor.calls(torch.searchsorted, prims.searchsorted)
def searchsorted(ordered: TensorProxy, values: TensorProxy, right: bool) -> Any:
    return arguments(ordered, values, right=right)
