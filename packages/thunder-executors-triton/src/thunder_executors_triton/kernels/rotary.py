"""Rotary position embedding (Su et al., "RoFormer", arXiv 2104.09864), by rotating halves of the head."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.launch import block_of, same_device


@triton.jit
def rotary_kernel(
    x, cosine, sine, y, x0, x1, x2, heads, length, table0, half, INVERSE: tl.constexpr, BLOCK: tl.constexpr
):
    """One head of one position; strides ``x0, x1, x2`` of batch, head and position, the last dimension in one piece."""
    program = tl.program_id(0).to(tl.int64)
    position = program % length
    head = (program // length) % heads
    batch = program // (length * heads)
    at = tl.arange(0, BLOCK)
    inside = at < half
    x += batch * x0 + head * x1 + position * x2
    y += program * 2 * half
    table = batch * table0 + position * 2 * half
    low = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(x + half + at, mask=inside, other=0.0).to(tl.float32)
    c_low = tl.load(cosine + table + at, mask=inside, other=0.0).to(tl.float32)
    c_high = tl.load(cosine + table + half + at, mask=inside, other=0.0).to(tl.float32)
    s_low = tl.load(sine + table + at, mask=inside, other=0.0).to(tl.float32)
    s_high = tl.load(sine + table + half + at, mask=inside, other=0.0).to(tl.float32)
    if INVERSE:
        first = low * c_low + high * s_high
        second = high * c_high - low * s_low
    else:
        first = low * c_low - high * s_low
        second = high * c_high + low * s_high
    tl.store(y + at, first.to(y.dtype.element_ty), mask=inside)
    tl.store(y + half + at, second.to(y.dtype.element_ty), mask=inside)


def rotary_forward(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return ``x * cosine + rotate_half(x) * sine``, where the second half of a head, negated, comes before the first.

    Args:
        x: shape ``(batch, heads, length, width)``, floating, ``width`` even.
        cosine: shape ``(batch or 1, length, width)``.
        sine: shape of ``cosine``.

    Raises:
        KernelError: shapes or devices do not fit.
    """
    return _rotate(x, cosine, sine, False)


def rotary_backward(dy: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return the gradient of ``x``: the transposed rotation of ``dy``."""
    return _rotate(dy, cosine, sine, True)


def _rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, inverse: bool) -> torch.Tensor:
    same_device(x, cosine, sine)
    fits = x.ndim == 4 and cosine.ndim == 3 and cosine.shape == sine.shape
    if not fits or x.shape[3] % 2 or cosine.shape[1:] != x.shape[2:] or cosine.shape[0] not in (1, x.shape[0]):
        raise KernelError(
            f"rotary embedding needs x (batch, heads, length, even width) and tables (batch or 1, length, width), got "
            f"{tuple(x.shape)}, {tuple(cosine.shape)}, {tuple(sine.shape)}"
        )
    x = x if x.stride(3) == 1 else x.contiguous()
    cosine, sine = cosine.contiguous(), sine.contiguous()
    batch, heads, length, width = x.shape
    y = torch.empty((batch, heads, length, width), dtype=x.dtype, device=x.device)
    if x.numel():
        rotary_kernel[(batch * heads * length,)](
            x, cosine, sine, y, x.stride(0), x.stride(1), x.stride(2), heads, length,
            0 if cosine.shape[0] == 1 else cosine.stride(0), width // 2, INVERSE=inverse, BLOCK=block_of(width // 2),
            num_warps=1,
        )  # fmt: skip
    return y
