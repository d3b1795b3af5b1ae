"""Comparisons and tests of elements."""

from __future__ import annotations

import torch

import thunder_prims as prims
from thunder_executors_torch.elementwise_binary import number_first, swapped
from thunder_executors_torch.executor import executor

for _prim, _function, _reflected in (
    (prims.eq, torch.eq, torch.eq),
    (prims.ne, torch.ne, torch.ne),
    (prims.lt, torch.lt, torch.gt),
    (prims.le, torch.le, torch.ge),
    (prims.gt, torch.gt, torch.lt),
    (prims.ge, torch.ge, torch.le),
):
    executor.calls(_reflected, _prim, when=number_first)(swapped)
    executor.implements(_prim)(_function)

for _prim, _test in (
    (prims.isfinite, torch.isfinite),
    (prims.isinf, torch.isinf),
    (prims.isnan, torch.isnan),
    (prims.signbit, torch.signbit),
):
    executor.implements(_prim)(_test)
