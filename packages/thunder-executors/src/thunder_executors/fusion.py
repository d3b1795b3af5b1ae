"""Fusion executors, and the partition of a program into regions that they can take."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_executors.executor import Executor
from thunder_executors.implementation import Declined, Implementation, of_arguments
from thunder_executors.stages import producers_of, stages_of
from thunder_ir import BoundSymbol, OpTags, Proxy, Symbol, Trace
from thunder_ir.passes import evaluate


@dataclass(frozen=True, slots=True)
class Mark:
    """The tag of calls that a fusion executor takes."""

    executor: str


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Calls of a program that a fusion executor may run as one.

    Args:
        bound_symbols: in an order in which they can run.
        inputs: what they read from outside, in the order in which they read it.
        outputs: what others read of them, in the order in which it is defined.
    """

    bound_symbols: tuple[BoundSymbol, ...]
    inputs: tuple[Proxy, ...]
    outputs: tuple[Proxy, ...]

    def trace(self, name: str) -> Trace:
        """Return the region as a program of its own, whose output is a tuple."""
        return Trace(name, self.inputs, self.bound_symbols, self.outputs)


class FusionExecutor(Executor):
    """Runs whole regions of a program. A subclass says what a region becomes.

    Args:
        smallest_region: number of calls below which a region is left to others.
        (others): see :class:`Executor`.
    """

    def __init__(self, name: str, *, smallest_region: int = 2, **options: Any) -> None:
        super().__init__(name, **options)
        self.smallest_region = smallest_region
        self.mark = Mark(name)

    def register_supported(
        self,
        symbol: Symbol | str,
        checker: Callable[..., Any] | None = None,
        *,
        grad_transform: Callable[..., Any] | None = None,
    ) -> None:
        """Say that calls of ``symbol`` can be in a region.

        Args:
            symbol: an operation, or its id.
            checker: takes the arguments of a call; whether it can, or a :class:`Declined`.
            grad_transform: as for :meth:`OperatorExecutor.register_implementation`.
        """
        when = of_arguments(checker) if checker is not None else None
        self._file(symbol, [Implementation(self, None, when, grad_transform=grad_transform)])

    def can_fuse(self, bound: BoundSymbol) -> bool | Declined:
        """Whether this call can be in a region."""
        found = self.find(bound)
        if isinstance(found, Declined):
            return found
        return True if found.transform is None else Declined("some of its parts can be in a region, and not the whole")

    def opened(self, bound: BoundSymbol) -> Implementation | None:
        """Return how a call that cannot be in a region is made of calls of which some can, if it is worth that."""
        found = self.find(bound)
        return found if isinstance(found, Implementation) and found.transform is not None else None

    def again(self, bound: BoundSymbol) -> float | None:
        """Return what computing a call once more in a region costs, in bytes of memory traffic that take as long.

        What the call reads and returns is thought to stay within the region. ``None`` where no region computes it, or
        where this executor does not know: then it counts like an operation that stands alone.
        """
        return None

    def within(self, trace: Trace) -> FusionExecutor | None:
        """Return who is asked about the calls of a program: this executor, another where neighbours matter, or nobody.

        ``None`` is for programs that gain nothing by it.
        """
        return self

    def differentiates(self, bound: BoundSymbol) -> bool:
        """Whether derivatives of a call that can be in a region are left to regions, and to no other executor."""
        return True

    def fuse(self, region: Region, name: str) -> BoundSymbol | Sequence[BoundSymbol] | None:
        """Return one call that runs ``region``, or several, or ``None`` to leave it to others.

        Calls of the region that are among several are left to others.

        Args:
            region: what shall run.
            name: for the symbol of that call, not given to any other region of the program.
        """
        raise NotImplementedError(f"fusion executor {self.name} does not define fuse")

    def fused(self, region: Region, name: str, function: Callable[..., Any]) -> BoundSymbol:
        """Return the call of ``function``, which takes the region's inputs and returns the tuple of its outputs."""
        trace = region.trace(name)
        says_more = all([_says_more(b.symbol) for b in region.bound_symbols])  # for readers of the printed program
        replay = (lambda *inputs: evaluate(trace, inputs)) if says_more else None
        symbol = Symbol(name, self.name, decomposition=replay, implementation=function, executor=self, region=trace)
        first = [OpTags.BEFORE_WRITES] if any([OpTags.BEFORE_WRITES in b.tags for b in region.bound_symbols]) else []
        location = region.bound_symbols[0].location
        return BoundSymbol(symbol, region.inputs, {}, region.outputs, location, frozenset(first))


def cost_in_regions(executors: Sequence[Executor]) -> Callable[[BoundSymbol], float | None]:
    """Return what tells what computing a call once more costs in a region of the first executor that takes it."""
    fusing = [e for e in executors if isinstance(e, FusionExecutor)]
    known: dict[BoundSymbol, float | None] = {}

    def again(bound: BoundSymbol) -> float | None:
        if bound not in known:
            known[bound] = next((cost for e in fusing if (cost := e.again(bound)) is not None), None)
        return known[bound]

    return again


def for_all_of(trace: Trace, executors: Sequence[Executor]) -> list[Executor]:
    """Return who is asked about what a program is made into: as :func:`who_gains`, but those that gain nothing, too.

    Who leaves the derivative of a call to regions has to run both programs that come of it.
    """
    return [(e.within(trace) or e) if isinstance(e, FusionExecutor) else e for e in executors]


