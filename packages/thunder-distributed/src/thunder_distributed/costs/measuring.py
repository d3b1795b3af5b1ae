"""What the machine at hand does: operations, and collectives alone and beside them, measured for :func:`simulate`."""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from thunder_distributed import collectives
from thunder_distributed.axes import Axis
from thunder_distributed.costs.simulate import KINDS
from thunder_distributed.in_flight import Pending
from thunder_distributed.passes.schedule import BEGINS, does
from thunder_distributed.prim import Does
from thunder_executors.free import delete
from thunder_ir import BoundSymbol, NumberProxy, Proxy, TensorProxy, Trace, substitute, value_of
from thunder_ir.passes import pair_outputs
from thunder_torch.convert import to_torch_dtype

BEGIN: dict[str, Callable[[torch.Tensor, Axis], Pending]] = {
    "all_reduce": collectives.all_reduce_within,
    "all_gather": collectives.all_gather,
    "reduce_scatter": collectives.reduce_scatter_scaled,
}
"""How each collective begins; what is given is the whole, but for an all-gather its part."""


@dataclass(frozen=True)
class Measured:
    """What a collective of one size took.

    Args:
        size: bytes of the whole.
        seconds: until it has ended, once a process has computed and begun it, and waits.
        calling: for how long it keeps the thread that begins and ends it, copying and adding up.
        beside: until it has ended, while all processes compute.
        working: for how long other threads of the process need a core for it, while all processes compute.
    """

    size: float
    seconds: float
    calling: float = 0.0
    beside: float = 0.0
    working: float = 0.0


@dataclass(frozen=True)
class MeasuredNetwork:
    """What collectives take among the processes at hand.

    Args:
        tables: of each kind, of ascending sizes. Between them, seconds grow in a straight line; above the last, with
            its slope.

    Example:
        >>> found = MeasuredNetwork({"all_gather": (Measured(1e3, 1e-4), Measured(1e6, 1e-3), Measured(2e6, 2e-3))})
        >>> found.seconds("all_gather", 4e6, 2)
        0.004
    """

    tables: Mapping[str, Sequence[Measured]]

    def seconds(self, kind: str, size: float, processes: int) -> float:
        """Return how long a collective takes over the processes that were measured.

        Raises:
            KeyError: this kind was not measured.
        """
        return self._between(kind, size, [m.seconds for m in self.tables[kind]]) if processes > 1 else 0.0

    def calling(self, kind: str, size: float, processes: int) -> float:
        """Return for how long it keeps the thread that calls it.

        Raises:
            KeyError: this kind was not measured.
        """
        return self._between(kind, size, [m.calling for m in self.tables[kind]]) if processes > 1 else 0.0

    def beside(self, kind: str, size: float, processes: int) -> tuple[float, float]:
        """Return how long it takes while all processes compute, and how many cores of each it keeps busy meanwhile.

        Raises:
            KeyError: this kind was not measured.
        """
        if processes <= 1:
            return 0.0, 0.0
        took = self._between(kind, size, [m.beside for m in self.tables[kind]])
        return took, self._between(kind, size, [m.working for m in self.tables[kind]]) / took if took else 0.0

    def _between(self, kind: str, size: float, values: Sequence[float]) -> float:
        sizes = [m.size for m in self.tables[kind]]
        last = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
        slope = (values[last] - values[last - 1]) / (sizes[last] - sizes[last - 1])
        return max(min(values[0], values[last]), values[last - 1] + (size - sizes[last - 1]) * slope)


