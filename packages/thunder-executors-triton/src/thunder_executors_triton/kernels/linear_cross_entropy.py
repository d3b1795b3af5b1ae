"""A linear layer and the cross entropy of what it gives, without all of its logits in memory.

Rows are taken a chunk at a time, so many that a chunk's logits are as large as the layer's input; a chunk's logits
become their own gradient in place, from which the gradients of input and weight follow at once. So the memory for
logits is that of ``x``, whatever the number of classes, and no product is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.cross_entropy import cross_entropy_losses, cross_entropy_with_gradient
from thunder_executors_triton.kernels.launch import same_device


@dataclass(frozen=True)
class LinearCrossEntropy:
    """What one pass over the chunks gives.

    Args:
        loss: shape ``()``, float32.
        dx: gradient of the input, shape and dtype of it; ``None`` if not asked.
        dweight: gradient of the weight; ``None`` if not asked.
        dbias: gradient of the bias; ``None`` if not asked, or without one.
    """

    loss: torch.Tensor
    dx: torch.Tensor | None
    dweight: torch.Tensor | None
    dbias: torch.Tensor | None


def rows_of_chunk(rows: int, features: int, classes: int) -> int:
    """Return how many rows have together as many logits as the input has elements; at least one."""
    return max(1, min(rows, rows * features // max(classes, 1)))


def linear_cross_entropy(
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    gradients: bool = True,
) -> LinearCrossEntropy:
    """Return ``cross_entropy(linear(x, weight, bias), target)`` and its gradients.

    Args:
        x: shape ``(rows, features)``, floating.
        weight: shape ``(classes, features)``, dtype of ``x``.
        target: shape ``(rows,)``, int64; classes, or ``ignore_index``.
        bias: shape ``(classes,)``.
        ignore_index: rows with this target count for nothing.
        label_smoothing: in ``[0, 1]``.
        reduction: ``"mean"`` over the rows that count, or ``"sum"``.
        gradients: whether gradients are computed, too.

    Raises:
        KernelError: shapes, devices or the reduction do not fit.
    """
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[1] or target.shape != x.shape[:1]:
        raise KernelError(
            f"linear cross entropy needs x (rows, features), weight (classes, features), target (rows,), got "
            f"{tuple(x.shape)}, {tuple(weight.shape)}, {tuple(target.shape)}"
        )
    if reduction not in ("mean", "sum"):
        raise KernelError(f"linear cross entropy reduces by 'mean' or 'sum', got {reduction!r}")
    device = same_device(x, weight, target, bias)
    scale = torch.ones((), dtype=torch.float32, device=device)
    if reduction == "mean":
        scale = 1 / (target != ignore_index).sum().to(torch.float32)
    loss = torch.zeros((), dtype=torch.float32, device=device)
    dx = torch.empty_like(x) if gradients else None
    dweight = torch.zeros(weight.shape, dtype=torch.float32, device=device) if gradients else None
    dbias = torch.zeros(bias.shape, dtype=torch.float32, device=device) if gradients and bias is not None else None
    step = rows_of_chunk(x.shape[0], x.shape[1], weight.shape[0])
    for start in range(0, x.shape[0], step):
        rows = x[start : start + step]
        logits = torch.nn.functional.linear(rows, weight, bias)
        targets = target[start : start + step]
        if dx is None or dweight is None:
            losses = cross_entropy_losses(logits, targets, ignore_index, label_smoothing)
        else:
            losses, d = cross_entropy_with_gradient(logits, targets, scale, ignore_index, label_smoothing, logits)
            torch.matmul(d, weight, out=dx[start : start + step])
            dweight += d.t() @ rows
            if dbias is not None:
                dbias += d.sum(0)
        loss += losses.sum() * scale
    return LinearCrossEntropy(
        loss, dx, None if dweight is None else dweight.to(weight.dtype), None if dbias is None else dbias.to(x.dtype)
    )