def who_gains(trace: Trace, executors: Sequence[Executor]) -> list[Executor]:
    """Return who is asked about the calls of a program: no fusion executors that it gains nothing by."""
    asked = [e.within(trace) if isinstance(e, FusionExecutor) else e for e in executors]
    return [e for e in asked if e is not None]


def _says_more(symbol: Symbol) -> bool:
    """Whether a symbol says more than what runs it."""
    return symbol.meta is not None or symbol.decomposition is not None


@dataclass(frozen=True, slots=True)
class Grouped:
    """The calls of a program in groups: regions, and calls that stand alone.

    Args:
        marked: for each call, whether it can be in a region.
        producers: for each call, the positions of those that must come before.
        group: for each call, the position of the first one of its group.
        members: of each group, in order.
    """

    marked: list[bool]
    producers: list[list[int]]
    group: list[int]
    members: dict[int, list[int]]


def grouped(bounds: Sequence[BoundSymbol], executor: FusionExecutor) -> Grouped:
    """Find the regions of a program; see :func:`partition`."""
    marked = [executor.mark in bound.tags for bound in bounds]
    producers = producers_of(bounds)
    stages = stages_of(bounds, producers, marked)
    group = _components(bounds, producers, marked, stages)
    members: dict[int, list[int]] = {}
    for position in range(len(bounds)):
        members.setdefault(group[position], []).append(position)
    return Grouped(marked, producers, group, members)


def partition(trace: Trace, executor: FusionExecutor) -> list[Region | BoundSymbol]:
    """Return the calls of a program, those marked for ``executor`` gathered into regions, in an order that can run.

    Regions grow along values (producer with consumer) and across (readers of one value). Merging never makes a cycle:
    a call's *stage* counts how often the longest way to it leaves a marked call for an unmarked one and comes back;
    marked calls of one stage depend on each other only through marked calls of that stage. What is read in later stages
    alone moves there, if nothing larger has to be kept for it: so what a backward program computes again stands in the
    region that reads it, or, where only a product reads it, in one that reads the same. Cost: n log n.

    Args:
        trace: the program, after :func:`claim`.
        executor: whose mark is looked for.
    """
    bounds = trace.bound_symbols
    found = grouped(bounds, executor)
    marked, group, members = found.marked, found.group, found.members
    order = _schedule(members, group, found.producers)
    read_by = _readers(bounds, group)
    final = {p.name for p in trace.outputs}
    out: list[Region | BoundSymbol] = []
    for root in order:
        if marked[root]:
            out.append(_region([bounds[i] for i in members[root]], root, read_by, final))
        else:
            out.append(bounds[root])
    return out


def _components(
    bounds: Sequence[BoundSymbol], producers: list[list[int]], marked: list[bool], stages: list[int]
) -> list[int]:
    """For each call, the first member of the group that it belongs to; an unmarked call is alone."""
    parent = list(range(len(bounds)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(i: int, j: int) -> None:
        i, j = root(i), root(j)
        parent[max(i, j)] = min(i, j)

    reader: dict[tuple[str, int], int] = {}
    for position, bound in enumerate(bounds):
        if not marked[position]:
            continue
        for producer in producers[position]:
            if marked[producer] and stages[producer] == stages[position]:
                join(position, producer)
        for proxy in bound.inputs:
            first = reader.setdefault((proxy.name, stages[position]), position)
            if first != position:
                join(position, first)
    return [root(i) for i in range(len(bounds))]


def _schedule(members: dict[int, list[int]], group: list[int], producers: list[list[int]]) -> list[int]:
    """Return the groups in an order that can run, each as late as its last member was."""
    waits = dict.fromkeys(members, 0)
    followers: dict[int, list[int]] = {g: [] for g in members}
    edges = {(group[p], group[i]) for i, before in enumerate(producers) for p in before if group[p] != group[i]}
    for before, after in edges:
        followers[before].append(after)
        waits[after] += 1
    ready = [(members[g][-1], g) for g, n in waits.items() if not n]
    heapq.heapify(ready)
    order = []
    while ready:
        _, g = heapq.heappop(ready)
        order.append(g)
        for follower in followers[g]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, (members[follower][-1], follower))
    return order


def _readers(bounds: Sequence[BoundSymbol], group: list[int]) -> dict[str, set[int]]:
    """For each value, the groups that read it."""
    readers: dict[str, set[int]] = {}
    for position, bound in enumerate(bounds):
        for proxy in bound.inputs:
            readers.setdefault(proxy.name, set()).add(group[position])
    return readers


def _region(bounds: list[BoundSymbol], root: int, readers: dict[str, set[int]], final: set[str]) -> Region:
    inputs: dict[str, Proxy] = {}
    outputs: list[Proxy] = []
    inside: set[str] = set()
    for bound in bounds:
        for proxy in bound.inputs:
            if proxy.name not in inside:
                inputs.setdefault(proxy.name, proxy)
        for proxy in bound.outputs:
            inside.add(proxy.name)
            if proxy.name in final or readers.get(proxy.name, set()) - {root}:
                outputs.append(proxy)
    return Region(tuple(bounds), tuple(inputs.values()), tuple(outputs))
