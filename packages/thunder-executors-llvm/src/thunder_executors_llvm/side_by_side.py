"""Which kernels of a finished program run at once: those that do not depend on each other, as in optimizers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from thunder_executors import FusionExecutor, Region, calls_of, free_after_last_use
from thunder_executors_llvm.runner import Overwriting, Runner
from thunder_executors_llvm.selection import elements
from thunder_executors_llvm.several import Part, Several
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace, flat_proxies
from thunder_ir.passes import has_effect, trace_pass

FEWEST = 4
"""Regions that are worth one call of their own."""

FEWEST_CALLS = 2 * FEWEST
"""Calls of a program below which nothing is looked for: those of so many regions, and those that forget values."""

LARGEST = 2**20
"""Elements of a tensor beyond which it does not matter what calling a kernel costs."""

HELD = 2**24
"""Bytes that regions may return together: so many more may be in use than if they ran one after the other."""

AFTER = 3
"""Calls of a program after which kernels are put together: native code has been made of it then, where that pays."""


@trace_pass
def side_by_side(trace: Trace, executor: FusionExecutor) -> Trace:
    """Let kernels run at once that do not depend on each other, where the first of them stands.

    Cost: linear.

    Args:
        trace: a program ready to run, with calls that write to inputs.
        executor: whose regions are looked for.
    """
    calls = calls_of(trace)
    groups = [g for g in _groups(calls) if len(g.members) >= FEWEST]
    if not groups:
        return trace
    first = {g.members[0]: n for n, g in enumerate(groups)}
    joined = {i for g in groups for i in g.members}
    made: list[BoundSymbol] = []
    for i, bound in enumerate(calls):
        if i in first:
            made.append(_together([calls[m] for m in groups[first[i]].members], executor, f"together_{first[i]}"))
        elif i not in joined:
            made.append(bound)
    return free_after_last_use(trace.replace(bound_symbols=tuple(made)))


def _together(bounds: Sequence[BoundSymbol], executor: FusionExecutor, name: str) -> BoundSymbol:
    """Return the call that runs regions at once."""
    inputs = {p.name: p for b in bounds for p in b.inputs}
    at = {name: i for i, name in enumerate(inputs)}
    parts = [Part(_overwriting(b), tuple([at[p.name] for p in b.inputs])) for b in bounds]
    region = Region(tuple(bounds), tuple(inputs.values()), tuple([p for b in bounds for p in b.outputs]))
    return executor.fused(region, name, Several(name, parts))


def _overwriting(bound: BoundSymbol) -> Overwriting:
    run = bound.symbol.implementation
    if isinstance(run, Overwriting):
        return run
    assert isinstance(run, Runner), "others are of no group"
    return Overwriting(run, MappingProxyType({}))


class _Memory:
    """Which values may share memory: what is no new tensor may share that of all which it was made of."""

    def __init__(self, calls: Sequence[BoundSymbol]) -> None:
        self.parent: dict[str, str] = {}
        for bound in calls:
            executor = bound.symbol.executor
            new = executor is not None and executor.makes_new(bound)
            shared = targets_of(bound) if new else tensors(bound.inputs)
            for p in tensors(bound.outputs) if shared else ():
                for other in shared:
                    self.parent[self.of(other.name)] = self.of(p.name)

    def of(self, name: str) -> str:
        """Return what is the same for values that may share memory."""
        parent = self.parent
        while (above := parent.get(name, name)) != name:
            parent[name] = parent.get(above, above)
            name = above
        return name


def tensors(proxies: Sequence[Proxy]) -> list[TensorProxy]:
    """Return those that have memory."""
    return [p for p in proxies if isinstance(p, TensorProxy)]


def targets_of(bound: BoundSymbol) -> list[TensorProxy]:
    """Return the tensors that a call writes to."""
    run = bound.symbol.implementation
    if isinstance(run, Overwriting):
        return [bound.args[at] for at in run.places.values()]
    if isinstance(bound.symbol.executor, FusionExecutor) and not isinstance(run, Runner):
        return tensors(bound.inputs)  # some of them, as far as is known here
    return tensors(flat_proxies(bound.kwargs.get("out")))


@dataclass(slots=True)
class _Group:
    """Regions that may run at once, where the first of them stands.

    Args:
        members: their positions.
        made: names of what is computed from there on.
        read: memory that is read from there on, or written to.
        written: memory that is written to.
        bytes: that the regions return, or write between their kernels.
    """

    members: list[int] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    bytes: int = 0

    def note(self, bound: BoundSymbol, read: set[str], written: set[str]) -> None:
        """Take note of a call, of the group or not."""
        self.made.update([p.name for p in bound.outputs])
        self.read |= read
        self.written |= written

    def admits(self, bound: BoundSymbol, read: set[str], written: set[str], size: int) -> bool:
        """Whether a region can run where the group stands."""
        depends = not self.made.isdisjoint([p.name for p in bound.inputs])
        overwrites = not self.written.isdisjoint(read) or not self.read.isdisjoint(written)
        return not depends and not overwrites and self.bytes + size <= HELD


def _groups(calls: Sequence[BoundSymbol]) -> list[_Group]:
    """Return the groups of a program's kernels."""
    memory = _Memory(calls)
    found = [_Group()]
    for i, bound in enumerate(calls):
        if has_effect(bound) or OpTags.BEFORE_WRITES in bound.tags:
            found.append(_Group())  # nothing is written before what may raise
            continue
        read = {memory.of(p.name) for p in tensors(bound.inputs)}
        written = {memory.of(p.name) for p in targets_of(bound)}
        size = _new_bytes(bound)
        if size is not None:
            if not found[-1].members or not found[-1].admits(bound, read, written, size):
                found.append(_Group())
            found[-1].members.append(i)
            found[-1].bytes += size
        if found[-1].members:
            found[-1].note(bound, read, written)
    return found


def _new_bytes(bound: BoundSymbol) -> int | None:
    """Return how much memory a region of small tensors takes that checks no index; ``None`` for other calls."""
    run = bound.symbol.implementation
    places = run.places if isinstance(run, Overwriting) else {}
    runner = run.runner if isinstance(run, Overwriting) else run
    if not isinstance(runner, Runner) or runner.program.checks:
        return None
    if not bound.inputs or len(tensors(bound.inputs)) < len(bound.inputs):
        return None
    if max([elements(p) for p in tensors((*bound.inputs, *bound.outputs))]) > LARGEST:
        return None
    new = [p for n, p in enumerate(tensors(bound.outputs)) if n not in places]
    between = runner.program.temporaries
    if any([isinstance(size, str) for b in between for size in b.shape]):
        return None
    inner = sum([b.dtype.bytes * math.prod([int(size) for size in b.shape]) for b in between])
    return inner + sum([p.dtype.bytes * elements(p) for p in new])
