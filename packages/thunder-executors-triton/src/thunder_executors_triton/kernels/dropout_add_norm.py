"""``norm(residual + dropout(x))``, as between the layers of a transformer, with the mask drawn again for the gradient.

The random numbers are Triton's Philox by seed and element (Salmon et al., "Parallel random numbers: as easy as 1, 2,
3", 2011), not those of PyTorch's generator.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.launch import as_rows, block_of, same_device, warps_of
from thunder_executors_triton.kernels.normalization import LONGEST, layer_norm_backward, rms_norm_backward


@triton.jit
def dropout_add_norm_kernel(
    x, residual, weight, bias, y, total, mean, rstd, columns, eps, probability, seed,
    CENTRED: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    place = row * columns + at
    v = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    if probability > 0:
        v = tl.where(tl.rand(seed, place) >= probability, v / (1 - probability), 0.0)
    v += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    v = v.to(total.dtype.element_ty)
    tl.store(total + place, v, mask=inside)
    v = tl.where(inside, v.to(tl.float32), 0.0)
    if CENTRED:
        m = tl.sum(v, axis=0) / columns
        tl.store(mean + row, m)
        v = tl.where(inside, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(v * v, axis=0) / columns + eps)
    tl.store(rstd + row, r)
    v = v * r * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        v += tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def dropout_kernel(dy, dx, count, probability, seed, BLOCK: tl.constexpr):
    """A block of elements, by the mask that ``seed`` draws."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(dy + at, mask=at < count, other=0.0).to(tl.float32)
    d = tl.where(tl.rand(seed, at) >= probability, d / (1 - probability), 0.0)
    tl.store(dx + at, d.to(dx.dtype.element_ty), mask=at < count)


def dropout_add_norm_forward(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, probability: float,
    seed: int, eps: float = 1e-5, centred: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return ``norm(residual + dropout(x))``, the sum before the norm, and the means and inverse deviations of rows.

    Args:
        x: shape ``(..., columns)``, floating.
        residual: shape and dtype of ``x``.
        weight: shape ``(columns,)``.
        bias: shape ``(columns,)``.
        probability: of an element to be dropped, in ``[0, 1)``.
        seed: of the mask, below ``2**31``.
        eps: added to the variance.
        centred: layer norm; else root-mean-square norm.

    Raises:
        KernelError: shapes, devices or the probability do not fit.
    """
    same_device(x, residual, weight, bias)
    if x.shape != residual.shape or x.dtype != residual.dtype or weight.shape != x.shape[-1:] or not x.ndim:
        raise KernelError(
            f"dropout-add-norm needs x and residual alike and a weight of their last dimension, got "
            f"{tuple(x.shape)}, {tuple(residual.shape)}, {tuple(weight.shape)}"
        )
    if not 0 <= probability < 1:
        raise KernelError(f"dropout-add-norm needs a probability in [0, 1), got {probability}")
    columns = x.shape[-1]
    if columns > LONGEST:
        raise KernelError(f"a norm's rows have at most {LONGEST} elements, got {columns}")
    x, residual = x.contiguous(), residual.contiguous()
    rows = as_rows(x, columns)
    y, total = torch.empty_like(x), torch.empty_like(x)
    rstd = torch.empty(rows.count, dtype=torch.float32, device=x.device)
    mean = torch.empty_like(rstd)
    block = block_of(columns, LONGEST)
    if x.numel():
        dropout_add_norm_kernel[(rows.count,)](
            x, residual, weight.contiguous(), x if bias is None else bias.contiguous(), y, total, mean, rstd, columns,
            eps, probability, seed, CENTRED=centred, HAS_BIAS=bias is not None, BLOCK=block, num_warps=warps_of(block),
        )  # fmt: skip
    return y, total, mean, rstd


def dropout_add_norm_backward(
    dy: torch.Tensor, dtotal: torch.Tensor | None, total: torch.Tensor, weight: torch.Tensor,
    bias: torch.Tensor | None, mean: torch.Tensor, rstd: torch.Tensor, probability: float, seed: int,
    centred: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of ``x``, ``residual``, ``weight`` and ``bias``.

    ``dtotal`` is the gradient of the sum before the norm, if it was used.
    """
    if centred:
        d, dweight, dbias = layer_norm_backward(dy, total, weight.shape, mean, rstd, weight, bias)
    else:
        d, dweight = rms_norm_backward(dy, total, weight.shape, rstd, weight)
        dbias = None if bias is None else dy.reshape(-1, dy.shape[-1]).sum(0)
    if dtotal is not None:
        d = d + dtotal
    if probability == 0:
        return d, d, dweight, dbias
    dx = torch.empty_like(d)
    if d.numel():
        dropout_kernel[(triton.cdiv(d.numel(), 1024),)](d.contiguous(), dx, d.numel(), probability, seed, BLOCK=1024)
    return dx, d, dweight, dbias
