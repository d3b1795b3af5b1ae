"""Layer norm and root-mean-square norm over the last dimensions, and their gradients.

A program of the forward kernels takes one row. A program of the backward kernels takes every so-many-th row and keeps a
partial sum of the parameters' gradients, in float32 and in the order of rows; PyTorch adds these up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.choices import Choice, of_rows
from thunder_executors_triton.kernels.launch import Rows, as_rows, block_of, programs_for, same_device
from thunder_executors_triton.kernels.tuning import launch_tuned

LONGEST = 16_384  # elements of a row, which a program holds in registers


@triton.jit
def norm_kernel(
    x, weight, bias, y, mean, rstd, x_stride, y_stride, columns, eps,
    CENTRED: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Normalise one row; ``CENTRED`` takes its mean away."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    if CENTRED:
        m = tl.sum(v, axis=0) / columns
        tl.store(mean + row, m)
        v = tl.where(inside, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(v * v, axis=0) / columns + eps)
    tl.store(rstd + row, r)
    v = v * r
    if HAS_WEIGHT:
        v = v * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        v = v + tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * y_stride + at, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def norm_backward_kernel(
    dy, x, weight, mean, rstd, dx, dweight, dbias, dy_stride, x_stride, rows, columns,
    CENTRED: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of rows ``p, p + programs, ...``: theirs, and partial sums of those of the parameters."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    if HAS_WEIGHT:
        w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(0, tl.cdiv(rows - program, programs)):
        place = program.to(tl.int64) + step * programs
        g = tl.load(dy + place * dy_stride + at, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + place * x_stride + at, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(rstd + place)
        if CENTRED:
            v = tl.where(inside, v - tl.load(mean + place), 0.0)
        v = v * r
        if HAS_WEIGHT:
            dw += g * v
        if HAS_BIAS:
            db += g
        if HAS_WEIGHT:
            g = g * w
        along = tl.sum(g * v, axis=0) / columns
        d = g - v * along
        if CENTRED:
            d = d - tl.sum(g, axis=0) / columns
        tl.store(dx + place * columns + at, (d * r).to(dx.dtype.element_ty), mask=inside)
    if HAS_WEIGHT:
        tl.store(dweight + program * columns + at, dw, mask=inside)
    if HAS_BIAS:
        tl.store(dbias + program * columns + at, db, mask=inside)


def layer_norm_forward(
    x: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ``layer_norm(x, ...)``, and the means and inverse deviations of its rows.

    Args:
        x: shape ``(..., *normalized_shape)``, floating.
        normalized_shape: of the last dimensions.
        weight: shape ``normalized_shape``.
        bias: shape ``normalized_shape``.
        eps: added to the variance.

    Returns:
        shape and dtype of ``x``; twice shape ``(rows,)``, float32.

    Raises:
        KernelError: shapes or devices do not fit, or a row has more than 16,384 elements.
    """
    return _forward(x, normalized_shape, weight, bias, eps, True)


def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, normalized_shape: Sequence[int], mean: torch.Tensor, rstd: torch.Tensor,
    weight: torch.Tensor | None = None, bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of ``x``, ``weight`` and ``bias``; ``None`` for a parameter that is not there."""
    return _backward(dy, x, normalized_shape, mean, rstd, weight, bias)


def rms_norm_forward(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``rms_norm(x, ...)``, and the inverse root mean squares of its rows, shape ``(rows,)``, float32."""
    y, _, rstd = _forward(x, normalized_shape, weight, None, eps, False)
    return y, rstd


def rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, normalized_shape: Sequence[int], rstd: torch.Tensor,
    weight: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of ``x`` and of ``weight``; ``None`` where there is none."""
    dx, dweight, _ = _backward(dy, x, normalized_shape, None, rstd, weight, None)
    return dx, dweight


def _rows(x: torch.Tensor, shape: Sequence[int], parameters: Sequence[torch.Tensor | None]) -> Rows:
    shape = tuple(shape)
    if not shape or tuple(x.shape[x.ndim - len(shape) :]) != shape or len(shape) > x.ndim:
        raise KernelError(f"a norm over {shape} needs a tensor that ends in it, got {tuple(x.shape)}")
    if any(p is not None and tuple(p.shape) != shape for p in parameters):
        raise KernelError(f"a norm over {shape} needs weight and bias of that shape")
    columns = math.prod(shape)
    if columns > LONGEST:
        raise KernelError(f"a norm's rows have at most {LONGEST} elements, got {columns}")
    same_device(x, *parameters)
    return as_rows(x, columns)


def _forward(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float,
    centred: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    rows = _rows(x, shape, (weight, bias))
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    rstd = torch.empty(rows.count, dtype=torch.float32, device=x.device)
    mean = torch.empty_like(rstd) if centred else rstd

    def run(c: Choice) -> None:
        norm_kernel[(rows.count,)](
            rows.matrix, x if weight is None else weight.contiguous(), x if bias is None else bias.contiguous(), y,
            mean, rstd, rows.stride, rows.columns, rows.columns, eps,
            CENTRED=centred, HAS_WEIGHT=weight is not None, HAS_BIAS=bias is not None, BLOCK=c.block,
            num_warps=c.warps,
        )  # fmt: skip

    if x.numel():
        launch_tuned("norm", rows.columns, x, of_rows(block_of(rows.columns, LONGEST)), run)
    return y, mean, rstd


def _backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Sequence[int], mean: torch.Tensor | None, rstd: torch.Tensor,
    weight: torch.Tensor | None, bias: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    rows = _rows(x, shape, (weight, bias))
    gradients = as_rows(dy, rows.columns)
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    programs = programs_for(rows.count, x.device)
    dweight = x.new_zeros((programs, rows.columns), dtype=torch.float32) if weight is not None else rstd
    dbias = x.new_zeros((programs, rows.columns), dtype=torch.float32) if bias is not None else rstd

    def run(c: Choice) -> None:
        norm_backward_kernel[(programs,)](
            gradients.matrix, rows.matrix, x if weight is None else weight.contiguous(), rstd if mean is None else mean,
            rstd, dx, dweight, dbias, gradients.stride, rows.stride, rows.count, rows.columns,
            CENTRED=mean is not None, HAS_WEIGHT=weight is not None, HAS_BIAS=bias is not None, BLOCK=c.block,
            num_warps=c.warps,
        )  # fmt: skip

    if x.numel():
        launch_tuned("norm_backward", rows.columns, x, of_rows(block_of(rows.columns, LONGEST)), run)
    return (
        dx,
        None if weight is None else dweight.sum(0).to(weight.dtype).reshape(weight.shape),
        None if bias is None else dbias.sum(0).to(bias.dtype).reshape(bias.shape),
    )
