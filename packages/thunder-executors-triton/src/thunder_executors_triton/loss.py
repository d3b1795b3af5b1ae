"""Cross entropy by a kernel that computes the gradient along with the loss."""

from __future__ import annotations

from typing import Any

import torch

from thunder_executors import Declined
from thunder_executors_triton.executor import executor, fits, floating
from thunder_executors_triton.kernels_by_name import kernel
from thunder_ir import TensorProxy, dtypes
from thunder_torch import symbol_of
from thunder_torch.call_arguments import CrossEntropy, called_with

REDUCTIONS = ("mean", "sum", "none")


def _reduced(losses: torch.Tensor, counted: torch.Tensor, reduction: str, dtype: torch.dtype) -> torch.Tensor:
    if reduction == "none":
        return losses.to(dtype)
    total = losses.sum()
    return (total / counted if reduction == "mean" else total).to(dtype)


def run_cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, reduction: str, smoothing: float
) -> torch.Tensor:
    """Return the loss."""
    losses = kernel("cross_entropy_losses")(logits, target, ignore_index, smoothing)
    return _reduced(losses, (target != ignore_index).sum(), reduction, logits.dtype)


def run_cross_entropy_with_gradient(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, reduction: str, smoothing: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss, and its gradient for a cotangent of one."""
    counted = (target != ignore_index).sum()
    scale = (1 / counted).to(torch.float32) if reduction == "mean" else None
    losses, gradient = kernel("cross_entropy_with_gradient")(logits, target, scale, ignore_index, smoothing)
    return _reduced(losses, counted, reduction, logits.dtype), gradient


def run_scaled(gradient: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """Return the gradient times its cotangent, a scalar or one number per row."""
    return gradient * (dy.unsqueeze(1) if dy.ndim else dy)


def _loss(logits: TensorProxy, target: TensorProxy, ignore_index: int, reduction: str, smoothing: float) -> TensorProxy:
    return logits.like(shape=target.shape if reduction == "none" else ())


cross_entropy_loss = executor.register_operator("cross_entropy_loss", meta=_loss, fn=run_cross_entropy)
cross_entropy_with_gradient = executor.register_operator(
    "cross_entropy_with_gradient",
    meta=lambda logits, *rest: (_loss(logits, *rest), logits.like(requires_grad=False)),
    fn=run_cross_entropy_with_gradient,
)
scaled = executor.register_operator("scaled", meta=lambda gradient, dy: gradient.like(), fn=run_scaled)


@called_with(CrossEntropy)
def takes_cross_entropy(c: CrossEntropy) -> bool | Declined:
    """Whether the kernel takes this loss."""
    answer = fits(c.input, c.target) and floating(c.input)
    if not answer:
        return answer
    if c.input.ndim != 2 or c.target.ndim != 1 or c.target.dtype is not dtypes.int64 or 0 in c.input.shape:
        return Declined("it takes logits (rows, classes) and int64 classes (rows,)")
    if c.weight is not None or c.size_average is not None or c.reduce is not None or c.reduction not in REDUCTIONS:
        return Declined("it takes neither weights of classes nor size_average= and reduce=")
    return True


@called_with(CrossEntropy)
def cross_entropy(c: CrossEntropy) -> tuple[Any, Any]:
    """Save the gradient."""
    loss, gradient = cross_entropy_with_gradient(c.input, c.target, c.ignore_index, c.reduction, c.label_smoothing)
    return loss, lambda dy: (scaled(gradient, dy), None)


@called_with(CrossEntropy)
def cross_entropy_alone(c: CrossEntropy) -> Any:
    """The loss, where no gradient is asked for."""
    return cross_entropy_loss(c.input, c.target, c.ignore_index, c.reduction, c.label_smoothing)


executor.runs_by_rule(
    symbol_of(torch.nn.functional.cross_entropy), cross_entropy, takes_cross_entropy, alone=cross_entropy_alone
)
