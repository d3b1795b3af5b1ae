"""Elementwise prims of one operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import OpTags, TensorProxy

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


def _like_first(a: TensorProxy, *rest: Any) -> TensorProxy:
    return a.like()


def of_output(path: str, backward_path: str) -> Callable[..., tuple[Any, Any]]:
    """Return the rule of a function whose derivative PyTorch computes from its output, in one call."""
    forward = executor.call(path, _like_first)
    backward = executor.call(backward_path, _like_first, OpTags.ELEMENTWISE)

    def rule(input: TensorProxy, *ignored: Any, **also_ignored: Any) -> tuple[Any, Any]:
        y = forward(input)
        return y, lambda dy: backward(dy, y)

    return rule


def floating(a: Any, *rest: Any, **kwargs: Any) -> bool:
    """Whether the first argument is a floating-point tensor."""
    return isinstance(a, TensorProxy) and a.dtype.is_floating


tanh = of_output("torch.tanh", "torch.ops.aten.tanh_backward.default")
sigmoid = of_output("torch.sigmoid", "torch.ops.aten.sigmoid_backward.default")
executor.differentiates(prims.tanh, when=floating)(tanh)
executor.differentiates(prims.sigmoid, when=floating)(sigmoid)
executor.differentiates_torch(torch.tanh, torch.nn.functional.tanh, when=floating)(tanh)
executor.differentiates_torch(torch.sigmoid, torch.nn.functional.sigmoid, torch.special.expit, when=floating)(sigmoid)
