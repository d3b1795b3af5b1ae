"""The executor: runs of calls of a finished program that become one call."""

from __future__ import annotations

from typing import Any

from thunder_executors import Declined, FusionExecutor, Region, free_after_last_use
from thunder_executors.free import delete
from thunder_ir import BoundSymbol, IntegerProxy, Proxy, Trace
from thunder_ir.passes import trace_pass
from thunder_native._version import __version__
from thunder_native.program import program_of
from thunder_native.registry import why_not, write
from thunder_native.runner import Runner
from thunder_native.runtime import missing, runtime
from thunder_native.table import CannotExpress, Table


class NativeExecutor(FusionExecutor):
    """Runs calls of PyTorch one after the other in native code, without Python in between.

    It takes nothing before every call of a program has its executor; then it takes, in the order in which they run, the
    calls for which it has rows.

    Args:
        smallest_region: number of calls in a row below which Python makes them.
        (others): see :class:`thunder_executors.Executor`.
    """

    def __init__(self, *, smallest_region: int = 4, **options: Any) -> None:
        super().__init__(
            "native", version=__version__, missing=missing, install="pip install thunder-native",
            smallest_region=smallest_region, checks=False, **options,
        )  # fmt: skip
        self.finishing.append(lambda trace: join_calls(trace, self))

    def can_fuse(self, bound: BoundSymbol) -> bool | Declined:
        return Declined("it takes calls when all others are done")

    def expresses(self, bound: BoundSymbol) -> bool | Declined:
        """Whether a call of a finished program can be made in native code."""
        reason = why_not(bound)
        if reason is not None:
            return Declined(reason)
        table = Table(runtime())
        for proxy in bound.inputs:
            table.take(proxy)
        try:
            write(table, bound)
        except CannotExpress as error:
            return Declined(str(error))
        return True

    def joined(self, region: Region, name: str) -> BoundSymbol:
        """Return the call that runs a region."""
        return self.fused(region, name, Runner(region, name, program_of(region, runtime())))


ARITHMETIC = frozenset([f"_operator.{name}" for name in ("add", "sub", "mul", "neg")])


@trace_pass
def join_calls(trace: Trace, executor: NativeExecutor) -> Trace:
    """Let native code make the calls that stand in a row and that it can make.

    Args:
        trace: a program ready to run.
        executor: whose rows are asked.
    """
    calls = numbers_first([b for b in trace.bound_symbols if b.symbol is not delete])
    taken = [bool(executor.expresses(b)) for b in calls]
    last = {p.name: i for i, b in enumerate(calls) for p in b.inputs} | {p.name: len(calls) for p in trace.outputs}
    made: list[BoundSymbol] = []
    count = start = 0
    while start < len(calls):
        end = start
        while end < len(calls) and taken[end] is taken[start]:
            end += 1
        if taken[start] and end - start >= executor.smallest_region:
            made.append(executor.joined(_region(calls[start:end], last, end), f"native_{count}"))
            count += 1
        else:
            made += calls[start:end]
        start = end
    return free_after_last_use(trace.replace(bound_symbols=tuple(made))) if count else trace


def numbers_first(calls: list[BoundSymbol]) -> list[BoundSymbol]:
    """Return calls with the arithmetic on integers in front that needs nothing which others compute."""
    computed: set[str] = set()
    first, rest = [], []
    for bound in calls:
        if is_arithmetic(bound) and computed.isdisjoint([p.name for p in bound.inputs]):
            first.append(bound)
        else:
            rest.append(bound)
            computed.update([p.name for p in bound.outputs])
    return first + rest


def is_arithmetic(bound: BoundSymbol) -> bool:
    """Whether a call computes an integer of integers, and cannot raise."""
    return bound.symbol.path in ARITHMETIC and all(
        [isinstance(p, IntegerProxy) for p in (*bound.inputs, *bound.outputs)]
    )


def _region(bounds: list[BoundSymbol], last: dict[str, int], end: int) -> Region:
    """Return calls as a region; ``last`` says which call is the last to read a value, and ``end`` which one follows."""
    inside: dict[str, Proxy] = {}
    inputs: dict[str, Proxy] = {}
    for bound in bounds:
        inputs.update({p.name: p for p in bound.inputs if p.name not in inside and p.name not in inputs})
        inside.update({p.name: p for p in bound.outputs})
    outputs = tuple([p for p in inside.values() if last.get(p.name, -1) >= end])
    numbers = [p for p in inputs.values() if isinstance(p, IntegerProxy)]
    tensors = [p for p in inputs.values() if not isinstance(p, IntegerProxy)]
    return Region(tuple(bounds), (*tensors, *numbers), outputs)


executor = NativeExecutor(default=False)
