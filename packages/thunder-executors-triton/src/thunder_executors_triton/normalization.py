"""Layer norm and root-mean-square norm by kernels, and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder_executors import Declined
from thunder_executors_triton.executor import LONGEST, executor, fits, floating
from thunder_executors_triton.kernels_by_name import kernel
from thunder_ir import TensorProxy, dtypes
from thunder_torch import symbol_of

Shape = Sequence[int]
Rule = tuple[Any, Any]


def _statistics(a: TensorProxy, shape: Shape) -> TensorProxy:
    return a.like(shape=(math.prod(a.shape[: a.ndim - len(shape)]),), dtype=dtypes.float32, requires_grad=False)


def _gradient(a: TensorProxy | None) -> TensorProxy | None:
    return None if a is None else a.like(requires_grad=False)


def run_layer_norm(x: torch.Tensor, shape: Shape, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    """Launch the kernel; see ``kernels.normalization``."""
    found: tuple[torch.Tensor, ...] = kernel("layer_norm_forward")(x, shape, weight, bias, eps)
    return found


def run_layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Shape, mean: Any, rstd: Any, weight: Any, bias: Any
) -> tuple[Any, ...]:
    """Launch the kernel; see ``kernels.normalization``."""
    found: tuple[Any, ...] = kernel("layer_norm_backward")(dy, x, shape, mean, rstd, weight, bias)
    return found


def run_rms_norm(x: torch.Tensor, shape: Shape, weight: Any, eps: float) -> tuple[torch.Tensor, ...]:
    """Launch the kernel; see ``kernels.normalization``."""
    found: tuple[torch.Tensor, ...] = kernel("rms_norm_forward")(x, shape, weight, eps)
    return found


def run_rms_norm_backward(dy: torch.Tensor, x: torch.Tensor, shape: Shape, rstd: Any, weight: Any) -> tuple[Any, ...]:
    """Launch the kernel; see ``kernels.normalization``."""
    found: tuple[Any, ...] = kernel("rms_norm_backward")(dy, x, shape, rstd, weight)
    return found


layer_norm_forward = executor.register_operator(
    "layer_norm_forward",
    meta=lambda x, shape, weight, bias, eps: (x.like(), _statistics(x, shape), _statistics(x, shape)),
    fn=run_layer_norm,
)
layer_norm_backward = executor.register_operator(
    "layer_norm_backward",
    meta=lambda dy, x, shape, mean, rstd, weight, bias: (x.like(), _gradient(weight), _gradient(bias)),
    fn=run_layer_norm_backward,
)
rms_norm_forward = executor.register_operator(
    "rms_norm_forward", meta=lambda x, shape, weight, eps: (x.like(), _statistics(x, shape)), fn=run_rms_norm
)
rms_norm_backward = executor.register_operator(
    "rms_norm_backward",
    meta=lambda dy, x, shape, rstd, weight: (x.like(), _gradient(weight)),
    fn=run_rms_norm_backward,
)


def takes_norm(
    input: TensorProxy, normalized_shape: Shape, weight: Any = None, bias: Any = None, *rest: Any, **others: Any
) -> bool | Declined:
    """Whether the kernels take this norm."""
    answer = fits(input, weight, bias) and floating(input, weight, bias)
    if answer and math.prod(normalized_shape) > LONGEST:
        return Declined(f"its rows have at most {LONGEST} elements")
    return answer


def layer_norm(
    input: TensorProxy,
    normalized_shape: Shape,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *rest: Any,
    **others: Any,
) -> Rule:
    """Save the input, its means and the inverse of its deviations."""
    shape = tuple(normalized_shape)
    y, mean, rstd = layer_norm_forward(input, shape, weight, bias, eps)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        dx, dweight, dbias = layer_norm_backward(dy, input, shape, mean, rstd, weight, bias)
        return dx, None, dweight, dbias

    return y, pullback


def rms_norm(input: TensorProxy, normalized_shape: Shape, weight: Any = None, eps: float | None = None) -> Rule:
    """Save the input and the inverse of its rows' root mean squares."""
    shape = tuple(normalized_shape)
    wide = input.dtype if input.dtype.bits > 32 else dtypes.float32
    eps = torch.finfo(getattr(torch, wide.name)).eps if eps is None else eps
    y, rstd = rms_norm_forward(input, shape, weight, eps)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        dx, dweight = rms_norm_backward(dy, input, shape, rstd, weight)
        return dx, None, dweight

    return y, pullback


def takes_rms_norm(
    input: TensorProxy, normalized_shape: Shape, weight: Any = None, eps: float | None = None
) -> bool | Declined:
    """Whether the kernels take this norm."""
    return takes_norm(input, normalized_shape, weight)


executor.runs_by_rule(symbol_of(torch.nn.functional.layer_norm), layer_norm, takes_norm)
executor.runs_by_rule(symbol_of(torch.layer_norm), layer_norm, takes_norm)
executor.runs_by_rule(symbol_of(torch.nn.functional.rms_norm), rms_norm, takes_rms_norm)
