"""``silu(gate) * up``, the gate of SwiGLU (Shazeer, "GLU variants improve transformer", arXiv 2002.05202)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.choices import OF_ELEMENTS, Choice
from thunder_executors_triton.kernels.launch import same_device
from thunder_executors_triton.kernels.tuning import launch_tuned


@triton.jit
def swiglu_kernel(gate, up, y, count, BLOCK: tl.constexpr):
    """A block of elements."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < count, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(y + at, (g / (1 + tl.exp(-g)) * u).to(y.dtype.element_ty), mask=at < count)


@triton.jit
def swiglu_backward_kernel(dy, gate, up, dgate, dup, count, BLOCK: tl.constexpr):
    """A block of elements; the sigmoid is computed again."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(dy + at, mask=at < count, other=0.0).to(tl.float32)
    g = tl.load(gate + at, mask=at < count, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=at < count, other=0.0).to(tl.float32)
    s = 1 / (1 + tl.exp(-g))
    tl.store(dup + at, (d * g * s).to(dup.dtype.element_ty), mask=at < count)
    tl.store(dgate + at, (d * u * s * (1 + g * (1 - s))).to(dgate.dtype.element_ty), mask=at < count)


def swiglu_forward(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return ``silu(gate) * up``, for two floating tensors of one shape and dtype."""
    _check(gate, up)
    gate, up = gate.contiguous(), up.contiguous()
    y = torch.empty_like(gate)

    def run(c: Choice) -> None:
        grid = (triton.cdiv(gate.numel(), c.block),)
        swiglu_kernel[grid](gate, up, y, gate.numel(), BLOCK=c.block, num_warps=c.warps)

    if gate.numel():
        launch_tuned("swiglu", gate.numel(), gate, OF_ELEMENTS, run)
    return y


def swiglu_backward(dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of ``gate`` and ``up``."""
    _check(dy, gate, up)
    dy, gate, up = dy.contiguous(), gate.contiguous(), up.contiguous()
    dgate, dup = torch.empty_like(gate), torch.empty_like(up)

    def run(c: Choice) -> None:
        grid = (triton.cdiv(gate.numel(), c.block),)
        swiglu_backward_kernel[grid](
            dy, gate, up, dgate, dup, gate.numel(), BLOCK=c.block, num_warps=c.warps
        )  # fmt: skip

    if gate.numel():
        launch_tuned("swiglu_backward", gate.numel(), gate, OF_ELEMENTS, run)
    return dgate, dup


def _check(*tensors: torch.Tensor) -> None:
    same_device(*tensors)
    kinds = {(tuple(t.shape), t.dtype) for t in tensors}
    if len(kinds) != 1:
        raise KernelError(f"SwiGLU needs tensors of one shape and dtype, got {sorted(map(str, kinds))}")
