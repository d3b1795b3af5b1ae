"""Softmax over the last dimension, and its gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.choices import Choice, of_rows
from thunder_executors_triton.kernels.launch import as_rows, block_of, same_device
from thunder_executors_triton.kernels.tuning import launch_tuned

LONGEST = 16_384  # elements of a row, which a program holds in registers


@triton.jit
def softmax_kernel(x, y, x_stride, columns, BLOCK: tl.constexpr):
    """One row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < columns)


@triton.jit
def softmax_backward_kernel(dy, y, dx, dy_stride, y_stride, columns, BLOCK: tl.constexpr):
    """One row: ``y * (dy - sum(y * dy))``."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    g = tl.load(dy + row * dy_stride + at, mask=at < columns, other=0.0).to(tl.float32)
    p = tl.load(y + row * y_stride + at, mask=at < columns, other=0.0).to(tl.float32)
    d = p * (g - tl.sum(p * g, axis=0))
    tl.store(dx + row * columns + at, d.to(dx.dtype.element_ty), mask=at < columns)


def softmax_forward(x: torch.Tensor) -> torch.Tensor:
    """Return ``softmax(x, -1)``; ``x`` is floating, with at most 16,384 elements in its last dimension."""
    _check(x)
    rows = as_rows(x, x.shape[-1])
    y = torch.empty_like(x, memory_format=torch.contiguous_format)

    def run(c: Choice) -> None:
        softmax_kernel[(rows.count,)](
            rows.matrix, y, rows.stride, rows.columns, BLOCK=c.block, num_warps=c.warps
        )  # fmt: skip

    if x.numel():
        launch_tuned("softmax", rows.columns, x, of_rows(block_of(rows.columns, LONGEST)), run)
    return y


def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the input from that of the result ``y``."""
    _check(y)
    same_device(dy, y)
    gradients, rows = as_rows(dy, y.shape[-1]), as_rows(y, y.shape[-1])
    dx = torch.empty_like(y, memory_format=torch.contiguous_format)

    def run(c: Choice) -> None:
        softmax_backward_kernel[(rows.count,)](
            gradients.matrix, rows.matrix, dx, gradients.stride, rows.stride, rows.columns,
            BLOCK=c.block, num_warps=c.warps,
        )  # fmt: skip

    if y.numel():
        launch_tuned("softmax_backward", rows.columns, y, of_rows(block_of(rows.columns, LONGEST)), run)
    return dx


def _check(x: torch.Tensor) -> None:
    if x.ndim == 0 or x.shape[-1] > LONGEST:
        raise KernelError(f"softmax needs a last dimension of at most {LONGEST} elements, got {tuple(x.shape)}")
