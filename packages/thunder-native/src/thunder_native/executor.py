"""The executor: runs of calls of a finished program that become one call."""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch

from thunder_executors import Finish, FusionExecutor, Region, calls_of, join_runs
from thunder_ir import BoundSymbol, IntegerProxy, OpTags, TensorProxy, Trace, flat_proxies
from thunder_ir.passes import trace_pass
from thunder_native._version import __version__
from thunder_native.forms import Facts
from thunder_native.program import inner_values, is_small, program_of
from thunder_native.registry import Written, is_inner, written
from thunder_native.runner import Runner, watched
from thunder_native.runtime import missing, runtime
from thunder_native.table import CannotExpress


class NativeExecutor(FusionExecutor):
    """Runs calls of PyTorch one after the other in native code, without Python in between.

    It takes nothing before every call of a program has its executor; then it takes, in the order in which they run, the
    calls for which it has rows.

    Args:
        smallest_region: number of calls in a row below which Python makes them.
        largest: elements that tensors may have which a call computes, or reads of other calls; ``None``: any number.
        calls_before: how often Python runs a program before native code is made for it.
        of_linear: how many calls a product with a bias counts for.
        (others): see :class:`thunder_executors.Executor`.
    """

    def __init__(
        self,
        *,
        smallest_region: int = 2,
        largest: int | None = None,
        calls_before: int = 0,
        of_linear: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(
            "native", version=__version__, missing=missing, install="pip install thunder-native",
            smallest_region=smallest_region, checks=False, **options,
        )  # fmt: skip
        self.largest = largest
        self.of_linear = of_linear
        self.finishing.append(
            Finish(lambda trace: in_native_code(trace, self), calls_before, smallest_region, self.counts)
        )

    def within(self, trace: Trace) -> FusionExecutor | None:
        """It is not asked about calls: it takes them when all others are done."""
        return None

    def too_large(self, calls: Sequence[BoundSymbol]) -> set[str]:
        """Return the names of the tensors that calls compute and with which calls do not pay."""
        if (largest := self.largest) is None:
            return set()
        made = [p for b in calls for p in b.outputs if isinstance(p, TensorProxy)]
        return {p.name for p in made if not is_small(p, largest)}

    def count(self, bound: BoundSymbol) -> int:
        """Return how many calls one counts for, by what native code saves with it."""
        is_linear = bound.symbol.path == LINEAR and isinstance(bound.args[-1], TensorProxy) and len(bound.args) == 3
        return self.of_linear if is_linear else 1

    def counts(self, trace: Trace) -> int:
        """Return how many calls a program counts for."""
        return sum([self.count(bound) for bound in calls_of(trace)])

    def joined(
        self, region: Region, name: str, known: Mapping[int, Written], inner: frozenset[str] | None = None
    ) -> BoundSymbol:
        """Return the call that runs a region.

        Args:
            region: its calls.
            name: of it.
            known: how they are written, by their identity.
            inner: the values whose memory nobody outside of the region can see, if that is known.
        """
        return self.fused(region, name, Runner(region, name, program_of(region, runtime(), known, inner)))


LINEAR = "torch.nn.functional.linear"

ARITHMETIC = frozenset([f"_operator.{name}" for name in ("add", "sub", "mul", "neg")])


def in_native_code(trace: Trace, executor: NativeExecutor) -> Trace | None:
    """Return a program whose calls native code makes where it can; ``None`` while somebody watches every call.

    Where native code cannot be made, which shows only when LLVM is loaded, the program stays as it is, with a warning.
    """
    if watched():
        return None
    try:
        runtime()
    except RuntimeError as error:
        warnings.warn(f"Python makes the calls of programs: {error}", stacklevel=2)
        return trace
    with torch.inference_mode(False):  # or constants would be tensors that only this mode can use
        return join_calls(trace, executor)


@trace_pass
def join_calls(trace: Trace, executor: NativeExecutor) -> Trace:
    """Let native code make the calls that stand in a row and that it can make.

    Args:
        trace: a program ready to run.
        executor: whose rows are asked.
    """
    calls = numbers_first(calls_of(trace))
    try:
        return _joined(trace, calls, executor, inner_values(calls, trace.outputs))
    except CannotExpress:  # what looked as if nobody could see it is seen outside of its region
        return _joined(trace, calls, executor, frozenset())


def _joined(trace: Trace, calls: list[BoundSymbol], executor: NativeExecutor, inner: frozenset[str]) -> Trace:
    """Join calls, of values that nobody is expected to see outside of their regions."""
    too_large = executor.too_large(calls)
    addresses = runtime().addresses
    facts: Facts = {}
    known = {}
    for bound, again in zip(calls, may_be_made_again(calls), strict=True):
        if again and (not too_large or too_large.isdisjoint([p.name for p in (*bound.inputs, *bound.outputs)])):
            try:
                known[id(bound)] = written(bound, addresses, facts, inner=is_inner(bound, inner))
            except CannotExpress:
                continue  # Python makes this call
    calls = writes_last(calls, known)

    def join(region: Region, number: int) -> BoundSymbol:
        is_all = len(region.bound_symbols) == len(calls)
        return executor.joined(region, f"native_{number}", known, inner if is_all else None)

    counts = [executor.count(b) if id(b) in known else 0 for b in calls]
    return join_runs(trace, calls, counts, executor.smallest_region, join)


def targets_of(bound: BoundSymbol) -> list[str]:
    """Return the names of what a call writes to; what writes in another way than by ``out=`` has no row."""
    return [p.name for p in flat_proxies(bound.kwargs.get("out"))]


def may_be_made_again(calls: list[BoundSymbol]) -> list[bool]:
    """For each call, whether a region with it can run twice: it writes to nothing that was read before it."""
    if not any(["out" in bound.kwargs for bound in calls]):
        return [True] * len(calls)
    read: set[str] = set()
    found = []
    for bound in calls:
        found.append("out" not in bound.kwargs or read.isdisjoint(targets_of(bound)))
        read.update([p.name for p in bound.inputs])
    return found


def writes_last(calls: list[BoundSymbol], taken: Container[int]) -> list[BoundSymbol]:
    """Return calls with those last that only change an input which nobody reads later, and that are not taken."""
    if not any(["out" in bound.kwargs for bound in calls]):
        return calls
    last = {p.name: i for i, b in enumerate(calls) for p in b.inputs}

    def waits(place: int, bound: BoundSymbol) -> bool:
        targets = targets_of(bound) if "out" in bound.kwargs else []
        if not targets or id(bound) in taken or OpTags.BEFORE_WRITES in bound.tags:
            return False
        changes = {p.name for p in bound.inputs if isinstance(p, TensorProxy)} == set(targets)
        return changes and all([last.get(name, -1) <= place for name in (*targets, *[p.name for p in bound.outputs])])

    waiting = [b for i, b in enumerate(calls) if waits(i, b)]
    left = {id(b) for b in waiting}
    return [*[b for b in calls if id(b) not in left], *waiting]


def numbers_first(calls: list[BoundSymbol]) -> list[BoundSymbol]:
    """Return calls with the arithmetic on integers in front that needs nothing which others compute."""
    if not any([bound.symbol.path in ARITHMETIC for bound in calls]):
        return calls
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


FEWEST = 2
"""Calls in a row that pay, whatever they are: entering native code costs less than it saves with two of them."""

OF_LINEAR = 3
"""Calls that one of ``linear`` with a bias counts for: native code saves thrice as much of it as of another."""

SMALL = 65_536
"""Elements of tensors beyond which Python between kernels does not matter, and memory held too long may."""

HOT = 2
"""Calls of a program after which it is likely to be called often."""

_CAREFUL = NativeExecutor(smallest_region=FEWEST, largest=SMALL, calls_before=HOT, of_linear=OF_LINEAR, default=False)
executor = NativeExecutor(careful=_CAREFUL)
