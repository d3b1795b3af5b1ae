"""Which values a kernel keeps, between sweeps over a row, where an output of that row will be.

A reduction that depends on another one sweeps over its row again. What was computed in the sweep before is computed
again then, unless it is kept. The elements of an output that the last sweep writes are free until then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from thunder_ir import dtypes
from thunder_loops.cost import operation_cost
from thunder_loops.nest import Compute, Load, Reduce, Statement, Store, reads

WORTH = 8.0
"""What computing a value costs, in additions, from which on it is better kept."""

ROUNDING = 5.0
"""What rounding to ``bfloat16`` costs, in additions."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A value that is kept.

    Args:
        value: its name.
        stage: the sweep that computes it; later ones read it.
        store: the position of the write to whose place it goes until then.
    """

    value: str
    stage: int
    store: int


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The sweeps of a plan by rows; arguments as of :class:`thunder_loops.LoopPlan`.

    Args:
        statements: in order.
        terms: for each statement, the values that say where it goes.
        stages: for each statement, how many sweeps come before it.
        inside: the values that differ along a row.
        swept: for each statement, whether it is a write in a sweep.
    """

    statements: Sequence[Statement]
    terms: Sequence[Sequence[str]]
    stages: Sequence[int]
    inside: frozenset[str]
    swept: Sequence[bool]

    def needed(self, stage: int, held: Collection[str]) -> frozenset[str]:
        """Return the values along a row that a sweep reads, with what they are computed from; held ones are there."""
        names: set[str] = set()
        for position in reversed(range(len(self.statements))):
            statement = self.statements[position]
            if isinstance(statement, (Store, Reduce)):
                due = self.stages[position] == stage and (self.swept[position] or isinstance(statement, Reduce))
            else:
                due = statement.name in names and statement.name not in held
            if due:
                names.update(reads(statement), self.terms[position])
        return frozenset(names & self.inside)

    def cost(self, name: str, held: Collection[str]) -> float:
        """Return what computing a value along a row costs, in additions, from memory and what is held."""
        names, total = {name}, 0.0
        for position in reversed(range(len(self.statements))):
            statement = self.statements[position]
            if isinstance(statement, (Store, Reduce)) or statement.name not in (names & self.inside):
                continue
            if statement.name in held:
                continue
            names.update(reads(statement), self.terms[position])
            if isinstance(statement, Compute):
                rounds = statement.operation == "to" and statement.dtype is dtypes.bfloat16
                total += ROUNDING if rounds else operation_cost(statement.operation)
        return total

    def places(self) -> list[int]:
        """Return the writes to whose elements nothing else goes before the last sweep."""
        last = max(self.stages, default=0)
        used = [s.buffer for s in self.statements if isinstance(s, (Load, Store))]
        return [
            p
            for p, s in enumerate(self.statements)
            if isinstance(s, Store) and self.swept[p] and self.stages[p] == last and used.count(s.buffer) == 1
        ]

    def holds(self, places: Sequence[int]) -> tuple[Hold, ...]:
        """Decide what is held, in which of these places; of what can be, that which costs most."""
        made = {s.name: s for s in self.statements if not isinstance(s, Store)}
        last = max(self.stages, default=0)
        found: dict[int, Hold] = {}
        kept: list[Hold] = []
        for stage in range(last):
            for place in places:
                store = self.statements[place]
                assert isinstance(store, Store), store
                held = {h.value for h in found.values()}
                others = {h.value for p, h in found.items() if p != place}
                wanted = frozenset[str]().union(*[self.needed(s, held) for s in range(stage + 1, last + 1)])
                able = [
                    name
                    for name in sorted(self.needed(stage, held) & wanted - held)
                    if made[name].dtype is made[store.value].dtype and self.cost(name, held) >= WORTH
                ]
                if not able:
                    continue
                best = max(able, key=lambda name: self.cost(name, held))
                if place in found:  # whose value is lost
                    after = [self.needed(s, {*others, best}) for s in range(stage + 1, last + 1)]
                    if any([found[place].value in names for names in after]):
                        continue
                found[place] = Hold(best, stage, place)
                kept.append(found[place])
        return tuple(kept)
