"""How much memory the tensors of a program take, line by line."""

from __future__ import annotations

from dataclasses import dataclass

from thunder_executors.order import bytes_of
from thunder_ir import Trace


@dataclass(frozen=True, slots=True)
class Memory:
    """The bytes that a program's tensors take.

    An estimate: each tensor counts as memory of its own, views too, and operations need none inside.

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


def memory(trace: Trace) -> Memory:
    """Return what a program holds while each of its lines runs.

    A value is held from the call that makes it to the last that reads it; what the program returns to its end.

    Args:
        trace: any stage of a program.

    Example:
        >>> from thunder_examine import memory
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> memory(trace_of(lambda x: exp(exp(x)), Tensor((2,))))
        Memory(held=(16, 16), given=8)
    """
    last: dict[str, int] = {}
    for position, bound in enumerate(trace.bound_symbols):
        for proxy in (*bound.inputs, *bound.outputs):
            last[proxy.name] = position
    kept = {p.name for p in trace.outputs}
    sizes = {p.name: bytes_of(p) for p in trace.inputs}
    given = now = sum(sizes.values())
    now -= sum(size for name, size in sizes.items() if name not in last and name not in kept)
    held = []
    for position, bound in enumerate(trace.bound_symbols):
        for proxy in bound.outputs:
            if proxy.name not in sizes:
                sizes[proxy.name] = bytes_of(proxy)
                now += sizes[proxy.name]
        held.append(now)
        for name in {p.name for p in (*bound.inputs, *bound.outputs)}:
            if last[name] == position and name not in kept:
                now -= sizes.get(name, 0)
    return Memory(tuple(held), given)


def get_alloc_memory(trace: Trace) -> tuple[int, dict[str, int]]:
    """Return the peak in bytes, and the bytes held while each printed call runs.

    Args:
        trace: any stage of a program.
    """
    found = memory(trace)
    names = [f"{i}: {bound.symbol.id}" for i, bound in enumerate(trace.bound_symbols)]
    return found.peak, dict(zip(names, found.held, strict=True))
