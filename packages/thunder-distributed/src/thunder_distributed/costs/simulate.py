"""A program's timeline on a machine that need not be there: when it computes, communicates, and waits."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from thunder_distributed.agreement import axis_in
from thunder_distributed.costs.machine import Machine
from thunder_distributed.passes.schedule import BEGINS, does
from thunder_distributed.prim import Does
from thunder_executors import peak_bytes
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace, value_of

KINDS = {Does.REDUCE: "all_reduce", Does.GATHER: "all_gather", Does.SCATTER: "reduce_scatter"}


@dataclass(frozen=True)
class Event:
    """One stretch of time.

    Args:
        name: of the value that it makes.
        what: the operation.
        stream: ``"compute"``, ``"communicate"``, ``"copy"`` (to or from the host) or ``"wait"``.
        start, end: seconds from the beginning.
        bytes: communicated.
    """

    name: str
    what: str
    stream: str
    start: float
    end: float
    bytes: float = 0.0


@dataclass(frozen=True)
class Timeline:
    """How a program runs.

    Args:
        events: in the order in which they begin.
        seconds: from beginning to end.
        peak_bytes: the most that its tensors take at a time.
    """

    events: tuple[Event, ...]
    seconds: float
    peak_bytes: int

    def spent(self, stream: str) -> float:
        """Return the seconds of a stream."""
        return sum([e.end - e.start for e in self.events if e.stream == stream])

    @property
    def exposed(self) -> float:
        """Seconds in which nothing is computed, as what is communicated is not there yet."""
        return self.spent("wait")

    def then(self, other: Timeline) -> Timeline:
        """Return this timeline and another one behind it."""
        moved = [replace(e, start=e.start + self.seconds, end=e.end + self.seconds) for e in other.events]
        total = self.seconds + other.seconds
        return Timeline((*self.events, *moved), total, max(self.peak_bytes, other.peak_bytes))

    def table(self) -> str:
        """Return each collective with its bytes, its time, and how long it is waited for, as text."""
        waits = {e.name: e.end - e.start for e in self.events if e.stream == "wait"}
        rows = [f"{'ms':>9} {'exposed':>9} {'MB':>9}  collective"]
        for e in self.events:
            if e.stream == "communicate":
                exposed = waits.get(e.name, 0.0)
                rows.append(
                    f"{(e.end - e.start) * 1e3:9.3f} {exposed * 1e3:9.3f} {e.bytes / 1e6:9.2f}  {e.what} {e.name}"
                )
        rows.append(
            f"{self.seconds * 1e3:.3f} ms: {self.spent('compute') * 1e3:.3f} ms of computing, "
            f"{self.spent('communicate') * 1e3:.3f} ms of communicating, of which {self.exposed * 1e3:.3f} ms exposed; "
            f"{self.peak_bytes / 1e6:.1f} MB at most"
        )
        return "\n".join(rows)

    def save_chrome_trace(self, path: str | Path) -> None:
        """Write it for ``chrome://tracing`` or ui.perfetto.dev."""
        events = [
            {"name": e.what, "cat": e.stream, "ph": "X", "ts": e.start * 1e6, "dur": (e.end - e.start) * 1e6, "pid": 0,
             "tid": e.stream, "args": {"value": e.name, "bytes": e.bytes}}
            for e in self.events
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


class Communicates(Protocol):
    """What tells how long collectives take, such as :class:`thunder_distributed.costs.Network`."""

    def seconds(self, kind: str, size: float, processes: int) -> float:
        """Return the seconds of one, of so many bytes, over so many processes."""

    def calling(self, kind: str, size: float, processes: int) -> float:
        """Return the seconds for which it keeps the thread that waits for it."""

    def beside(self, kind: str, size: float, processes: int) -> tuple[float, float]:
        """Return the seconds of one while all processes compute, and how many cores it keeps busy meanwhile."""


def simulate(
    programs: Trace | Sequence[Trace],
    machine: Machine,
    network: Communicates,
    cost: Callable[[BoundSymbol], float] | None = None,
) -> Timeline:
    """Return the timeline of a program in one of its processes, which all do the same.

    Args:
        programs: one, or several that run one after the other, such as the forward and the backward program, before
            or after executors. The inputs of the first are in memory all the while.
        machine: what each process runs on.
        network: what joins them; how many there are say the axes of the collectives.
        cost: the seconds of a call that computes; what ``machine`` can do, if not given.

    Example:
        >>> import thunder_prims
        >>> from thunder_distributed import Axis, prims
        >>> from thunder_distributed.costs import machine
        >>> from thunder_ir import Tensor, trace_of
        >>> axis = Axis("data", 8)
        >>> def program(x, shard):
        ...     whole = prims.wait(prims.all_gather(shard, axis))
        ...     return thunder_prims.matmul(x, whole)
        >>> found = simulate(trace_of(program, Tensor((64, 8192)), Tensor((1024, 8192))), *machine("h100"))
        >>> found.exposed > 0.0
        True
    """
    if isinstance(programs, Trace):
        programs = [programs]
    held = programs[0].inputs  # by the caller: parameters live on when a backward program has read them
    seconds = cost if cost is not None else lambda bound: seconds_of(bound, machine)
    timelines = [_timeline(trace, machine, network, seconds, held) for trace in programs]
    first, *rest = timelines
    for timeline in rest:
        first = first.then(timeline)
    return first


@dataclass
class _Sent:
    """A collective that has begun: how much of it is left, and how long all of it takes, alone and beside computing."""

    name: str
    what: str
    bytes: float
    alone: float
    beside: float
    busy: float
    start: float | None = None
    left: float = 1.0
    end: float = 0.0

    def event(self) -> Event:
        return Event(self.name, self.what, "communicate", self.start or 0.0, self.end, self.bytes)


class _Clock:
    """The time, as a process computes and waits. Collectives go on meanwhile, one behind the other.

    Args:
        machine: what the process runs on.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.now = 0.0
        self.queue: deque[_Sent] = deque()
        self.ended: list[_Sent] = []

    def compute(self, seconds: float) -> None:
        """Compute for as long as that takes beside what is communicated.

        Args:
            seconds: that it takes alone, with a core of its own.
        """
        while self.queue and seconds > 0:
            head = self._head()
            pace = self.machine.pace(head.busy)
            took = min(head.left * head.beside, seconds / pace)
            seconds -= took * pace
            self._pass(took, head, head.beside)
        self.now += max(seconds, 0.0) / self.machine.pace()

    def wait(self, name: str) -> None:
        """Do nothing until a collective has ended; one that is not under way has."""
        while any([one.name == name for one in self.queue]):
            head = self._head()
            self._pass(head.left * head.alone, head, head.alone)

    def wait_until(self, moment: float) -> None:
        """Do nothing until a moment, if that is to come."""
        while self.queue and self.now < moment:
            head = self._head()
            self._pass(min(head.left * head.alone, moment - self.now), head, head.alone)
        self.now = max(self.now, moment)

    def wait_for_all(self) -> None:
        """Do nothing until nothing is under way."""
        while self.queue:
            self.wait(self.queue[-1].name)

    def _head(self) -> _Sent:
        head = self.queue[0]
        head.start = self.now if head.start is None else head.start
        return head

    def _pass(self, seconds: float, head: _Sent, whole: float) -> None:
        self.now += seconds
        head.left = head.left - seconds / whole if seconds < head.left * whole else 0.0
        if not head.left:
            head.end = self.now
            self.ended.append(self.queue.popleft())


def _timeline(
    trace: Trace,
    machine: Machine,
    network: Communicates,
    cost: Callable[[BoundSymbol], float],
    held: Sequence[Proxy],
) -> Timeline:
    clock = _Clock(machine)
    copied = 0.0
    copies: dict[str, float] = {}
    calling: dict[str, float] = {}
    events: list[Event] = []

    def compute(name: str, what: str, seconds: float) -> None:
        start = clock.now
        clock.compute(seconds)
        events.append(Event(name, what, "compute", start, clock.now))

    for bound in trace.bound_symbols:
        if does(bound, *BEGINS):
            size, kind = _communicated(bound), _kind(bound)
            processes = axis.size if (axis := axis_in(bound)) is not None else 1
            beside, busy = network.beside(kind, size, processes)
            name, alone = bound.output.name, network.seconds(kind, size, processes)
            clock.queue.append(_Sent(name, kind, size, alone, beside, busy))
            calling[name] = network.calling(kind, size, processes)
        elif does(bound, Does.COPY):
            start = max(clock.now, copied)
            copied = copies[bound.output.name] = start + _bytes(bound.output) / machine.host
            events.append(Event(bound.output.name, bound.symbol.name, "copy", start, copied, _bytes(bound.output)))
        elif does(bound, Does.WAIT):
            begun, start = bound.args[0].name, clock.now
            clock.wait(begun)
            clock.wait_until(copies.get(begun, 0.0))
            if clock.now > start:
                events.append(Event(begun, "wait", "wait", start, clock.now))
            if took := calling.get(begun, 0.0):
                compute(begun, "wait", took)
        elif took := cost(bound):
            compute(bound.outputs[0].name if bound.outputs else "", bound.symbol.name, took)
    clock.wait_for_all()
    events += [one.event() for one in clock.ended]
    peak = peak_bytes(trace, held)
    return Timeline(tuple(sorted(events, key=lambda e: e.start)), max(clock.now, copied), peak)


def _kind(bound: BoundSymbol) -> str:
    found = next((name for kind, name in KINDS.items() if does(bound, kind)), None)
    return found or bound.symbol.name


def _communicated(bound: BoundSymbol) -> float:
    """Return the bytes of the whole."""
    return float(max(_bytes(bound.args[0]), _bytes(bound.output)))


def _bytes(value: object) -> int:
    return _elements(value) * value.dtype.bytes if isinstance(value, TensorProxy) else 0


def _elements(tensor: object) -> int:
    return math.prod([value_of(n) for n in tensor.shape]) if isinstance(tensor, TensorProxy) else 0


def seconds_of(bound: BoundSymbol, machine: Machine) -> float:
    """Return how long a call computes; nothing for views and for what frees memory.

    A composite takes as long as its parts that are products of matrices, and as reading and writing what it reads and
    returns: it is taken for fused.
    """
    if bound.has_tag(OpTags.VIEW) or bound.has_tag(OpTags.FREES) or not bound.outputs:
        return 0.0
    read = {p.name: p for p in bound.inputs}
    moved = sum([_bytes(p) for p in read.values()]) + sum([_bytes(p) for p in bound.outputs])
    output = bound.outputs[0]
    dtype = output.dtype.name if isinstance(output, TensorProxy) else "default"
    return machine.seconds(operations_of(bound), float(moved), dtype)


PRODUCTS = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "scaled_dot_product_attention")
"""Functions of PyTorch that are products of matrices, by the names of the operators that call them."""


ATTENTION = {"attention": (2, 1), "scaled_dot_product_attention": (2, 1), "attention_backward": (5, 2)}
"""Operators of attention: how many products as large as that of queries with keys, and which argument has the keys."""


def _operations_of_attention(bound: BoundSymbol) -> float:
    """Return the operations of attention, of which a causal one has half."""
    products, place = ATTENTION[bound.symbol.name]
    causal = True in [a for a in bound.args if isinstance(a, bool)] or bound.kwargs.get("is_causal") is True
    keys = float(value_of(bound.args[place].shape[-2]))
    return 2.0 * products * _elements(bound.args[0]) * keys * (0.5 if causal else 1.0)


def operations_of(bound: BoundSymbol) -> float:
    """Return the floating-point operations of a product of matrices; nothing for the rest, which memory bounds."""
    if bound.symbol.name in ATTENTION:
        return _operations_of_attention(bound)
    if bound.has_tag(OpTags.MATMUL) or bound.symbol.name in PRODUCTS:
        tensors = sorted([p for p in bound.inputs if isinstance(p, TensorProxy)], key=_elements)[-2:]
        made = max([_elements(p) for p in bound.outputs], default=0)
        if len(tensors) < 2:
            return 0.0
        a, b = tensors
        batch = 1
        if a.ndim == b.ndim:
            for n, m in zip(a.shape[:-2], b.shape[:-2], strict=True):
                if value_of(n) != value_of(m):
                    break
                batch *= value_of(n)
        return 2.0 * math.sqrt(float(_elements(a)) * _elements(b) * made / batch)
    if bound.symbol.decomposition is not None:
        return sum([operations_of(part) for part in bound.subsymbols])
    return 0.0


__all__ = ["Communicates", "Event", "Timeline", "operations_of", "seconds_of", "simulate"]