def measure_network(
    axis: Axis, sizes: Mapping[str, Sequence[float]], cores: float = 1.0, seconds: float = 0.7
) -> MeasuredNetwork:
    """Measure collectives, behind what all processes compute and beside it; all call it.

    Means count, and not medians: a thread that has to wait for a core waits for milliseconds, now and then, and a
    program makes many collectives. Behind computing, it takes until the last process has computed, too.

    Args:
        axis: over which processes.
        sizes: for each kind, ``"all_reduce"``, ``"all_gather"`` or ``"reduce_scatter"``, bytes of the whole. Of sizes
            that are almost the same, one is measured.
        cores: how many there are for each process.
        seconds: for how long each is measured, in either way.
    """
    tables = {}
    for kind, wanted in sizes.items():
        table = []
        for size in _apart(wanted):
            count = max(1, math.ceil(size / 4 / axis.size)) * axis.size
            given = torch.ones(count // axis.size if kind == "all_gather" else count)
            behind = _many(kind, given, axis, seconds, False)
            beside = _many(kind, given, axis, seconds, True)
            alone = max(behind.seconds - (behind.computing + behind.calling) / min(1.0, cores), 0.0)
            table.append(Measured(4.0 * count, alone, behind.calling, beside.waiting, beside.working))
        tables[kind] = tuple(table)
    return MeasuredNetwork(tables)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Return two sizes at least, in order, a small one and the largest, but none that is almost as large as another."""
    kept: list[float] = []
    for size in sorted({1024.0, 2048.0, *sizes} if max(sizes) < 2048.0 else {1024.0, *sizes}, reverse=True):
        if not kept or size < 0.9 * kept[-1]:
            kept.append(size)
    return kept[::-1]


@dataclass(frozen=True)
class _Means:
    """Seconds for each collective: in all, on a core before, while it was under way, to call it, and of its threads."""

    seconds: float
    computing: float
    waiting: float
    calling: float
    working: float


def _many(kind: str, given: torch.Tensor, axis: Axis, seconds: float, beside: bool) -> _Means:
    """Make collectives, behind or beside what is computed, and return means over them and the processes.

    Results of some are kept, as programs keep them: memory is new.
    """
    a = torch.ones(64, 64)
    total = computing = waiting = calling = working = 0.0
    rounds = 0
    results: deque[torch.Tensor] = deque(maxlen=10)
    until = time.perf_counter() + seconds
    while not rounds or _slowest(until - time.perf_counter(), axis) > 0:
        start, threads = time.perf_counter(), time.process_time() - time.thread_time()
        for _ in range(5):
            at = [time.thread_time()]
            for _ in range(0 if beside else COMPUTED):
                torch.mm(a, a)
            at.append(time.thread_time())
            pending = BEGIN[kind](given, axis)
            at.append(time.thread_time())
            begun = time.perf_counter()
            while beside and not all([work.is_completed() for work in pending.works]):
                torch.mm(a, a)
            for work in pending.works:
                work.wait()
            waiting += time.perf_counter() - begun
            at.append(time.thread_time())
            pending.works = ()
            results.append(pending.wait())
            at.append(time.thread_time())
            computing += at[1] - at[0]
            calling += at[2] - at[1] + at[4] - at[3]
            rounds += 1
        total += time.perf_counter() - start
        working += time.process_time() - time.thread_time() - threads
    return _Means(*[_mean(t / rounds, axis) for t in (total, computing, waiting, calling, working)])


COMPUTED = 100
"""Products before each collective: about a millisecond, as between those of a program."""


def measure_operations(programs: Sequence[Trace], rounds: int = 9, *, communicates: bool = False) -> dict[int, float]:
    """Return the seconds of each call of programs that computes, by its identity: for so long it needs a core.

    What other processes do meanwhile takes turns on the cores, and does not count; it counts where it makes memory and
    caches slower.

    Args:
        programs: that run one after the other; what one returns, the next ones find under the same names. Inputs are
            made up.
        rounds: how often, after one that is not counted; the mean is taken, as for collectives.
        communicates: whether collectives are made, by all processes; what is waited for is made up otherwise.
    """
    bounds = [bound for trace in programs for bound in trace.bound_symbols]
    with torch.no_grad():
        found = [_once(programs, communicates) for _ in range(rounds + 1)][1:]
    return {id(bound): statistics.mean([times[i] for times in found]) for i, bound in enumerate(bounds)}


def _once(programs: Sequence[Trace], communicates: bool) -> list[float]:
    found: list[float] = []
    returned: dict[str, Any] = {}
    for trace in programs:
        values = {p.name: returned.get(p.name, _made_up(p)) for p in trace.inputs}
        for bound in trace.bound_symbols:
            if bound.symbol is delete:
                for proxy in bound.args:
                    values.pop(proxy.name, None)
                found.append(0.0)
            elif does(bound, *BEGINS, Does.WAIT, Does.REST, Does.COMPARE):
                _run(bound, values, {}, communicates)
                found.append(0.0)
            else:
                found.append(_run(bound, values, returned, True))
        returned |= {p.name: values[p.name] for p in trace.outputs if p.name in values}
    return found


def _run(bound: BoundSymbol, values: dict[str, Any], returned: Mapping[str, Any], runs: bool) -> float:
    """Run a call, or make its results up; let these be known, and return for how long this thread had a core."""
    function = bound.symbol.implementation
    if not runs or function is None or any([values.get(p.name) is None for p in bound.inputs]):
        values.update({p.name: returned.get(p.name, _made_up(p)) for p in bound.outputs})
        return 0.0
    args, kwargs = substitute((bound.args, bound.kwargs), values)
    start = time.thread_time()
    output = function(*args, **kwargs)
    took = time.thread_time() - start
    pair_outputs(bound.output, output, values)
    return took


def _made_up(proxy: Proxy) -> Any:
    """Return a value of the kind; ``None`` for what is neither a tensor nor a number."""
    if isinstance(proxy, NumberProxy):
        return value_of(proxy)
    if not isinstance(proxy, TensorProxy):
        return None
    shape, dtype = [int(value_of(s)) for s in proxy.shape], to_torch_dtype(proxy.dtype)
    return torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)


def sizes_in(traces: Sequence[Trace]) -> dict[str, set[float]]:
    """Return the bytes of the collectives in programs, by kind."""
    sizes: dict[str, set[float]] = {}
    for bound in [b for trace in traces for b in trace.bound_symbols if does(b, *BEGINS)]:
        kind = next(name for what, name in KINDS.items() if does(bound, what))
        whole = max([math.prod([value_of(n) for n in p.shape]) * p.dtype.bytes for p in (bound.args[0], bound.output)])
        sizes.setdefault(kind, set()).add(float(whole))
    return sizes


def _slowest(seconds: float, axis: Axis) -> float:
    """Return the largest of all processes' numbers, which all then go on with."""
    told = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(told, dist.ReduceOp.MAX, group=axis.process_group)
    return float(told)


def _mean(seconds: float, axis: Axis) -> float:
    """Return the mean of all processes' numbers, which all then go on with."""
    told = torch.tensor([seconds / axis.size], dtype=torch.float64)
    dist.all_reduce(told, group=axis.process_group)
    return float(told)


__all__ = ["Measured", "MeasuredNetwork", "measure_network", "measure_operations", "sizes_in"]
