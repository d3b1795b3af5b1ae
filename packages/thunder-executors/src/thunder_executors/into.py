"""Computing values right into the memory of the inputs that they are to be written to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from thunder_executors.free import delete, free_after_last_use
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace, reached
from thunder_ir.passes import has_effect, trace_pass


@trace_pass
def compute_into_inputs(trace: Trace, *, targets: Mapping[str, TensorProxy]) -> Trace:
    """Let the calls that compute values for inputs write them there, where nothing reads the inputs any more.

    What a value is computed from step by step is put there, too, as long as the steps are read once. The caller, who
    copies values to inputs afterwards, then finds that there is nothing to copy. What is tagged ``BEFORE_WRITES`` may
    raise, which leaves the inputs as they were; where executors say how to check beforehand that a call does not, that
    is done first of all, with the arithmetic on integers that it needs.

    Args:
        trace: a program ready to run. Executors tell of their operators what writes where, and what is no view.
        targets: for names of values that the program returns, the inputs. These share memory with no other inputs.
    """
    bounds = checked_first([b for b in trace.bound_symbols if b.symbol is not delete], targets)
    writing = _Writing(bounds, trace)
    for name, target in targets.items():
        writing.write(name, target)
    if not writing.changed:
        return trace
    return free_after_last_use(trace.replace(bound_symbols=tuple(writing.bounds)))


def checked_first(bounds: list[BoundSymbol], targets: Mapping[str, TensorProxy]) -> list[BoundSymbol]:
    """Return calls in an order in which those that compute values for inputs, and may raise, are checked before all.

    Args:
        bounds: calls in the order in which they run.
        targets: for names of values, the inputs that they are for.
    """
    made = {p.name: i for i, b in enumerate(bounds) for p in b.outputs}
    checks: list[BoundSymbol] = []
    moved: set[int] = set()
    calls = list(bounds)
    for index, bound in enumerate(bounds):
        executor = bound.symbol.executor
        if OpTags.BEFORE_WRITES not in bound.tags or executor is None:
            continue
        into = [(p, targets[p.name]) for p in bound.outputs if isinstance(p, TensorProxy) and p.name in targets]
        if not into or executor.into(bound, *into[0]) is None:
            continue
        found = executor.checks_of(bound)
        needed = None if found is None else _arithmetic(bounds, made, found)
        if found is not None and needed is not None:
            checks += [call for call in found if not any([_is_same(call, other) for other in checks])]
            moved |= needed
            calls[index] = bound.replace(tags=bound.tags - {OpTags.BEFORE_WRITES})
    rest = [b for i, b in enumerate(calls) if i not in moved]
    return [*[calls[i] for i in sorted(moved)], *checks, *rest]


def _is_same(a: BoundSymbol, b: BoundSymbol) -> bool:
    names = [[p.name if isinstance(p, Proxy) else p for p in bound.args] for bound in (a, b)]
    return a.symbol is b.symbol and names[0] == names[1]


def _arithmetic(bounds: list[BoundSymbol], made: dict[str, int], calls: Sequence[BoundSymbol]) -> set[int] | None:
    """Return which calls compute what ``calls`` read; ``None`` if one computes other than integers, or may raise."""

    def makers(calls: Iterable[BoundSymbol]) -> list[int]:
        return [made[p.name] for b in calls for p in b.inputs if p.name in made]

    found: set[int] = set()
    for index in reached(makers(calls), lambda index: makers([bounds[index]]), key=int):
        bound = bounds[index]
        if bound.tags & {OpTags.BEFORE_WRITES, OpTags.DONT_DCE, OpTags.RANDOM} or has_effect(bound):
            return None
        if not all([isinstance(p, TensorProxy) and p.dtype.is_integer for p in bound.outputs]):
            return None
        found.add(index)
    return found


class _Writing:
    def __init__(self, bounds: list[BoundSymbol], trace: Trace) -> None:
        self.bounds = bounds
        self.changed = False
        self.made = {p.name: i for i, b in enumerate(bounds) for p in b.outputs}
        self.readers: dict[str, list[int]] = {}
        for index, bound in enumerate(bounds):
            for name in {p.name for p in bound.inputs}:
                self.readers.setdefault(name, []).append(index)
        self.returned = [p.name for p in trace.outputs]
        failing = [index for index, bound in enumerate(bounds) if OpTags.BEFORE_WRITES in bound.tags]
        self.safe = failing[-1] + 1 if failing else 0

    def write(self, name: str, target: TensorProxy) -> None:
        """Let what computes a value write it to an input, and what that is computed from."""
        last, views = self.reads(target.name)
        returned = {target.name, *views, *self.reads(name)[1]}
        if not returned.isdisjoint(self.returned) or self.returned.count(name) != 1:
            return
        index = self.made.get(name)
        while index is not None and last <= index and self.safe <= index:
            bound = self.bounds[index]
            executor = bound.symbol.executor
            made = next(p for p in bound.outputs if p.name == name)
            if executor is None or not _is_like(made, target) or not views.isdisjoint([p.name for p in bound.inputs]):
                return
            written = executor.into(bound, made, target)
            if written is None:
                return
            self.bounds[index] = written
            self.changed = True
            name, index = self.step_before(bound, target)

    def step_before(self, bound: BoundSymbol, target: TensorProxy) -> tuple[str, int | None]:
        """Return the first argument and which call computes it, if it is like the target and read by this call only.

        That is for operators with one result alone; how kernels of regions read their arguments only they know.
        """
        first = bound.args[0] if bound.args and isinstance(bound.output, TensorProxy) else None
        if not isinstance(first, TensorProxy) or first.name in self.returned or first.name == target.name:
            return "", None
        return first.name, self.made.get(first.name) if len(self.readers[first.name]) == 1 else None

    def reads(self, name: str) -> tuple[int, set[str]]:
        """Return the last call that reads the memory of an input, and the names of what may be views of it."""
        views: set[str] = set()
        last, waiting = -1, [name]
        while waiting:
            for index in self.readers.get(waiting.pop(), ()):
                last, bound = max(last, index), self.bounds[index]
                executor = bound.symbol.executor
                if executor is None or not executor.makes_new(bound):
                    found = {p.name for p in bound.outputs} - views
                    views |= found
                    waiting += found
        return last, views


def _is_like(made: Proxy, target: TensorProxy) -> bool:
    if not isinstance(made, TensorProxy) or made.dtype is not target.dtype or made.device != target.device:
        return False
    return all([d.__class__ is int for d in (*made.shape, *target.shape)]) and made.shape == target.shape
