"""What the values of a program take of memory: which line takes how much, and which frees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from thunder_executors.order import bytes_of
from thunder_ir import OpTags, Proxy, Trace


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Memory that one line takes or frees.

    Args:
        position: of the bound symbol; -1 for inputs.
        name: of the tensor.
        size: bytes taken; negative where they are freed, which is after the line has run.
    """

    position: int
    name: str
    size: int


def memory_changes(trace: Trace, held: Iterable[Proxy] = ()) -> Iterator[MemoryChange]:
    """Yield what takes memory and what frees it, in order.

    A value is held from the call that makes it to the last that reads it or a view of it; outputs stay to the end. This
    is an estimate: an operation that may return a view counts as returning one, and temporaries inside an operation are
    not counted. Cost: linear.

    Args:
        trace: any stage of a program.
        held: what the caller holds all the while, such as parameters, whether the program reads it or not; a program
            that forgets one of them frees nothing.
    """
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
    sizes = {p.name: bytes_of(p) for p in held}
    yield from [MemoryChange(-1, name, size) for name, size in sizes.items()]
    ending: dict[int, list[str]] = {}
    for name, position in last.items():
        if name not in sizes:
            ending.setdefault(position, []).append(name)
    positions = [(-1, trace.inputs), *enumerate([bound.outputs for bound in trace.bound_symbols])]
    for position, made in positions:
        for proxy in made:
            if base[proxy.name] == proxy.name and proxy.name not in sizes:
                sizes[proxy.name] = bytes_of(proxy)
                yield MemoryChange(position, proxy.name, sizes[proxy.name])
        for name in ending.get(position, ()):
            yield MemoryChange(position, name, -sizes.get(name, 0))


def peak_bytes(trace: Trace, held: Iterable[Proxy] = ()) -> int:
    """Return the most bytes that the program's tensors take at a time, inputs and outputs included.

    Args:
        trace, held: see :func:`memory_changes`.
    """
    now = most = 0
    for change in memory_changes(trace, held):
        now += change.size
        most = max(most, now)
    return most


__all__ = ["MemoryChange", "memory_changes", "peak_bytes"]
