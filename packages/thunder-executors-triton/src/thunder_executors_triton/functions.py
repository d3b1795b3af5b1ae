"""The kernels as functions of PyTorch, for programs that are not compiled; each that has a gradient knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from thunder_executors_triton.kernels_by_name import kernel


def _apply(function: Any, *args: Any) -> Any:
    return function.apply(*args)  # PyTorch declares no types for it


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Any, target: Any, ignore_index: int, smoothing: float, mean: bool) -> Any:
        counted = (target != ignore_index).sum()
        scale = (1 / counted).to(torch.float32) if mean else None
        losses, gradient = kernel("cross_entropy_with_gradient")(logits, target, scale, ignore_index, smoothing)
        ctx.save_for_backward(gradient)
        return losses.sum() / counted if mean else losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        return ctx.saved_tensors[0] * dy, None, None, None, None


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Any, weight: Any, target: Any, bias: Any, ignore_index: int, smoothing: float, how: str
    ) -> Any:
        found = kernel("linear_cross_entropy")(x, weight, target, bias, ignore_index, smoothing, how)
        ctx.save_for_backward(found.dx, found.dweight, found.dbias)
        return found.loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        dx, dweight, dbias = ctx.saved_tensors
        return dx * dy, dweight * dy, None, None if dbias is None else dbias * dy, None, None, None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float, centred: bool) -> Any:
        ctx.shape, ctx.centred = shape, centred
        if centred:
            y, mean, rstd = kernel("layer_norm_forward")(x, shape, weight, bias, eps)
        else:
            (y, rstd), mean = kernel("rms_norm_forward")(x, shape, weight, eps), None
        ctx.save_for_backward(x, mean, rstd, weight, bias)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        x, mean, rstd, weight, bias = ctx.saved_tensors
        if ctx.centred:
            dx, dweight, dbias = kernel("layer_norm_backward")(dy, x, ctx.shape, mean, rstd, weight, bias)
        else:
            (dx, dweight), dbias = kernel("rms_norm_backward")(dy, x, ctx.shape, rstd, weight), None
        return dx, None, dweight, dbias, None, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = kernel("softmax_forward")(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        return kernel("softmax_backward")(dy, ctx.saved_tensors[0])


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Any, up: Any) -> Any:
        ctx.save_for_backward(gate, up)
        return kernel("swiglu_forward")(gate, up)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        return kernel("swiglu_backward")(dy, *ctx.saved_tensors)


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, cosine: Any, sine: Any) -> Any:
        ctx.save_for_backward(cosine, sine)
        return kernel("rotary_forward")(x, cosine, sine)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        return kernel("rotary_backward")(dy, *ctx.saved_tensors), None, None


class _DropoutAddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Any, residual: Any, weight: Any, bias: Any, p: float, seed: int, eps: float, centred: bool
    ) -> Any:
        ctx.options = (p, seed, centred)
        y, total, mean, rstd = kernel("dropout_add_norm_forward")(x, residual, weight, bias, p, seed, eps, centred)
        ctx.save_for_backward(total, weight, bias, mean, rstd)
        return y, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any, dtotal: Any) -> Any:
        found = kernel("dropout_add_norm_backward")(dy, dtotal, *ctx.saved_tensors, *ctx.options)
        return *found, None, None, None, None


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> torch.Tensor:  # fmt: skip
    """Return the cross entropy, float32; see :func:`torch.nn.functional.cross_entropy`.

    Args:
        logits: shape ``(rows, classes)``, floating.
        target: shape ``(rows,)``, int64.
        ignore_index: rows with this target count for nothing.
        label_smoothing: in ``[0, 1]``.
        reduction: ``"mean"`` or ``"sum"``.
    """
    loss: torch.Tensor = _apply(_CrossEntropy, logits, target, ignore_index, label_smoothing, _is_mean(reduction))
    return loss


def linear_cross_entropy(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, bias: torch.Tensor | None = None,
    ignore_index: int = -100, label_smoothing: float = 0.0, reduction: str = "mean",
) -> torch.Tensor:  # fmt: skip
    """Return ``cross_entropy(linear(x, weight, bias), target)``, float32, without all logits in memory.

    Args:
        x: shape ``(rows, features)``, floating.
        weight: shape ``(classes, features)``.
        target: shape ``(rows,)``, int64.
        bias: shape ``(classes,)``.
        ignore_index: rows with this target count for nothing.
        label_smoothing: in ``[0, 1]``.
        reduction: ``"mean"`` or ``"sum"``.
    """
    _is_mean(reduction)
    if not torch.is_grad_enabled() or not any(t is not None and t.requires_grad for t in (x, weight, bias)):
        found = kernel("linear_cross_entropy")(
            x, weight, target, bias, ignore_index, label_smoothing, reduction, gradients=False
        )
        alone: torch.Tensor = found.loss
        return alone
    loss: torch.Tensor = _apply(_LinearCrossEntropy, x, weight, target, bias, ignore_index, label_smoothing, reduction)
    return loss


def layer_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None, eps: float = 1e-5,
) -> torch.Tensor:  # fmt: skip
    """Return the layer norm; see :func:`torch.nn.functional.layer_norm`."""
    y: torch.Tensor = _apply(_Norm, x, tuple(normalized_shape), weight, bias, eps, True)
    return y


def rms_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    """Return the root-mean-square norm; see :func:`torch.nn.functional.rms_norm`."""
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    y: torch.Tensor = _apply(_Norm, x, tuple(normalized_shape), weight, None, eps, False)
    return y


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax over the last dimension."""
    y: torch.Tensor = _apply(_Softmax, x)
    return y


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return ``silu(gate) * up``, for tensors of one shape and dtype."""
    y: torch.Tensor = _apply(_SwiGLU, gate, up)
    return y


def rotary(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return ``x`` rotated by its positions.

    Args:
        x: shape ``(batch, heads, length, width)``, floating, ``width`` even.
        cosine: shape ``(batch or 1, length, width)``; no gradient goes to it.
        sine: shape of ``cosine``.
    """
    y: torch.Tensor = _apply(_Rotary, x, cosine, sine)
    return y


