"""How much memory the tensors of a program take, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from thunder_executors.order import bytes_of
from thunder_ir import OpTags, Trace


@dataclass(frozen=True, slots=True)
class Memory:
    """The bytes that a program's tensors take.

    An estimate: an operation that may return a view counts as returning one, and temporaries inside an operation are
    not counted.

    Args:
        held: for each bound symbol, the bytes held while it runs.
        given: bytes of the inputs.
    """

    held: tuple[int, ...]
    given: int

    @property
    def peak(self) -> int:
        """The most bytes held at a time."""
        return max(self.held, default=self.given)


@dataclass(frozen=True, slots=True)
class _Change:
    """Memory that one line takes or frees.

    Args:
        position: of the bound symbol; -1 for inputs.
        name: of the tensor.
        size: bytes taken; negative where they are freed, which is after the line has run.
    """

    position: int
    name: str
    size: int


def memory(trace: Trace) -> Memory:
    """Return what a program holds while each of its lines runs.

    A value is held from the call that makes it to the last that reads it or a view of it; outputs stay to the end.

    Args:
        trace: any stage of a program.

    Example:
        >>> from thunder_examine import memory
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> memory(trace_of(lambda x: exp(exp(x)), Tensor((2,))))
        Memory(held=(16, 16), given=8)
    """
    count = len(trace.bound_symbols)
    taken, freed = [0] * count, [0] * (count + 1)
    given = 0
    for change in _changes(trace):
        if change.size < 0:
            freed[change.position + 1] += change.size
        elif change.position < 0:
            given += change.size
        else:
            taken[change.position] += change.size
    changes = [before + now for before, now in zip(freed, taken, strict=False)]
    return Memory(tuple(accumulate(changes, initial=given))[1:], given)


def _changes(trace: Trace) -> Iterator[_Change]:
    """Yield what takes memory and what frees it, in order."""
    base = {p.name: p.name for p in trace.inputs}
    for bound in trace.bound_symbols:
        shares = bound.has_tag(OpTags.VIEW) or bound.has_tag(OpTags.IN_PLACE)
        viewed = bound.inputs[0].name if shares and bound.inputs else None
        for proxy in bound.outputs:
            base.setdefault(proxy.name, proxy.name if viewed is None else base[viewed])
    last = dict.fromkeys([base[p.name] for p in trace.inputs], -1)
    for position, bound in enumerate(trace.bound_symbols):
        for proxy in (*bound.inputs, *bound.outputs):
            last[base[proxy.name]] = position
    for proxy in trace.outputs:
        last[base[proxy.name]] = len(trace.bound_symbols)
    sizes = {}
    ending: dict[int, list[str]] = {}
    for name, position in last.items():
        ending.setdefault(position, []).append(name)
    positions = [(-1, trace.inputs), *enumerate([bound.outputs for bound in trace.bound_symbols])]
    for position, made in positions:
        for proxy in made:
            if base[proxy.name] == proxy.name and proxy.name not in sizes:
                sizes[proxy.name] = bytes_of(proxy)
                yield _Change(position, proxy.name, sizes[proxy.name])
        for name in ending.get(position, ()):
            yield _Change(position, name, -sizes.get(name, 0))


def get_alloc_memory(trace: Trace) -> tuple[int, dict[str, int]]:
    """Return the peak in bytes, and the bytes that each line takes or frees.

    Args:
        trace: any stage of a program; the last one has the calls that free values.

    Returns:
        the peak, and by ``"argument x"``, ``"exp t0"`` and ``"del t0"`` the bytes, negative where they are freed; their
        sum is what the outputs take.

    Example:
        >>> from thunder_examine import get_alloc_memory
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> get_alloc_memory(trace_of(lambda x: exp(exp(x)), Tensor((2,))))
        (16, {'argument x': 8, 'exp t0': 8, 'del x': -8, 'exp t1': 8, 'del t0': -8})
    """
    found: Counter[str] = Counter()
    for change in _changes(trace):
        maker = "argument" if change.position < 0 else trace.bound_symbols[change.position].symbol.name
        if change.size:
            found[f"{'del' if change.size < 0 else maker} {change.name}"] += change.size
    return memory(trace).peak, dict(found)
