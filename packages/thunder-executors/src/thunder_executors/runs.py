"""Runs: calls of a finished program that stand in a row, made one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thunder_executors.free import delete, free_after_last_use
from thunder_executors.fusion import Region
from thunder_ir import BoundSymbol, IntegerProxy, Proxy, Trace


def calls_of(trace: Trace) -> list[BoundSymbol]:
    """Return the calls of a program, without those that forget values."""
    return [b for b in trace.bound_symbols if b.symbol is not delete]


def join_runs(
    trace: Trace,
    calls: Sequence[BoundSymbol],
    counts: Sequence[int],
    smallest: int,
    join: Callable[[Region, int], BoundSymbol],
) -> Trace:
    """Return a program with one call in place of each longest run of calls that can be in one.

    Args:
        trace: a program ready to run.
        calls: its calls, in an order in which they can run; see :func:`calls_of`.
        counts: of each, how many calls it counts for in a run; 0 if it can be in none.
        smallest: number of calls below which a run is left as it is.
        join: makes the call that stands for a run, of its region, with the integers last, and its number.
    """
    last = {p.name: i for i, b in enumerate(calls) for p in b.inputs} | {p.name: len(calls) for p in trace.outputs}
    made: list[BoundSymbol] = []
    count = start = 0
    while start < len(calls):
        end = start
        while end < len(calls) and bool(counts[end]) is bool(counts[start]):
            end += 1
        if counts[start] and sum(counts[start:end]) >= smallest:
            made.append(join(_region(calls[start:end], last, end), count))
            count += 1
        else:
            made += calls[start:end]
        start = end
    return free_after_last_use(trace.replace(bound_symbols=tuple(made))) if count else trace


def _region(bounds: Sequence[BoundSymbol], last: dict[str, int], end: int) -> Region:
    """Return calls as a region; ``last`` says which call is the last to read a value, and ``end`` which one follows."""
    inside: dict[str, Proxy] = {}
    inputs: dict[str, Proxy] = {}
    for bound in bounds:
        for proxy in bound.inputs:
            if proxy.name not in inside:
                inputs.setdefault(proxy.name, proxy)
        for proxy in bound.outputs:
            inside[proxy.name] = proxy
    outputs = tuple([p for p in inside.values() if last.get(p.name, -1) >= end])
    numbers = [p for p in inputs.values() if isinstance(p, IntegerProxy)]
    tensors = [p for p in inputs.values() if not isinstance(p, IntegerProxy)]
    return Region(tuple(bounds), (*tensors, *numbers), outputs)


__all__ = ["calls_of", "join_runs"]
