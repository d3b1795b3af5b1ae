"""Layer norm and root-mean-square norm by cuDNN, and their derivatives."""

from __future__ import annotations

import math
from typing import Any

import torch

from thunder_executors import Declined, takes_tensors
from thunder_executors_cudnn import running
from thunder_executors_cudnn.executor import executor, takes
from thunder_executors_cudnn.problems import Norm, NormGradient
from thunder_ir import TensorProxy, dtypes
from thunder_torch import symbol_of
from thunder_torch.call_arguments import LayerNorm, RMSNorm, called_with

Rule = tuple[Any, Any]


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _norm(x: torch.Tensor, weight: torch.Tensor, bias: Any, centred: bool, statistics: bool) -> Norm:
    columns = weight.numel()
    return Norm(x.numel() // columns, columns, _dtype(x), centred, bias is not None, statistics)


def _epsilon(eps: float) -> torch.Tensor:
    return torch.full((1, 1, 1, 1), eps, dtype=torch.float32, device="cpu")  # whatever the default is: cuDNN reads it


def run_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float, centred: bool, statistics: bool
) -> tuple[torch.Tensor, ...]:
    """Return the norm over the dimensions of ``weight``, and if wanted each row's mean and inverse deviation, float32.

    A norm that is not centred has no mean.
    """
    problem = _norm(x, weight, bias, centred, statistics)
    x = x.contiguous()
    y = torch.empty_like(x)
    kept = [x.new_empty(problem.rows, dtype=torch.float32) for _ in range(1 + centred)] if statistics else []
    names = ("mean", "deviation") if centred else ("deviation",)
    tensors = {"input": x, "weight": weight.contiguous(), "out": y, "epsilon": _epsilon(eps)}
    if bias is not None:
        tensors["bias"] = bias.contiguous()
    running.machine.run(problem, {**tensors, **dict(zip(names, kept, strict=False))}, x.device)
    return (y, *kept)


def run_norm_gradient(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: bool, mean: torch.Tensor | None, deviation: Any
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of input, weight and, if there is one, bias."""
    centred = mean is not None
    forward = _norm(x, weight, weight if bias else None, centred, True)
    tensors = {"dout": dy.contiguous(), "input": x.contiguous(), "weight": weight.contiguous(), "deviation": deviation}
    if mean is not None:
        tensors["mean"] = mean
    dx = torch.empty_like(tensors["input"])
    dweight = torch.empty_like(tensors["weight"])
    dbias = torch.empty_like(dweight)  # which a layer norm's graph computes whether one is there or not
    found = {"dinput": dx, "dweight": dweight, **({"dbias": dbias} if centred or bias else {})}
    running.machine.run(NormGradient(forward), {**tensors, **found}, x.device)
    return (dx, dweight, dbias) if bias else (dx, dweight)


def _norm_meta(x: TensorProxy, weight: TensorProxy, bias: Any, eps: float, centred: bool, statistics: bool) -> Any:
    rows = math.prod(x.shape[: x.ndim - weight.ndim])
    kept = x.like(shape=(rows,), dtype=dtypes.float32, requires_grad=False)
    return (x.like(), *[kept.like() for _ in range(1 + centred)]) if statistics else (x.like(),)


def _gradient_meta(dy: Any, x: TensorProxy, weight: TensorProxy, bias: bool, mean: Any, deviation: Any) -> Any:
    found = (x.like(requires_grad=False), weight.like(requires_grad=False))
    return (*found, weight.like(requires_grad=False)) if bias else found


norm = executor.register_operator("norm", meta=_norm_meta, fn=run_norm)
norm_gradient = executor.register_operator("norm_gradient", meta=_gradient_meta, fn=run_norm_gradient)


def _takes(x: Any, weight: Any, bias: Any, centred: bool) -> bool | Declined:
    answer = takes_tensors(x, weight, bias, on=running.machine.types)
    if not answer:
        return answer
    if weight is None:
        return Declined("it takes norms with a weight")
    if any([t is not None and (t.dtype is not x.dtype or t.ndim == 0) for t in (weight, bias)]):
        return Declined("weight and bias have another dtype than the input")
    columns = math.prod(weight.shape)
    rows = math.prod(x.shape) // max(columns, 1)
    problem = Norm(rows, columns, x.dtype.name, centred, bias is not None, statistics=True)
    return takes(problem, x.device) and takes(NormGradient(problem), x.device)


@called_with(LayerNorm)
def takes_layer_norm(n: LayerNorm) -> bool | Declined:
    """Whether cuDNN takes this norm, and its gradient."""
    return _takes(n.input, n.weight, n.bias, centred=True)


@called_with(RMSNorm)
def takes_rms_norm(n: RMSNorm) -> bool | Declined:
    """Whether cuDNN takes this norm, and its gradient."""
    return _takes(n.input, n.weight, None, centred=False)


@called_with(LayerNorm)
def layer_norm(n: LayerNorm) -> Rule:
    """Save the input, and mean and inverse deviation of each row."""
    y, mean, deviation = norm(n.input, n.weight, n.bias, n.eps, True, True)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        dx, dweight, *dbias = norm_gradient(dy, n.input, n.weight, n.bias is not None, mean, deviation)
        return dx, None, dweight, dbias[0] if dbias else None

    return y, pullback


@called_with(LayerNorm)
def layer_norm_alone(n: LayerNorm) -> Any:
    """The norm, where no gradient is asked for."""
    return norm(n.input, n.weight, n.bias, n.eps, True, False)[0]


def _eps(n: RMSNorm) -> float:
    return torch.finfo(torch.float32).eps if n.eps is None else n.eps  # PyTorch's, for what is computed in float32


@called_with(RMSNorm)
def rms_norm(n: RMSNorm) -> Rule:
    """Save the input and the inverse of each row's root mean square."""
    y, deviation = norm(n.input, n.weight, None, _eps(n), False, True)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        dx, dweight = norm_gradient(dy, n.input, n.weight, False, None, deviation)
        return dx, None, dweight

    return y, pullback


@called_with(RMSNorm)
def rms_norm_alone(n: RMSNorm) -> Any:
    """The norm, where no gradient is asked for."""
    return norm(n.input, n.weight, None, _eps(n), False, False)[0]


for _function in (torch.nn.functional.layer_norm, torch.layer_norm):
    executor.runs_by_rule(symbol_of(_function), layer_norm, takes_layer_norm, layer_norm_alone)
executor.runs_by_rule(symbol_of(torch.nn.functional.rms_norm), rms_norm, takes_rms_norm, rms_norm_alone)
