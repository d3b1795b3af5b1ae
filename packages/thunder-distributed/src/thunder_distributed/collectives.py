"""What runs the collectives: ``torch.distributed``, without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import torch.distributed as dist

from thunder_distributed.axes import Axis
from thunder_distributed.buffers import Buffer
from thunder_distributed.in_flight import Pending

REDUCTIONS = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
"""A mean is a sum of what was scaled before, as gloo has no mean, and as DistributedDataParallel does it."""

_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


SENT = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "broadcast": 1.0,
    "all_to_all": 1.0,
    "permute": 1.0,
}
"""How many times the whole, less what stays, goes out of each process, where nothing is sent twice."""


def _begun(name: str, a: torch.Tensor, axis: Axis) -> str:
    """Note a collective in the ledger, and describe it."""
    n = axis.size
    whole = a.numel() * a.element_size() * (n if name == "all_gather" else 1)
    share = 1.0 if name == "permute" else (n - 1) / n
    axis.ledger.begin(SENT[name] * share * whole)
    return f"{name} of {str(a.dtype).removeprefix('torch.')}{list(a.shape)} over axis {axis.name!r} ({axis.size})"


def _to_send(a: torch.Tensor, axis: Axis, operation: str) -> torch.Tensor:
    """Return a contiguous tensor of its own to send, scaled for a mean."""
    if operation == "mean":
        return torch.mul(a, 1 / axis.size).contiguous()
    return a.clone(memory_format=torch.contiguous_format)


def all_reduce(a: torch.Tensor, axis: Axis, operation: str = "sum", bucket: Any = None) -> Pending:
    """Begin to combine the tensors of all processes."""
    return _all_reduced(_to_send(a, axis, operation), axis, operation)


def all_reduce_within(a: torch.Tensor, axis: Axis, operation: str = "sum", bucket: Any = None) -> Pending:
    """Begin to combine the tensors of all processes; the result takes the place of ``a``, if that is contiguous."""
    a = a.contiguous()
    return _all_reduced(a.mul_(1 / axis.size) if operation == "mean" else a, axis, operation)


def _all_reduced(a: torch.Tensor, axis: Axis, operation: str) -> Pending:
    work = dist.all_reduce(a, REDUCTIONS[operation], group=axis.process_group, async_op=True)
    return Pending(a, [work], _begun("all_reduce", a, axis), axis.ledger)


def all_gather(a: torch.Tensor, axis: Axis, dim: int = 0, bucket: Any = None) -> Pending:
    """Begin to join the tensors of all processes along a dimension."""
    a = a.contiguous()
    gathered = a.new_empty((axis.size * a.shape[0], *a.shape[1:]) if a.ndim else (axis.size,))
    work = _all_gather(gathered, a, group=axis.process_group, async_op=True)
    joins = None if dim == 0 else lambda whole: torch.cat(whole.chunk(axis.size), dim)
    return Pending(gathered, [work], _begun("all_gather", a, axis), axis.ledger, [a], joins)


def reduce_scatter(a: torch.Tensor, axis: Axis, operation: str = "sum", dim: int = 0, bucket: Any = None) -> Pending:
    """Begin to combine the tensors of all processes, of which each gets its part.

    What gloo sends is scaled for a mean when it comes, in place, and elsewhere before it is sent: both give the same.
    """
    scale = 1 / axis.size if operation == "mean" else None
    if dim:
        a = torch.cat(a.chunk(axis.size, dim))
    if _sends_parts(axis, operation):
        return _scattered(a.contiguous(), axis, operation, scale)
    return _scattered((a if scale is None else torch.mul(a, scale)).contiguous(), axis, operation, None)


def reduce_scatter_scaled(
    a: torch.Tensor, axis: Axis, operation: str = "sum", dim: int = 0, bucket: Any = None
) -> Pending:
    """Begin to combine contiguous tensors of all processes, scaled already, of which each gets its part in order."""
    return _scattered(a, axis, operation, None)


def _sends_parts(axis: Axis, operation: str) -> bool:
    """Whether every process gets all parts of its own share, and combines them: gloo sends twice what is needed."""
    return dist.get_backend(axis.process_group) == "gloo" and operation not in ("max", "min")


def _scattered(a: torch.Tensor, axis: Axis, operation: str, scale: float | None) -> Pending:
    what = _begun("reduce_scatter", a, axis)
    group, part = axis.process_group, (a.shape[0] // axis.size, *a.shape[1:])
    if not _sends_parts(axis, operation):
        result = a.new_empty(part)
        work = _reduce_scatter(result, a, REDUCTIONS[operation], group=group, async_op=True)
        return Pending(result, [work], what, axis.ledger, [a])
    received = torch.empty_like(a)
    work = dist.all_to_all_single(received, a, group=group, async_op=True)

    def combined(parts: torch.Tensor) -> torch.Tensor:
        parts = parts if scale is None else parts.mul_(scale)
        return parts.view(axis.size, *part).sum(0)

    return Pending(received, [work], what, axis.ledger, [a], combined)


def broadcast(a: torch.Tensor, axis: Axis, source: int = 0) -> Pending:
    """Begin to send the tensor of one process to all."""
    sent = a.clone(memory_format=torch.contiguous_format)
    work = dist.broadcast(sent, axis.global_rank(source), group=axis.process_group, async_op=True)
    return Pending(sent, [work], _begun("broadcast", a, axis), axis.ledger)


def on_rank(a: torch.Tensor, axis: Axis, rank: int) -> torch.Tensor:
    """Return ``a`` in one process, and zeros in all others."""
    return a if axis.rank == rank else torch.zeros_like(a)


def part(a: torch.Tensor, axis: Axis, dim: int, shift: int = 0) -> torch.Tensor:
    """Return the part of a tensor of the process ``shift`` ranks on."""
    size = a.shape[dim] // axis.size
    return a.narrow(dim, (axis.rank + shift) % axis.size * size, size)


def placed(a: torch.Tensor, axis: Axis, dim: int, shift: int = 0) -> torch.Tensor:
    """Return zeros with the part of the process ``shift`` ranks on at its place."""
    size = a.shape[dim]
    whole = a.new_zeros([n * axis.size if i == dim else n for i, n in enumerate(a.shape)])
    whole.narrow(dim, (axis.rank + shift) % axis.size * size, size).copy_(a)
    return whole


def joined_from_ring(parts: Sequence[torch.Tensor], axis: Axis, dim: int) -> torch.Tensor:
    """Join parts that came around the ring, this process's first, in the order of ranks."""
    return torch.cat([parts[(axis.rank - i) % axis.size] for i in range(axis.size)], dim)


