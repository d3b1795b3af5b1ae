"""Losses of logits of which each process has those of a part of the vocabulary."""

from __future__ import annotations

from typing import Any

import torch

from thunder_distributed.axes import axis_of
from thunder_distributed.regions import from_first, largest, left


class VocabularyCrossEntropy(torch.nn.Module):
    """``torch.nn.CrossEntropyLoss`` of logits that a column-wise last layer leaves in parts.

    No process ever has the logits of the whole vocabulary: two numbers per row are summed over the processes. All get
    the same loss. It runs in compiled programs.

    Args:
        device_mesh: a mesh of one dimension, a group or an axis, that of the layer; all processes if not given.
        ignore_index: targets that count for nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: another reduction.

    Example:
        ``self.loss = VocabularyCrossEntropy(mesh["tensor"])`` in a model whose ``forward`` returns
        ``self.loss(logits.flatten(0, 1), targets.flatten())``, and ``{"head": Colwise()}`` in the plan
    """

    def __init__(self, device_mesh: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
        self.axis = axis_of(device_mesh, "tensor")
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> Any:
        """Return the loss.

        Args:
            logits: this process's, of shape ``(rows, vocabulary / processes)``.
            targets: int64, of shape ``(rows,)``, in the whole vocabulary.
        """
        axis, width = self.axis, logits.shape[-1]
        x = logits.float()
        x = x - largest(x.detach().amax(-1), axis).unsqueeze(-1)
        total = left(x.exp().sum(-1), axis)
        local = from_first(targets, axis, width)
        elsewhere = (local < 0) | (local >= width)
        counts = targets != self.ignore_index
        known = (targets >= 0) & (targets < width * axis.size) | ~counts  # others are out of range, as in one process
        local = torch.where(known, local.masked_fill(elsewhere, 0), targets)
        picked = x.gather(-1, local.unsqueeze(-1)).squeeze(-1)
        losses = (total.log() - left(picked.masked_fill(elsewhere, 0.0), axis)).masked_fill(~counts, 0.0)
        if self.reduction == "none":
            return losses.to(logits.dtype)
        loss = losses.sum()
        return (loss / counts.sum() if self.reduction == "mean" else loss).to(logits.dtype)


__all__ = ["VocabularyCrossEntropy"]
