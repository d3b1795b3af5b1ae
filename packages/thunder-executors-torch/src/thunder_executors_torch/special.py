"""Special functions."""

from __future__ import annotations

import math
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.elementwise_binary import like_larger, two_tensors, with_tensors
from thunder_executors_torch.elementwise_unary import floating
from thunder_executors_torch.executor import executor, torch_function
from thunder_ir import TensorProxy

for _prim, _function in (
    (prims.erf, torch.erf),
    (prims.erfc, torch.erfc),
    (prims.erfcx, torch.special.erfcx),
    (prims.erfinv, torch.erfinv),
    (prims.ndtri, torch.special.ndtri),
    (prims.log_ndtr, torch.special.log_ndtr),
    (prims.lgamma, torch.lgamma),
    (prims.digamma, torch.digamma),
    (prims.i0, torch.i0),
    (prims.i0e, torch.special.i0e),
    (prims.i1, torch.special.i1),
    (prims.i1e, torch.special.i1e),
    (prims.bessel_j0, torch.special.bessel_j0),
    (prims.bessel_j1, torch.special.bessel_j1),
    (prims.bessel_y0, torch.special.bessel_y0),
    (prims.bessel_y1, torch.special.bessel_y1),
    (prims.modified_bessel_k0, torch.special.modified_bessel_k0),
    (prims.modified_bessel_k1, torch.special.modified_bessel_k1),
    (prims.scaled_modified_bessel_k0, torch.special.scaled_modified_bessel_k0),
    (prims.scaled_modified_bessel_k1, torch.special.scaled_modified_bessel_k1),
    (prims.spherical_bessel_j0, torch.special.spherical_bessel_j0),
    (prims.zeta, torch.special.zeta),
    (prims.xlogy, torch.xlogy),
    (prims.xlog1py, torch.special.xlog1py),
):
    executor.implements(_prim)(_function)


@executor.implements(prims.erfcinv)
def erfcinv(a: torch.Tensor) -> torch.Tensor:
    """PyTorch has no such function; by the normal quantile it keeps its precision near 0, unlike ``erfinv(1 - a)``."""
    quantile: torch.Tensor = torch.special.ndtri(a * 0.5)
    return quantile * -math.sqrt(0.5)


@executor.calls(torch.polygamma, prims.polygamma)
def polygamma(a: TensorProxy, n: int) -> Any:
    return arguments(n, a)


for _prim, _path in ((prims.igamma, "torch.igamma"), (prims.igammac, "torch.igammac")):
    _operator = executor.call(_path, like_larger)
    executor.implements(_prim, when=two_tensors)(torch_function(_path))
    executor.transforms(_prim)(with_tensors(_operator))


def _like_first(a: TensorProxy, *rest: Any) -> TensorProxy:
    return a.like()


def logit_gradient(dy: torch.Tensor, a: torch.Tensor, eps: float | None) -> torch.Tensor:
    """``dy / (a * (1 - a))``; outside of the bounds NaN, or 0 where there is an ``eps``."""
    low = 0.0 if eps is None else eps
    inside = (a >= low) & (a <= 1 - low)
    return torch.where(inside, dy / (a * (1 - a)), math.nan if eps is None else 0.0)


_logit = executor.call("torch.logit", _like_first)
_logit_backward = executor.call("torch.ops.aten.logit_backward.default", _like_first, differentiable=logit_gradient)


@executor.differentiates_torch(torch.logit, when=floating)
def logit(input: TensorProxy, eps: float | None = None) -> tuple[Any, Any]:
    """Save the input."""
    return _logit(input, eps), lambda dy: _logit_backward(dy, input, eps)
