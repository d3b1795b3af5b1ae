"""Computing values once more in the region that reads them, where that costs less than writing them to memory."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from thunder_executors.fusion import FusionExecutor, Grouped, grouped
from thunder_executors.order import bytes_of
from thunder_ir import BoundSymbol, Names, OpTags, Proxy, Trace, reached
from thunder_ir.passes import dead_code_elimination
from thunder_ir.passes.traits import has_effect, is_random, may_fail

PASSES = 2
"""Passes over memory that a value makes which one region writes for another one to read."""


def repeat_in_regions(trace: Trace, executor: FusionExecutor) -> Trace:
    """Return the program such that regions compute themselves what they would read of others, where that costs less.

    Values that others read, too, are in memory anyway and stay. The cost is linear in the number of calls, times the
    length of what is repeated.

    Args:
        trace: the program, after :func:`claim`.
        executor: whose mark is looked for, and who tells what computing a call once more costs.
    """
    if any(map(has_effect, trace.bound_symbols)):  # what is read may be written to in between
        return trace
    repeating = _Repeating(trace, executor, grouped(trace.bound_symbols, executor))
    repeating.choose()
    return repeating.applied() if repeating.chains else trace


@dataclass(slots=True)
class _Repeating:
    """What is repeated of one program."""

    trace: Trace
    executor: FusionExecutor
    found: Grouped
    made_at: dict[str, int] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    """Values that are in memory anyway."""

    chains: dict[int, set[int]] = field(default_factory=dict)
    """For each region, the positions of the calls that it repeats."""

    def choose(self) -> None:
        bounds, group, marked = self.trace.bound_symbols, self.found.group, self.found.marked
        self.made_at = {p.name: i for i, b in enumerate(bounds) for p in b.outputs}
        self.kept = {p.name for p in self.trace.outputs}
        readers: dict[str, set[int]] = {}
        for position, bound in enumerate(bounds):
            for proxy in bound.inputs:
                if not marked[position]:
                    self.kept.add(proxy.name)
                elif (made := self.made_at.get(proxy.name)) is not None and group[made] != group[position]:
                    readers.setdefault(proxy.name, set()).add(group[position])
        of_region = {root: {p.name for i in m for p in bounds[i].inputs} for root, m in self.found.members.items()}
        pending = [(-self.made_at[name], name) for name in readers]
        heapq.heapify(pending)  # from the last one to the first: what is repeated reads what is made before it
        while pending:
            _, name = heapq.heappop(pending)
            made = self.made_at[name]
            if not marked[made] or name in self.kept:
                continue
            chain, regions = self.chain(made), readers[name]
            if chain is None or not all([self.pays(name, chain, of_region[region]) for region in regions]):
                continue
            for region in regions:
                self.chains.setdefault(region, set()).update(chain)
            for read in self.read_of_others(chain, group[made]):
                if read not in readers:
                    heapq.heappush(pending, (-self.made_at[read], read))
                readers.setdefault(read, set()).update([r for r in regions if r != group[self.made_at[read]]])

    def read_of_others(self, chain: set[int], region: int) -> set[str]:
        """Return what a chain of calls of a region reads of other calls outside of the region."""
        read = {p.name for position in chain for p in self.trace.bound_symbols[position].inputs}
        return {name for name in read if name in self.made_at and self.found.group[self.made_at[name]] != region}

    def chain(self, last: int) -> set[int] | None:
        """Return the calls that compute what a call does from what is in memory; ``None`` if some run only once."""
        bounds, group = self.trace.bound_symbols, self.found.group
        chain: set[int] = set()

        def read(position: int) -> list[int]:
            made = [self.made_at.get(p.name) for p in bounds[position].inputs if p.name not in self.kept]
            return [m for m in made if m is not None and group[m] == group[last]]

        for position in reached([last], read, key=int):
            bound = bounds[position]
            if may_fail(bound) or is_random(bound) or OpTags.BEFORE_WRITES in bound.tags:
                return None
            chain.add(position)
        return chain

    def pays(self, name: str, chain: set[int], read: set[str]) -> bool:
        """Whether a region that reads some values repeats a chain at less than the traffic of its last value."""
        bounds = self.trace.bound_symbols
        limit = PASSES * sum([bytes_of(p) for p in bounds[self.made_at[name]].outputs if p.name == name])
        inside = {p.name for i in chain for p in bounds[i].outputs}
        new = {p.name: p for i in chain for p in bounds[i].inputs if p.name not in inside and p.name not in read}
        total = float(sum(map(bytes_of, new.values())))
        for position in chain:
            cost = self.executor.again(bounds[position]) if total <= limit else None
            if cost is None:
                return False
            total += cost
        return total <= limit

    def applied(self) -> Trace:
        """Return the program with the chains in place, each before the first call of the region that reads of it."""
        bounds, names = self.trace.bound_symbols, self.trace.names()
        copies: dict[int, _Copies] = {}
        made: list[BoundSymbol] = []
        for position, bound in enumerate(bounds):
            region = self.found.group[position]
            if self.found.marked[position] and region in self.chains:
                mine = copies.setdefault(region, _Copies(names, set(self.chains[region])))
                made += mine.made(sorted(self.read(bound, mine.waiting)), bounds)
                bound = bound.substituted(mine.renamed)
            made.append(bound)
        return dead_code_elimination(self.trace.replace(bound_symbols=tuple(made)))

    def read(self, bound: BoundSymbol, among: set[int]) -> set[int]:
        """Return which calls of some a call depends on, at first hand or through others of them."""

        def read_by(call: BoundSymbol) -> list[int]:
            made = [self.made_at.get(p.name) for p in call.inputs]
            return [m for m in made if m is not None and m in among]

        return set(reached(read_by(bound), lambda i: read_by(self.trace.bound_symbols[i]), key=int))


@dataclass(slots=True)
class _Copies:
    """The calls that one region repeats.

    Args:
        names: of the program.
        waiting: the positions of those that are not made yet.
        renamed: what the values of the others are called.
    """

    names: Names
    waiting: set[int]
    renamed: dict[str, Proxy] = field(default_factory=dict)

    def made(self, positions: Sequence[int], bounds: Sequence[BoundSymbol]) -> list[BoundSymbol]:
        """Return calls once more, under fresh names."""
        again = []
        for position in positions:
            bound = bounds[position]
            self.waiting.discard(position)
            self.renamed |= {p.name: p.renamed(self.names.fresh(p.prefix)) for p in bound.outputs}
            again.append(bound.substituted(self.renamed, outputs=True))
        return again
