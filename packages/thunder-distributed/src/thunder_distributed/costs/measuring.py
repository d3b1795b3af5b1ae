"""What the machine at hand does: operations, collectives, and both at once, measured for :func:`simulate`."""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_left
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
        seconds: until it has ended, once it has begun.
        calling: seconds for which it keeps the thread that begins and ends it, copying and adding up.
    """

    size: float
    seconds: float
    calling: float = 0.0


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

    def _between(self, kind: str, size: float, values: Sequence[float]) -> float:
        sizes = [m.size for m in self.tables[kind]]
        last = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
        slope = (values[last] - values[last - 1]) / (sizes[last] - sizes[last - 1])
        return max(min(values[0], values[last]), values[last - 1] + (size - sizes[last - 1]) * slope)


def measure_network(axis: Axis, sizes: Mapping[str, Sequence[float]], rounds: int = 10) -> MeasuredNetwork:
    """Measure collectives, nothing else being done; all processes call it.

    Args:
        axis: over which processes.
        sizes: for each kind, ``"all_reduce"``, ``"all_gather"`` or ``"reduce_scatter"``, bytes of the whole.
        rounds: how often each is made in a row; of eleven such rows the fifth quickest counts,
            in the slowest process.
    """
    tables = {}
    for kind, wanted in sizes.items():
        table = []
        for size in sorted({1024.0, *wanted, 2.0 * max(wanted)}):
            count = max(1, math.ceil(size / 4 / axis.size)) * axis.size
            given = torch.ones(count // axis.size if kind == "all_gather" else count)
            seconds, calling = sorted([_in_a_row(kind, given, axis, rounds) for _ in range(11)])[4]
            table.append(Measured(4.0 * count, _slowest(seconds, axis), _slowest(calling, axis)))
        tables[kind] = tuple(table)
    return MeasuredNetwork(tables)


def _in_a_row(kind: str, given: torch.Tensor, axis: Axis, rounds: int) -> tuple[float, float]:
    """Return how long one takes to end, and to be called; results are kept, as programs keep them: memory is new."""
    seconds = calling = 0.0
    results = []
    dist.barrier(axis.process_group)
    for _ in range(rounds):
        start = time.perf_counter()
        pending = BEGIN[kind](given, axis)
        begun = time.perf_counter()
        for work in pending.works:
            work.wait()
        ended = time.perf_counter()
        pending.works = ()
        results.append(pending.wait())
        seconds += ended - begun
        calling += begun - start + time.perf_counter() - ended
    return seconds / rounds, calling / rounds


def measure_both(axis: Axis, programs: Sequence[Trace], rounds: int = 11) -> tuple[float, float]:
    """Return how many times longer computing takes beside a collective, and the other way round.

    Args:
        axis: over which processes; all call it.
        programs: whose calls are computed, all of them while a sum over the processes is made that takes half as long.
        rounds: how often; the median is taken, of the slowest process.
    """

    def send(buffer: torch.Tensor) -> Pending:
        return collectives.all_reduce_within(buffer, axis)

    def seconds(work: Callable[[], Any]) -> float:
        return _slowest(statistics.median([_timed(work, axis) for _ in range(rounds)]), axis)

    with torch.no_grad():
        computing = seconds(lambda: _once(programs))
        buffer = torch.zeros(1 << 20)
        buffer = torch.zeros(int(computing / 2 / seconds(lambda: send(buffer).wait()) * buffer.numel()) or 1)
        sending = seconds(lambda: send(buffer).wait())
        found = [_both(axis, programs, lambda: send(buffer)) for _ in range(rounds)]
    both, sent = (_slowest(statistics.median(column), axis) for column in zip(*found, strict=True))
    return max(1.0, 1 + (both - computing) / sending), max(1.0, sent / sending)


def _both(axis: Axis, programs: Sequence[Trace], send: Callable[[], Pending]) -> tuple[float, float]:
    """Return when programs have run, and when what was sent before them has ended."""
    ended: list[float] = []
    dist.barrier(axis.process_group)
    start = time.perf_counter()
    pending = send()

    def look() -> None:
        if not ended and all([work.is_completed() for work in pending.works]):
            ended.append(time.perf_counter() - start)

    _once(programs, look)
    both = time.perf_counter() - start
    pending.wait()
    return both, ended[0] if ended else time.perf_counter() - start


def measure_operations(programs: Sequence[Trace], rounds: int = 9) -> dict[int, float]:
    """Return the seconds of each call of programs that computes, by its identity, as it runs in this process alone.

    Collectives are not made: what is waited for is made up, as inputs are.

    Args:
        programs: that run one after the other; what one returns, the next ones find under the same names.
        rounds: how often, after one that is not counted; the median is taken.
    """
    bounds = [bound for trace in programs for bound in trace.bound_symbols]
    with torch.no_grad():
        found = [_once(programs) for _ in range(rounds + 1)][1:]
    return {id(bound): statistics.median([times[i] for times in found]) for i, bound in enumerate(bounds)}


def _once(programs: Sequence[Trace], between: Callable[[], None] = lambda: None) -> list[float]:
    found: list[float] = []
    returned: dict[str, Any] = {}
    for trace in programs:
        values = {p.name: returned.get(p.name, _made_up(p)) for p in trace.inputs}
        for bound in trace.bound_symbols:
            found.append(_seconds(bound, values, returned))
            between()
        returned |= {p.name: values[p.name] for p in trace.outputs if p.name in values}
    return found


def _seconds(bound: BoundSymbol, values: dict[str, Any], returned: Mapping[str, Any]) -> float:
    """Run a call if it computes, let its results be known, and return how long it took."""
    function = bound.symbol.implementation
    if bound.symbol is delete:
        for proxy in bound.args:
            values.pop(proxy.name, None)
        return 0.0
    if does(bound, *BEGINS, Does.WAIT):
        values.update({p.name: _made_up(p) for p in bound.outputs})
        return 0.0
    if function is None or any([values.get(p.name) is None for p in bound.inputs]):
        values.update({p.name: returned.get(p.name, _made_up(p)) for p in bound.outputs})
        return 0.0
    args, kwargs = substitute((bound.args, bound.kwargs), values)
    start = time.perf_counter()
    output = function(*args, **kwargs)
    took = time.perf_counter() - start
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


def _timed(work: Callable[[], Any], axis: Axis) -> float:
    dist.barrier(axis.process_group)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _slowest(seconds: float, axis: Axis) -> float:
    """Return the largest of all processes' numbers, which all then go on with."""
    told = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(told, dist.ReduceOp.MAX, group=axis.process_group)
    return float(told)


__all__ = ["Measured", "MeasuredNetwork", "measure_both", "measure_network", "measure_operations", "sizes_in"]
