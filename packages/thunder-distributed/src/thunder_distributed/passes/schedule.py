"""Moving calls: each gets a rank, and comes as soon as it can once all of lower rank have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thunder_distributed.prim import Does
from thunder_executors import Executor
from thunder_ir import BoundSymbol, Proxy, Trace
from thunder_ir.passes import topological_order, writes

BEGINS = (Does.REDUCE, Does.GATHER, Does.SCATTER, Does.EXCHANGE)


@dataclass(frozen=True, order=True)
class Rank:
    """Where a call is wanted.

    Args:
        anchor: the position of a call in the program as it was.
        side: below 0 before that call, above 0 after it; the further, the larger.
    """

    anchor: float
    side: float = 0.0

    def before(self) -> Rank:
        """Just before a call that is wanted here."""
        return Rank(self.anchor, self.side - 1)

    def after(self) -> Rank:
        """Just after a call that is wanted here, and before the next one."""
        return Rank(self.anchor, self.side + 0.5)


def does(bound: BoundSymbol, *what: Does) -> bool:
    """Whether a call does one of these."""
    return any([bound.has_tag(kind) for kind in what])


def copied(bound: BoundSymbol, producer: Mapping[str, BoundSymbol]) -> bool:
    """Whether a call waits for a copy to or from a device, and not for other processes.

    Args:
        bound: a call.
        producer: for each name the call that makes it.
    """
    return does(bound, Does.WAIT) and bound.args[0].name in producer and does(producer[bound.args[0].name], Does.COPY)


def collectives_of(trace: Trace) -> list[BoundSymbol]:
    """Return the calls that begin to communicate, in order."""
    return [bound for bound in trace.bound_symbols if does(bound, *BEGINS)]


def can_move(trace: Trace) -> bool:
    """Whether calls may change places at all: nothing writes to memory that others read."""
    return not any([writes(bound) for bound in trace.bound_symbols])


def reordered(calls: Sequence[BoundSymbol], ranks: Mapping[int, Rank]) -> list[BoundSymbol]:
    """Return the calls by rank, each after those that make what it reads. Effects and draws keep their order.

    Args:
        calls: in any order.
        ranks: by the ``id`` of the call; the position in ``calls`` for what is not in it.
    """
    positions = {id(bound): Rank(i) for i, bound in enumerate(calls)}
    return topological_order(calls, lambda bound: ranks.get(id(bound), positions[id(bound)]))


def readers_of(calls: Sequence[BoundSymbol]) -> dict[str, list[BoundSymbol]]:
    """Return for each name the calls that read it, in order, each once."""
    found: dict[str, list[BoundSymbol]] = {}
    for bound in calls:
        for name in {p.name: None for p in bound.inputs}:
            found.setdefault(name, []).append(bound)
    return found


def as_run_by(executor: Executor | None, calls: Sequence[BoundSymbol]) -> list[BoundSymbol]:
    """Return calls of prims as calls of an executor's operators; as they are without one."""
    if executor is None:
        return list(calls)
    made = []
    for bound in calls:
        operator = executor.find(bound).execution_symbol()  # type: ignore[union-attr]
        assert operator is not None
        made.append(bound.as_call_of(operator, bound.tags | bound.symbol.tags))
    return made


def only_input(bound: BoundSymbol) -> Proxy | None:
    """Return the one value that a call reads, if it is one."""
    names = {p.name: p for p in bound.inputs}
    return next(iter(names.values())) if len(names) == 1 else None


__all__ = [
    "BEGINS", "Rank", "as_run_by", "can_move", "collectives_of", "copied", "does", "only_input", "readers_of",
    "reordered",
]  # fmt: skip
