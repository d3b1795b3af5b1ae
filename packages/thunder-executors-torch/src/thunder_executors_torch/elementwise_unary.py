"""Elementwise prims of one operand."""

from __future__ import annotations

from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import TensorProxy

for _prim, _function in (
    (prims.abs, torch.abs),
    (prims.acos, torch.acos),
    (prims.acosh, torch.acosh),
    (prims.asin, torch.asin),
    (prims.asinh, torch.asinh),
    (prims.atan, torch.atan),
    (prims.atanh, torch.atanh),
    (prims.bitwise_not, torch.bitwise_not),
    (prims.ceil, torch.ceil),
    (prims.cos, torch.cos),
    (prims.cosh, torch.cosh),
    (prims.exp, torch.exp),
    (prims.exp2, torch.exp2),
    (prims.expm1, torch.expm1),
    (prims.floor, torch.floor),
    (prims.frexp, torch.frexp),
    (prims.imag, torch.imag),
    (prims.log, torch.log),
    (prims.log10, torch.log10),
    (prims.log1p, torch.log1p),
    (prims.log2, torch.log2),
    (prims.neg, torch.neg),
    (prims.real, torch.real),
    (prims.reciprocal, torch.reciprocal),
    (prims.round, torch.round),
    (prims.rsqrt, torch.rsqrt),
    (prims.sigmoid, torch.sigmoid),
    (prims.sign, torch.sgn),
    (prims.sin, torch.sin),
    (prims.sinc, torch.sinc),
    (prims.sinh, torch.sinh),
    (prims.sqrt, torch.sqrt),
    (prims.tan, torch.tan),
    (prims.tanh, torch.tanh),
    (prims.trunc, torch.trunc),
):
    executor.implements(_prim)(_function)


@executor.calls(torch.conj_physical, prims.conj)
def conj(a: TensorProxy) -> Any:
    return arguments(a)
