"""Layer norm and root-mean-square norm by Apex."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder_executors import Declined
from thunder_executors_apex import availability
from thunder_executors_apex.availability import NORMS
from thunder_executors_apex.executor import executor, takes
from thunder_ir import TensorProxy, dtypes
from thunder_torch import symbol_of
from thunder_torch.call_arguments import LayerNorm, called_with

FLOATS = (dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16)
Shape = Sequence[int]
Rule = tuple[Any, Any]


def run_layer_norm(x: torch.Tensor, shape: Shape, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    """Return the norm, and mean and inverse deviation of each row."""
    kernels, x = availability.extension(NORMS), x.contiguous()
    if weight is None:
        return tuple(kernels.forward(x, list(shape), eps))
    return tuple(kernels.forward_affine(x, list(shape), weight.contiguous(), bias.contiguous(), eps))


def run_layer_norm_gradient(
    dy: torch.Tensor, x: torch.Tensor, shape: Shape, mean: Any, deviation: Any, weight: Any, bias: Any, eps: float
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of the input and, where there are any, of weight and bias."""
    kernels, dy, x = availability.extension(NORMS), dy.contiguous(), x.contiguous()
    if weight is None:
        return (kernels.backward(dy, mean, deviation, x, list(shape), eps, False),)
    parameters = (weight.contiguous(), bias.contiguous())
    return tuple(kernels.backward_affine(dy, mean, deviation, x, list(shape), *parameters, eps, False))


def run_rms_norm(x: torch.Tensor, shape: Shape, weight: Any, eps: float) -> tuple[torch.Tensor, ...]:
    """Return the norm, and the inverse root mean square of each row."""
    kernels, x = availability.extension(NORMS), x.contiguous()
    if weight is None:
        return tuple(kernels.rms_forward(x, list(shape), eps))
    return tuple(kernels.rms_forward_affine(x, list(shape), weight.contiguous(), eps))


def run_rms_norm_gradient(
    dy: torch.Tensor, x: torch.Tensor, shape: Shape, deviation: Any, weight: Any, eps: float
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of the input and, where there is one, of the weight."""
    kernels, dy, x = availability.extension(NORMS), dy.contiguous(), x.contiguous()
    if weight is None:
        return (kernels.rms_backward(dy, deviation, x, list(shape), eps, False),)
    return tuple(kernels.rms_backward_affine(dy, deviation, x, list(shape), weight.contiguous(), eps, False))


def _statistics(x: TensorProxy, shape: Shape) -> TensorProxy:
    rows = math.prod(x.shape[: x.ndim - len(shape)])
    wide = x.dtype if x.dtype.bits > 32 else dtypes.float32
    return x.like(shape=(rows,), dtype=wide, requires_grad=False)


def _gradients(*tensors: TensorProxy | None) -> tuple[TensorProxy, ...]:
    return tuple([t.like(requires_grad=False) for t in tensors if t is not None])


layer_norm_forward = executor.register_operator(
    "layer_norm_forward",
    meta=lambda x, shape, *rest: (x.like(), _statistics(x, shape), _statistics(x, shape)),
    fn=run_layer_norm,
)
layer_norm_gradient = executor.register_operator(
    "layer_norm_gradient",
    meta=lambda dy, x, shape, mean, deviation, weight, bias, eps: _gradients(x, weight, bias),
    fn=run_layer_norm_gradient,
)
rms_norm_forward = executor.register_operator(
    "rms_norm_forward", meta=lambda x, shape, *rest: (x.like(), _statistics(x, shape)), fn=run_rms_norm
)
rms_norm_gradient = executor.register_operator(
    "rms_norm_gradient",
    meta=lambda dy, x, shape, deviation, weight, eps: _gradients(x, weight),
    fn=run_rms_norm_gradient,
)


@called_with(LayerNorm)
def takes_layer_norm(n: LayerNorm) -> bool | Declined:
    """Whether the extension takes this norm."""
    if (n.weight is None) is not (n.bias is None):
        return Declined("it takes weight and bias together, or none")
    return takes(NORMS, FLOATS, n.input, n.weight, n.bias)


@called_with(LayerNorm)
def layer_norm(n: LayerNorm) -> Rule:
    """Save the input, and mean and inverse deviation of each row."""
    shape, options = tuple(n.normalized_shape), (n.weight, n.bias, n.eps)
    y, mean, deviation = layer_norm_forward(n.input, shape, *options)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        dx, *others = layer_norm_gradient(dy, n.input, shape, mean, deviation, *options)
        return (dx, None, *others)

    return y, pullback


def takes_rms_norm(
    input: TensorProxy, normalized_shape: Shape, weight: Any = None, eps: float | None = None
) -> bool | Declined:
    """Whether the extension takes this norm."""
    return takes(NORMS, FLOATS, input, weight)


def rms_norm(input: TensorProxy, normalized_shape: Shape, weight: Any = None, eps: float | None = None) -> Rule:
    """Save the input and the inverse root mean square of each row."""
    shape = tuple(normalized_shape)
    wide = input.dtype if input.dtype.bits > 32 else dtypes.float32
    eps = torch.finfo(getattr(torch, wide.name)).eps if eps is None else eps
    y, deviation = rms_norm_forward(input, shape, weight, eps)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        dx, *others = rms_norm_gradient(dy, input, shape, deviation, weight, eps)
        return (dx, None, *others)

    return y, pullback


for _function in (torch.nn.functional.layer_norm, torch.layer_norm):
    executor.runs_by_rule(symbol_of(_function), layer_norm, takes_layer_norm)
executor.runs_by_rule(symbol_of(torch.nn.functional.rms_norm), rms_norm, takes_rms_norm)
