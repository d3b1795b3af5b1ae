"""Who defines and who reads each value, and which calls must come before which."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thunder_ir.errors import VerificationError
from thunder_ir.passes.traits import has_effect, is_random, writes
from thunder_ir.proxies import Proxy
from thunder_ir.symbols import BoundSymbol, OpTags
from thunder_ir.trace import Trace


def producers(trace: Trace) -> dict[str, BoundSymbol]:
    """Return for every name the bound symbol that defines it; inputs of the trace have none."""
    return {p.name: bound for bound in trace.bound_symbols for p in bound.outputs}


def read_from_outside(bound_symbols: Sequence[BoundSymbol], results: Iterable[Proxy] = ()) -> dict[str, Proxy]:
    """Return, by name and in order, the values that calls read and that none of them defines.

    Args:
        bound_symbols: calls in the order in which they run.
        results: what is read of them when they have run.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import read_from_outside
        >>> add = Symbol("add", "prims", meta=lambda a, b: a.like())
        >>> trace = trace_of(lambda x, y: add(add(x, y), x), Tensor((2,)), Tensor((2,)))
        >>> list(read_from_outside(trace.bound_symbols[1:]))
        ['t0', 'x']
    """
    made = {p.name for bound in bound_symbols for p in bound.outputs}
    read = [p for bound in bound_symbols for p in bound.inputs]
    return {p.name: p for p in (*read, *results) if p.name not in made}


def leading_to(
    bound_symbols: Sequence[BoundSymbol],
    names: Iterable[str],
    *,
    through: Callable[[BoundSymbol], bool] | None = None,
    besides: Callable[[BoundSymbol], bool] | None = None,
) -> tuple[list[BoundSymbol], set[str]]:
    """Return, in order, the calls that values are computed by, and the names of these and of all that the calls read.

    Args:
        bound_symbols: calls in the order in which they run.
        names: of the values.
        through: whether what a call reads counts, too; every call, if not given.
        besides: whether a call counts whoever reads its results.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import leading_to
        >>> exp, sin = (Symbol(name, "prims", meta=lambda a: a.like()) for name in ("exp", "sin"))
        >>> trace = trace_of(lambda x: (sin(exp(x)), exp(sin(x))), Tensor((2,)))
        >>> calls, names = leading_to(trace.bound_symbols, ["t1"])
        >>> [bound.symbol.name for bound in calls], sorted(names)
        (['exp', 'sin'], ['t0', 't1', 'x'])
    """
    found, read = [], set(names)
    for bound in reversed(bound_symbols):
        made = not read.isdisjoint([p.name for p in bound.outputs]) and (through is None or through(bound))
        if made or (besides is not None and besides(bound)):
            found.append(bound)
            read.update([p.name for p in bound.inputs])
    found.reverse()
    return found, read


def dependencies(bound_symbols: Sequence[BoundSymbol]) -> list[set[int]]:
    """Return for every call the positions of the calls that must come before it.

    Those are the ones that define what it reads; a write to a tensor comes after what read it, or a view of it, before
    and ahead of what reads it, or a view of it, after; and effects keep their order among each other, as do draws of
    random numbers. The calls need not stand in an order that is valid, unless some of them write.
    """
    return _Dependencies(bound_symbols).run(bound_symbols)


class _Dependencies:
    """The state of :func:`dependencies`: the last call of each kind that a later one may have to wait for."""

    __slots__ = ("effect", "memory", "producer", "random", "readers", "writer")

    def __init__(self, bound_symbols: Sequence[BoundSymbol]) -> None:
        self.producer = {p.name: position for position, bound in enumerate(bound_symbols) for p in bound.outputs}
        self.memory: dict[str, str] = {}  # a view's name to the name of the tensor whose memory it shares
        self.readers: dict[str, list[int]] = {}
        self.writer: dict[str, int] = {}
        self.effect: int | None = None
        self.random: int | None = None

    def run(self, bound_symbols: Sequence[BoundSymbol]) -> list[set[int]]:
        tracks_memory = any([writes(bound) for bound in bound_symbols])
        before = []
        for position, bound in enumerate(bound_symbols):
            reads = [p.name for p in bound.inputs]
            wanted = {self.producer[name] for name in reads if name in self.producer}
            if tracks_memory:
                self._follow_memory(position, bound, reads, wanted)
            self._keep_order(position, bound, wanted)
            wanted.discard(position)
            before.append(wanted)
        return before

    def _follow_memory(self, position: int, bound: BoundSymbol, reads: list[str], wanted: set[int]) -> None:
        for root in {self.memory.get(name, name): None for name in reads}:
            if root in self.writer:
                wanted.add(self.writer[root])
            self.readers.setdefault(root, []).append(position)
        if writes(bound):
            root = self.memory.get(reads[0], reads[0])
            wanted.update(self.readers[root])
            self.readers[root] = []
            self.writer[root] = position
        if reads and (bound.has_tag(OpTags.VIEW) or writes(bound)):
            root = self.memory.get(reads[0], reads[0])
            self.memory.update({p.name: root for p in bound.outputs})

    def _keep_order(self, position: int, bound: BoundSymbol, wanted: set[int]) -> None:
        if has_effect(bound):
            wanted.update([] if self.effect is None else [self.effect])
            self.effect = position
        if is_random(bound):
            wanted.update([] if self.random is None else [self.random])
            self.random = position


def topological_order(
    bound_symbols: Iterable[BoundSymbol], priority: Callable[[BoundSymbol], Any] | None = None
) -> list[BoundSymbol]:
    """Return the calls in an order that keeps every dependency.

    Args:
        bound_symbols: calls; see :func:`dependencies`.
        priority: what orders calls that could come next, the least first; ties, and all of them without a priority,
            keep the order given.

    Raises:
        VerificationError: no order keeps all dependencies.
    """
    calls = list(bound_symbols)
    before = dependencies(calls)
    after: list[list[int]] = [[] for _ in calls]
    for position, wanted in enumerate(before):
        for needed in wanted:
            after[needed].append(position)
    ranks = [priority(bound) if priority is not None else 0.0 for bound in calls]
    waiting = [len(wanted) for wanted in before]
    ready = [(ranks[i], i) for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, position = heapq.heappop(ready)
        order.append(calls[position])
        for later in after[position]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, (ranks[later], later))
    if len(order) != len(calls):
        raise VerificationError("calls depend on each other in a ring")
    return order
