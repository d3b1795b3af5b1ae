"""When calls of a program can run: what comes before them, and how often regions are left before that."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from thunder_executors.order import bytes_of
from thunder_ir import BoundSymbol
from thunder_ir.passes.traits import has_effect, is_random


def producers_of(bounds: Sequence[BoundSymbol]) -> list[list[int]]:
    """For each call, the positions of those that must come before: its producers, and the effect or draw before it."""
    made_at: dict[str, int] = {}
    producers: list[list[int]] = []
    last_ordered = last_effect = -1
    for position, bound in enumerate(bounds):
        before = {made_at[p.name] for p in bound.inputs if p.name in made_at}
        effect = has_effect(bound)
        if effect or is_random(bound):
            if last_ordered >= 0:
                before.add(last_ordered)
            last_ordered = position
        producers.append(sorted(before))
        if effect:
            last_effect = position
        for p in bound.outputs:
            made_at[p.name] = position
    return producers if last_effect < 0 else _around_writes(bounds, producers)


def _around_writes(bounds: Sequence[BoundSymbol], producers: list[list[int]]) -> list[list[int]]:
    """Add what keeps effects where they are: every call before one stays before it, and every one after it after."""
    last_effect = -1
    since: list[int] = []
    out = []
    for position, bound in enumerate(bounds):
        before = list(producers[position])
        if has_effect(bound):
            before += since
            since = []
            last_effect = position
        else:
            if last_effect >= 0:
                before.append(last_effect)
            since.append(position)
        out.append(before)
    return out


def _stages(producers: list[list[int]], marked: list[bool]) -> list[int]:
    stages: list[int] = []
    for position, before in enumerate(producers):
        if marked[position]:
            stage = max([stages[p] + (not marked[p]) for p in before], default=0)
        else:
            stage = max([stages[p] for p in before], default=0)
        stages.append(stage)
    return stages


def stages_of(bounds: Sequence[BoundSymbol], producers: list[list[int]], marked: list[bool]) -> list[int]:
    """Return the stage of each call: how often the longest way to it leaves a marked call and comes back to one.

    Marked calls are moved to later stages in which more can be computed with them: the first one that reads them,
    unless their inputs would be kept for less than they are; or one in which another marked call reads what they read,
    if what reads them can wait for it. Stages still never fall from a call to its readers, and rise where an unmarked
    one comes before a marked one: all that keeps regions from making a cycle.
    """
    moving = _Moving(bounds, producers, marked, _stages(producers, marked))
    for position in range(len(bounds) - 1, -1, -1):
        if marked[position] and moving.readers[position]:
            moving.to_first_reader(position)
            moving.to_other_reader(position)
        moving.note(position)
    return moving.stages


MOST_MOVED = 8
"""Calls that wait for another one, at most."""


class _Moving:
    """The stages of calls, moved one after the other from the last call to the first."""

    def __init__(
        self, bounds: Sequence[BoundSymbol], producers: list[list[int]], marked: list[bool], stages: list[int]
    ) -> None:
        self.bounds, self.producers, self.marked, self.stages = bounds, producers, marked, stages
        self.latest = [max(stages, default=0)] * len(bounds)  # if all that reads a call is moved, too
        self.readers: list[list[int]] = [[] for _ in bounds]
        self.until: dict[str, int] = {}  # the last stage that reads a value
        self.read_in: dict[str, set[int]] = {}  # the stages in which marked calls read it

    def note(self, position: int) -> None:
        """Take down what a call means for those before it."""
        self.at(position, self.stages[position])
        for producer in self.producers[position]:
            self.readers[producer].append(position)
            self.latest[producer] = min(self.latest[producer], self.latest[position] - self.rise(producer, position))

    def at(self, position: int, stage: int) -> None:
        """Put a call into a stage."""
        self.stages[position] = stage
        for proxy in self.bounds[position].inputs:
            self.until[proxy.name] = max(self.until.get(proxy.name, -1), stage)
            if self.marked[position]:
                self.read_in.setdefault(proxy.name, set()).add(stage)

    def rise(self, before: int, after: int) -> int:
        """Return by how much the stage rises from a call to its reader, at least."""
        return int(self.marked[after] and not self.marked[before])

    def to_first_reader(self, position: int) -> None:
        """Move a call to the first stage that reads it."""
        first = min([self.stages[reader] for reader in self.readers[position]])
        if first > self.stages[position]:
            kept = [bytes_of(p) for p in self.bounds[position].inputs if self.until.get(p.name, -1) < first]
            if max(kept, default=0) <= self.made(position):
                self.stages[position] = first

    def to_other_reader(self, position: int) -> None:
        """Move a call, and what reads it, to the next stage in which another marked one reads what it reads."""
        stage, latest = self.stages[position], self.latest[position]
        later = {s for p in self.bounds[position].inputs for s in self.read_in.get(p.name, ()) if stage < s <= latest}
        moved = self.with_readers(position, min(later)) if later else None
        if moved is None:
            return
        made = {p.name for i in moved for p in self.bounds[i].outputs}
        read = {p.name: (p, s) for i, s in moved.items() for p in self.bounds[i].inputs if p.name not in made}
        if sum([bytes_of(p) for p, s in read.values() if self.until.get(p.name, -1) < s]) <= self.made(position):
            for i, s in moved.items():
                self.at(i, s)

    def with_readers(self, position: int, stage: int) -> dict[int, int] | None:
        """Return the stages of a call and of what has to wait for it; ``None`` if that is much."""
        moved = {position: stage}
        waiting = [position]
        while waiting:
            call = heapq.heappop(waiting)
            for reader in self.readers[call]:
                wanted = moved[call] + self.rise(call, reader)
                if wanted > moved.get(reader, self.stages[reader]):
                    if reader not in moved:
                        heapq.heappush(waiting, reader)
                    moved[reader] = wanted
            if len(moved) > MOST_MOVED:
                return None
        return moved

    def made(self, position: int) -> int:
        """Return how many bytes a call makes."""
        return sum([bytes_of(p) for p in self.bounds[position].outputs])
