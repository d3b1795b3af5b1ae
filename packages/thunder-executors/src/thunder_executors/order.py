"""Ordering calls so that little memory is held at a time."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_ir import OpTags, Proxy, TensorProxy, Trace, value_of
from thunder_ir.passes import has_effect, trace_pass

FIXED = frozenset({OpTags.RANDOM, OpTags.COLLECTIVE, OpTags.DEVICE_SYNC})


def bytes_of(proxy: Proxy) -> int:
    """Return the size of a tensor in bytes; of anything else, nothing."""
    if not isinstance(proxy, TensorProxy):
        return 0
    count: int = proxy.dtype.bytes
    for dimension in proxy.shape:
        count *= dimension if dimension.__class__ is int else value_of(dimension)
    return count


@trace_pass
def order_for_memory(trace: Trace) -> Trace:
    """Move calls that make more than they free down to their first reader, where that lowers the peak.

    Programs with effects, other than on generators of random numbers, are left as they are, and what draws random
    numbers, communicates or waits for a device stays where it was put. The better of the new order and the old one is
    taken, where each tensor counts as memory of its own. Cost: linear.
    """
    bounds = trace.bound_symbols
    if any([has_effect(bound) and not bound.has_tag(OpTags.RANDOM) for bound in bounds]):
        return trace
    flow = _Flow(trace)
    order = flow.sunk([not (FIXED.isdisjoint(b.symbol.tags) and FIXED.isdisjoint(b.tags)) for b in bounds])
    before = range(len(bounds))
    if order is None or flow.peak(order) >= flow.peak(before):
        return trace
    return trace.replace(bound_symbols=tuple([bounds[i] for i in order]))


class _Flow:
    """Which call reads and makes which values, and how large these are."""

    def __init__(self, trace: Trace) -> None:
        self.sizes: dict[str, int] = {p.name: bytes_of(p) for p in trace.inputs}
        self.given = sum(self.sizes.values())
        self.reads: list[set[str]] = []
        self.makes: list[list[str]] = []
        self.grown: list[int] = []
        for bound in trace.bound_symbols:
            outputs = bound.outputs
            grown = 0
            for proxy in outputs:
                size = self.sizes[proxy.name] = bytes_of(proxy)
                grown += size
            self.grown.append(grown)
            self.reads.append({p.name for p in bound.inputs})
            self.makes.append([p.name for p in outputs])
        self.final = {p.name for p in trace.outputs}

    def peak(self, order: Sequence[int]) -> int:
        """Return the most bytes held at a time if the calls run in this order."""
        sizes = self.sizes
        alive = set(self.final)
        freed: list[int] = []
        for position in reversed(order):
            less = 0
            for name in (*self.reads[position], *self.makes[position]):
                if name not in alive:
                    alive.add(name)
                    less += sizes[name]
            freed.append(less)
        held = most = self.given
        for position, less in zip(order, reversed(freed), strict=True):
            held += self.grown[position]
            if held > most:
                most = held
            held -= less
        return most

    def sunk(self, fixed: Sequence[bool]) -> list[int] | None:
        """Return the order with each growing call right before its first reader; ``None`` if that moves none.

        Args:
            fixed: for each call, whether it must stay where it is.
        """
        readers: dict[str, int] = {}
        for names in self.reads:
            for name in names:
                readers[name] = readers.get(name, 0) + 1
        waiting: dict[int, list[int]] = {}  # the calls to put right before the call at a position
        first_reader: dict[str, int] = {}
        for position in range(len(self.reads) - 1, -1, -1):
            readers_here = [first_reader[n] for n in self.makes[position] if n in first_reader]
            reader = min(readers_here) if readers_here else -1
            target = position
            if reader > position + 1 and not fixed[position] and self.grows(position, readers):
                waiting.setdefault(reader, []).append(position)
                target = reader
            for name in self.reads[position]:
                if first_reader.get(name, target) >= target:
                    first_reader[name] = target
        if not waiting:
            return None
        moved = {position for positions in waiting.values() for position in positions}
        order: list[int] = []
        for position in range(len(self.reads)):
            order += reversed(waiting.get(position, ()))
            if position not in moved:
                order.append(position)
        return order

    def grows(self, position: int, readers: dict[str, int]) -> bool:
        """Whether a call makes more bytes than moving it keeps alive: those of inputs that nothing else reads."""
        kept = sum([self.sizes[n] for n in self.reads[position] if readers[n] == 1 and n not in self.final])
        return self.grown[position] > kept
