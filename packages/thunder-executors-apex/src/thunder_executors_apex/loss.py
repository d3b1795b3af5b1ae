"""Cross entropy by Apex: its kernel knows neither rows to be left out nor reductions, which are added here."""

from __future__ import annotations

from typing import Any

import torch

from thunder_executors import Declined, takes_tensors
from thunder_executors_apex import availability
from thunder_executors_apex.availability import CROSS_ENTROPY
from thunder_executors_apex.executor import DEVICES, executor, takes
from thunder_ir import TensorProxy, dtypes
from thunder_torch import symbol_of
from thunder_torch.call_arguments import CrossEntropy, called_with

FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)
REDUCTIONS = ("mean", "sum", "none")
FEW_CLASSES = 30


def run_cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, reduction: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss, and the logarithm of each row's sum of exponentials, which the gradient reads."""
    counts = target != ignore_index
    labels = torch.where(counts, target, 0)
    to_float = logits.dtype is torch.float16
    kernels = availability.extension(CROSS_ENTROPY)
    losses, sums = kernels.forward(logits.contiguous(), labels.contiguous(), 0.0, to_float)
    losses = torch.where(counts, losses, 0)
    if reduction == "none":
        return losses.to(logits.dtype), sums
    total = losses.sum()
    return (total / counts.sum() if reduction == "mean" else total).to(logits.dtype), sums


def run_cross_entropy_gradient(
    dy: torch.Tensor, logits: torch.Tensor, target: torch.Tensor, sums: torch.Tensor, ignore_index: int, reduction: str
) -> torch.Tensor:
    """Return the gradient of the logits."""
    counts = target != ignore_index
    labels = torch.where(counts, target, 0)
    each = dy.float() / counts.sum() if reduction == "mean" else dy.float()
    of_rows = torch.where(counts, each, 0)
    if logits.dtype is torch.bfloat16:  # the kernel takes no others with it
        of_rows = of_rows.to(logits.dtype)
    kernels = availability.extension(CROSS_ENTROPY)
    found: torch.Tensor = kernels.backward(of_rows.contiguous(), logits.contiguous(), sums, labels.contiguous(), 0.0)
    return found


def _loss_meta(logits: TensorProxy, target: TensorProxy, ignore_index: int, reduction: str) -> Any:
    kept = logits.dtype if logits.dtype is dtypes.bfloat16 else dtypes.float32
    sums = logits.like(shape=target.shape, dtype=kept, requires_grad=False)
    return logits.like(shape=target.shape if reduction == "none" else ()), sums


cross_entropy_forward = executor.register_operator("cross_entropy_forward", meta=_loss_meta, fn=run_cross_entropy)
cross_entropy_gradient = executor.register_operator(
    "cross_entropy_gradient",
    meta=lambda dy, logits, *rest: logits.like(requires_grad=False),
    fn=run_cross_entropy_gradient,
)


@called_with(CrossEntropy)
def takes_cross_entropy(c: CrossEntropy) -> bool | Declined:
    """Whether the extension takes this loss."""
    answer = takes(CROSS_ENTROPY, FLOATS, c.input) and takes_tensors(c.target, on=DEVICES)
    if not answer:
        return answer
    if c.input.ndim != 2 or c.target.ndim != 1 or c.target.dtype is not dtypes.int64:
        return Declined("it takes logits (rows, classes) and int64 classes (rows,)")
    if c.weight is not None or c.size_average is not None or c.reduce is not None or c.label_smoothing:
        return Declined("it takes neither weights of classes, smoothing, size_average= nor reduce=")
    classes = int(c.input.shape[1])
    if classes < FEW_CLASSES and classes % 4:
        return Declined(f"fewer than {FEW_CLASSES} classes are taken in multiples of 4")
    return True if c.reduction in REDUCTIONS else Declined(f"there is no reduction {c.reduction!r}")


@called_with(CrossEntropy)
def cross_entropy(c: CrossEntropy) -> tuple[Any, Any]:
    """Save the logits, and one number for each row."""
    options = (c.ignore_index, c.reduction)
    loss, sums = cross_entropy_forward(c.input, c.target, *options)
    return loss, lambda dy: (cross_entropy_gradient(dy, c.input, c.target, sums, *options), None)


executor.runs_by_rule(symbol_of(torch.nn.functional.cross_entropy), cross_entropy, takes_cross_entropy)
