"""The executor: runs of calls of a finished program that become one call."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from thunder_executors import Declined, FusionExecutor, Region, calls_of, join_runs
from thunder_ir import BoundSymbol, IntegerProxy, OpTags, TensorProxy, Trace
from thunder_ir.passes import trace_pass
from thunder_native._version import __version__
from thunder_native.program import program_of
from thunder_native.registry import Written, written
from thunder_native.runner import Runner
from thunder_native.runtime import missing, runtime
from thunder_native.table import CannotExpress


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

    def joined(self, region: Region, name: str, known: Mapping[int, Written]) -> BoundSymbol:
        """Return the call that runs a region.

        Args:
            region: its calls.
            name: of it.
            known: how they are written, by their identity.
        """
        return self.fused(region, name, Runner(region, name, program_of(region, runtime(), known)))


ARITHMETIC = frozenset([f"_operator.{name}" for name in ("add", "sub", "mul", "neg")])


@trace_pass
def join_calls(trace: Trace, executor: NativeExecutor) -> Trace:
    """Let native code make the calls that stand in a row and that it can make.

    Args:
        trace: a program ready to run.
        executor: whose rows are asked.
    """
    calls = numbers_first(calls_of(trace))
    known = {}
    for bound, again in zip(calls, may_be_made_again(calls), strict=True):
        if again:
            try:
                known[id(bound)] = written(bound, runtime())
            except CannotExpress:
                continue  # Python makes this call
    calls = writes_last(calls, known)

    def join(region: Region, number: int) -> BoundSymbol:
        return executor.joined(region, f"native_{number}", known)

    return join_runs(trace, calls, [id(b) in known for b in calls], executor.smallest_region, join)


def may_be_made_again(calls: list[BoundSymbol]) -> list[bool]:
    """For each call, whether a region with it can run twice: it writes to nothing that was read before it.

    What else writes to what it reads has no row.
    """
    read: set[str] = set()
    found = []
    for bound in calls:
        found.append("out" not in bound.kwargs or bound.kwargs["out"].name not in read)
        read.update([p.name for p in bound.inputs])
    return found


def writes_last(calls: list[BoundSymbol], taken: Container[int]) -> list[BoundSymbol]:
    """Return calls with those last that only change an input which nobody reads later, and that are not taken."""
    read = {p.name for b in calls for p in b.inputs}

    def waits(bound: BoundSymbol) -> bool:
        tensors = {p.name for p in bound.inputs if isinstance(p, TensorProxy)}
        changes = "out" in bound.kwargs and tensors == {bound.kwargs["out"].name}
        unread = read.isdisjoint([p.name for p in bound.outputs]) and OpTags.BEFORE_WRITES not in bound.tags
        return changes and unread and id(bound) not in taken

    return [*[b for b in calls if not waits(b)], *[b for b in calls if waits(b)]]


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


executor = NativeExecutor(default=False)