def counted_from_part(a: torch.Tensor, axis: Axis, step: int) -> torch.Tensor:
    """Return integers counted from where this process's part begins."""
    return a - axis.rank * step


def all_to_all(a: torch.Tensor, axis: Axis, split: int = 0, join: int = 0) -> Pending:
    """Begin to send each process its part; what comes is joined."""
    sent = torch.stack(a.chunk(axis.size, split)).contiguous()
    received = torch.empty_like(sent)
    work = dist.all_to_all_single(received, sent, group=axis.process_group, async_op=True)
    what = _begun("all_to_all", a, axis)
    return Pending(received, [work], what, axis.ledger, [sent], lambda parts: torch.cat(list(parts.unbind(0)), join))


def permute(a: torch.Tensor, axis: Axis, shift: int = 1) -> Pending:
    """Begin to send the tensor around the ring."""
    what, rank = _begun("permute", a, axis), axis.rank
    if shift % axis.size == 0:
        return Pending(a.clone(), [], what, axis.ledger)
    sent = a.contiguous()
    received = torch.empty_like(sent)
    group = axis.process_group
    to, source = (axis.global_rank((rank + by) % axis.size) for by in (shift, -shift))
    operations = [dist.P2POp(dist.isend, sent, to, group), dist.P2POp(dist.irecv, received, source, group)]
    return Pending(received, dist.batch_isend_irecv(operations), what, axis.ledger, [sent])


def pack(
    tensors: Sequence[torch.Tensor],
    parts: int = 1,
    dims: Sequence[int] = (),
    scale: float | None = None,
    buffer: Buffer | None = None,
) -> torch.Tensor:
    """Lay tensors out in one buffer, each cut into parts."""
    first = tensors[0]
    count = sum([t.numel() for t in tensors])
    made = (
        torch.empty(count, dtype=first.dtype, device=first.device)
        if buffer is None
        else buffer.take(count, first.dtype, first.device)
    )
    rows = made.view(parts, count // parts)
    place = 0
    for i, t in enumerate(tensors):
        dim = dims[i] if dims else 0
        wide = t.numel() // parts
        if wide:
            shape = list(t.shape)
            if shape:
                shape[dim] //= parts
            cut = (
                t.reshape(*t.shape[:dim], parts, -1, *t.shape[dim + 1 :]).movedim(dim, 0)
                if parts > 1
                else t.unsqueeze(0)
            )
            target = rows[:, place : place + wide].view(parts, *shape)
            if scale is None:
                target.copy_(cut)
            else:
                torch.mul(cut, scale, out=target)
        place += wide
    return made


def unpack(
    buffer: torch.Tensor, shapes: Sequence[Sequence[int]], parts: int = 1, dims: Sequence[int] = ()
) -> tuple[torch.Tensor, ...]:
    """Find the tensors that were laid out in a buffer."""
    rows = buffer.view(parts, -1)
    found, place = [], 0
    for i, shape in enumerate(shapes):
        wide = prod(shape) // parts
        piece = rows[:, place : place + wide]
        place += wide
        dim = dims[i] if dims else 0
        if parts == 1:
            found.append(piece.view(tuple(shape)))
        else:
            cut = [*shape]
            cut[dim] //= parts
            found.append(torch.cat([row.view(cut) for row in piece.unbind(0)], dim))
    return tuple(found)


__all__ = [
    "all_gather", "all_reduce", "all_reduce_within", "all_to_all", "broadcast", "counted_from_part", "on_rank", "pack",
    "part", "permute", "placed", "reduce_scatter", "reduce_scatter_scaled", "unpack",
]  # fmt: skip