def dropout_add_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, p: float = 0.0,
    seed: int | None = None, eps: float = 1e-5, centred: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return ``norm(residual + dropout(x, p))`` and the sum before the norm.

    Args:
        x: shape ``(..., columns)``, floating.
        residual: shape and dtype of ``x``.
        weight: shape ``(columns,)``.
        bias: shape ``(columns,)``.
        p: probability of an element to be dropped, in ``[0, 1)``.
        seed: of the mask; drawn from PyTorch's generator of the CPU if not given.
        eps: added to the variance.
        centred: layer norm; else root-mean-square norm.
    """
    if seed is None:
        seed = int(torch.randint(2**31 - 1, ()).item()) if p else 0
    found: tuple[torch.Tensor, torch.Tensor] = _apply(_DropoutAddNorm, x, residual, weight, bias, p, seed, eps, centred)
    return found


def adamw_step(
    parameters: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor], averages: Sequence[torch.Tensor],
    squares: Sequence[torch.Tensor], step: int, rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8, decay: float = 1e-2,
) -> None:  # fmt: skip
    """Make one step of AdamW for many tensors by one launch, in place; see :class:`torch.optim.AdamW`.

    Args:
        parameters: contiguous, all of one floating dtype and on one device.
        gradients: one per parameter, of its shape and dtype.
        averages: of the gradients; one per parameter, of its shape, float32.
        squares: averages of the gradients' squares; likewise.
        step: number of this step, from 1.
        rate: the learning rate.
        betas: of both averages.
        eps: added to the root.
        decay: of the weights.
    """
    kernel("adamw_step")(parameters, gradients, averages, squares, step, rate, betas, eps, decay)


def _is_mean(reduction: str) -> bool:
    if reduction not in ("mean", "sum"):
        raise ValueError(f"cross entropy reduces by 'mean' or 'sum', got {reduction!r}")
    return reduction == "mean"
