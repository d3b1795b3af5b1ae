"""Batches of processes of which some have fewer than others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from thunder_distributed.axes import Axis, axis_of

Batch = TypeVar("Batch")


def join(
    batches: Iterable[Batch], device_mesh: Any = None, *, divide_by_initial_world_size: bool = True
) -> Iterator[tuple[Batch, float]]:
    """Yield a process's batches until the last process has none, each with the weight of its loss.

    A process that has no more gets its last batch again, with weight 0: it takes part in all that the others
    communicate, whatever they do with a batch, and adds nothing. Parameters stay equal.

    Args:
        batches: this process's, as many as there are.
        device_mesh: over which processes batches differ: a mesh of one dimension, a group or an axis; all if not given.
        divide_by_initial_world_size: whether gradients stay means over all processes, so that the weight is 1; or
            become means over those that still have batches.

    Raises:
        ValueError: in all processes, if one has no batch at all.

    Example:
        ``for (x, y), weight in join(loader): (F.cross_entropy(model(x), y) * weight).backward(); optimizer.step()``
    """
    axis, coming = axis_of(device_mesh), iter(batches)
    batch = next(coming, None)
    if _sum(int(batch is None), axis):
        raise ValueError("a process has no batch at all, and nothing to take part with: give each at least one")
    last = batch
    while True:
        active = _sum(int(batch is not None), axis)
        if not active:
            return
        share = 1.0 if divide_by_initial_world_size else axis.size / active
        last = last if batch is None else batch
        yield last, 0.0 if batch is None else share  # type: ignore[misc]
        batch = None if batch is None else next(coming, None)


def _sum(value: int, axis: Axis) -> int:
    backend = dist.get_backend(axis.process_group)
    count = torch.tensor(value, device="cuda" if backend == "nccl" else "cpu")
    dist.all_reduce(count, group=axis.process_group)
    return int(count)


__all__ = ["join"]
