"""Handing regions to fusion executors, and what they do not want to the others."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_executors.claim import claim
from thunder_executors.executor import Executor
from thunder_executors.fusion import FusionExecutor, Region, partition
from thunder_executors.repeat import repeat_in_regions
from thunder_ir import BoundSymbol, OpTags, Trace
from thunder_ir.passes import trace_pass


@trace_pass
def fuse(trace: Trace, executors: Sequence[Executor]) -> Trace:
    """Let each fusion executor take its regions; those it leaves go to the executors behind it.

    Args:
        trace: the program, after :func:`claim` with the same executors.
        executors: in the order in which they were asked.
    """
    others = list(executors)
    for executor in executors:
        if isinstance(executor, FusionExecutor):
            others.remove(executor)  # for good: what it left must not come back to it, as its turn is over
            trace = _fuse_with(trace, executor, others)
    return trace


def _fuse_with(trace: Trace, executor: FusionExecutor, others: list[Executor]) -> Trace:
    if not any([executor.mark in bound.tags for bound in trace.bound_symbols]):
        return trace
    kept: list[BoundSymbol] = []
    left, number = False, 0
    trace = repeat_in_regions(trace, executor)
    for part in partition(trace, executor):
        if isinstance(part, BoundSymbol):
            kept.append(part)
            continue
        calls = _calls_of(part, executor, f"{executor.name}_{number}")
        number += calls is not None
        for call in part.bound_symbols if calls is None else calls:
            marked = executor.mark in call.tags
            left = left or marked
            kept.append(call.replace(tags=call.tags - {executor.mark}) if marked else call)
    fused = trace.replace(bound_symbols=tuple(kept))
    return claim(fused, others) if left else fused


def _calls_of(region: Region, executor: FusionExecutor, name: str) -> Sequence[BoundSymbol] | None:
    """Return the calls that run a region; ``None`` where it is too small or not wanted."""
    if len(region.bound_symbols) < executor.smallest_region or not region.outputs:
        return None
    made = executor.fuse(region, name)
    calls = [made] if isinstance(made, BoundSymbol) else made
    if calls is not None and any([OpTags.BEFORE_WRITES in bound.tags for bound in region.bound_symbols]):
        return [call.replace(tags=call.tags | {OpTags.BEFORE_WRITES}) for call in calls]
    return calls
