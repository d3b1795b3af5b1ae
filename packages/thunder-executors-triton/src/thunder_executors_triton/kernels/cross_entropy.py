"""The cross entropy of logits and classes, with its gradient from the same kernel.

Source: the log-sum-exp of a row is found in one pass over it by rescaling (Milakov and Gimelshein, "Online normalizer
calculation for softmax", arXiv 1805.02867).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.launch import as_rows, block_of, same_device, warps_of


@triton.jit
def cross_entropy_kernel(
    logits, targets, losses, gradient, scale, logits_stride, gradient_stride, columns, ignore_index, smoothing,
    WITH_GRADIENT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row each: its loss, and, if asked, the loss's gradient times ``scale``."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    target = tl.load(targets + row)
    kept = target != ignore_index
    largest = -float("inf")
    total = 0.0
    plain = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), axis=0)
        plain += tl.sum(tl.where(at < columns, x, 0.0), axis=0)
        largest = new
    normalizer = largest + tl.log(total)
    picked = tl.load(logits + tl.where(kept, target, 0)).to(tl.float32)
    loss = (1 - smoothing) * (normalizer - picked)
    if smoothing > 0:
        loss += smoothing * (normalizer - plain / columns)
    tl.store(losses + row, tl.where(kept, loss, 0.0))
    if WITH_GRADIENT:
        gradient += row * gradient_stride
        factor = tl.where(kept, tl.load(scale), 0.0)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(logits + at, mask=at < columns, other=-float("inf")).to(tl.float32)
            d = tl.exp(x - normalizer) - smoothing / columns - tl.where(at == target, 1 - smoothing, 0.0)
            d = tl.where(kept, d * factor, 0.0)
            tl.store(gradient + at, d.to(gradient.dtype.element_ty), mask=at < columns)


def cross_entropy_with_gradient(
    logits: torch.Tensor,
    target: torch.Tensor,
    scale: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    gradient: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of each row, and the gradient of their sum times ``scale``, from one kernel.

    Args:
        logits: shape ``(rows, classes)``, floating.
        target: shape ``(rows,)``, int64; classes, or ``ignore_index``.
        scale: shape ``()``, float32; 1 if not given.
        ignore_index: rows with this target have loss and gradient 0.
        label_smoothing: in ``[0, 1]``: the share of the target that is spread over all classes.
        gradient: where the gradient goes, which may be ``logits``; a new tensor if not given.

    Returns:
        losses, shape ``(rows,)``, float32; the gradient, shape and dtype of ``logits``.

    Raises:
        KernelError: shapes or devices do not fit together.

    Source:
        ``torch.nn.functional.cross_entropy`` with ``reduction="none"``.
    """
    losses, gradient = _run(logits, target, ignore_index, label_smoothing, scale, gradient, True)
    return losses, gradient


def cross_entropy_losses(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> torch.Tensor:
    """Return the loss of each row, float32; arguments as for :func:`cross_entropy_with_gradient`."""
    return _run(logits, target, ignore_index, label_smoothing, None, None, False)[0]


def _run(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, smoothing: float, scale: torch.Tensor | None,
    gradient: torch.Tensor | None, with_gradient: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    if logits.ndim != 2 or target.shape != logits.shape[:1] or logits.shape[1] == 0:
        raise KernelError(
            f"cross entropy needs logits (rows, classes) and targets (rows,), got {tuple(logits.shape)} and "
            f"{tuple(target.shape)}"
        )
    device = same_device(logits, target, scale, gradient)
    rows = as_rows(logits, logits.shape[1])
    losses = torch.empty(rows.count, dtype=torch.float32, device=device)
    if with_gradient and gradient is None:
        gradient = torch.empty_like(rows.matrix)
    if scale is None:
        scale = torch.ones((), dtype=torch.float32, device=device)
    out = gradient if gradient is not None else losses
    block = block_of(rows.columns, 8192)
    if rows.count:
        cross_entropy_kernel[(rows.count,)](
            rows.matrix, target.contiguous(), losses, out, scale, rows.stride, out.stride(0), rows.columns,
            ignore_index, smoothing, WITH_GRADIENT=with_gradient, BLOCK=block, num_warps=warps_of(block),
        )  # fmt: skip
    return losses, out
