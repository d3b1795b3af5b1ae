"""AdamW over many tensors in one launch (Loshchilov and Hutter, "Decoupled weight decay regularization", 1711.05101).

A table on the device names for each block of elements the tensor that it belongs to; addresses are read from another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from thunder_executors_triton.errors import KernelError
from thunder_executors_triton.kernels.launch import same_device

BLOCK = 1024


@triton.jit
def adamw_kernel(
    parameters, gradients, averages, squares, counts, owners, firsts, sample, kept_weight, new_average,
    kept_square, new_square, size, root, eps, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of one tensor; ``sample`` is any of the tensors, for the dtype of all."""
    program = tl.program_id(0)
    owner = tl.load(owners + program)
    at = tl.load(firsts + program) + tl.arange(0, BLOCK)
    inside = at < tl.load(counts + owner)
    pointer = tl.pointer_type(sample.dtype.element_ty)
    p_at = tl.load(parameters + owner).to(pointer) + at
    g_at = tl.load(gradients + owner).to(pointer) + at
    m_at = tl.load(averages + owner).to(tl.pointer_type(tl.float32)) + at
    v_at = tl.load(squares + owner).to(tl.pointer_type(tl.float32)) + at
    p = tl.load(p_at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(g_at, mask=inside, other=0.0).to(tl.float32)
    m = tl.load(m_at, mask=inside, other=0.0)
    v = tl.load(v_at, mask=inside, other=0.0)
    p = p * kept_weight
    m = m + (g - m) * new_average
    v = v * kept_square + g * g * new_square
    p = p - size * m / (tl.sqrt(v) / root + eps)
    tl.store(m_at, m, mask=inside)
    tl.store(v_at, v, mask=inside)
    tl.store(p_at, p.to(sample.dtype.element_ty), mask=inside)


def adamw_step(
    parameters: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor],
    averages: Sequence[torch.Tensor],
    squares: Sequence[torch.Tensor],
    step: int,
    rate: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    decay: float = 1e-2,
) -> None:
    """Make one step of AdamW, in place.

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

    Raises:
        KernelError: lists or tensors do not fit together.

    Source:
        ``torch.optim.AdamW``, computed in float32.
    """
    lists = (parameters, gradients, averages, squares)
    _check(*lists)
    kept = [i for i, p in enumerate(parameters) if p.numel()]
    if not kept:
        return
    device = same_device(*(t for tensors in lists for t in tensors))
    counts = [parameters[i].numel() for i in kept]
    owners = [k for k, count in enumerate(counts) for _ in range(triton.cdiv(count, BLOCK))]
    firsts = [block * BLOCK for count in counts for block in range(triton.cdiv(count, BLOCK))]
    addresses = [[tensors[i].data_ptr() for i in kept] for tensors in lists]
    # One transfer: what is read per tensor, then what is read per block.
    table = torch.tensor([*sum(addresses, []), *counts, *owners, *firsts], dtype=torch.int64).to(device)
    number = len(kept)
    tables = [table[k * number : (k + 1) * number] for k in range(5)]
    blocks = table[5 * number :]
    adamw_kernel[(len(owners),)](
        *tables, blocks[: len(owners)], blocks[len(owners) :], parameters[kept[0]], 1 - rate * decay,
        1 - betas[0], betas[1], 1 - betas[1], rate / (1 - betas[0] ** step), math.sqrt(1 - betas[1] ** step), eps,
        BLOCK=BLOCK,
    )  # fmt: skip


def _check(parameters: Sequence[torch.Tensor], *others: Sequence[torch.Tensor]) -> None:
    if any(len(tensors) != len(parameters) for tensors in others):
        raise KernelError("AdamW needs as many gradients and averages as parameters")
    if len({p.dtype for p in parameters}) > 1:
        raise KernelError("AdamW needs parameters of one dtype; make a step for each")
    for number, (p, g, m, v) in enumerate(zip(parameters, *others, strict=True)):
        fits = g.dtype == p.dtype and m.dtype == v.dtype == torch.float32 and g.shape == m.shape == v.shape == p.shape
        if not fits or not all(t.is_contiguous() for t in (p, g, m, v)):
            raise KernelError(
                f"AdamW needs a contiguous gradient of dtype {p.dtype} and contiguous float32 averages of shape "
                f"{tuple(p.shape)} for parameter {number}"
            )
