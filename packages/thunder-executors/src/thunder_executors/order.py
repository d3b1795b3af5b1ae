"""Ordering calls so that little memory is held at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import BoundSymbol, NumberProxy, Proxy, TensorProxy, Trace, value_of
from thunder_ir.passes import trace_pass
from thunder_ir.passes.traits import has_effect, is_random


def bytes_of(proxy: Proxy) -> int:
    """Return the size of a tensor in bytes; of anything else, nothing."""
    if not isinstance(proxy, TensorProxy):
        return 0
    count: int = proxy.dtype.bytes
    for dimension in proxy.shape:
        count *= int(value_of(dimension)) if isinstance(dimension, NumberProxy) else dimension
    return count


def peak_bytes(trace: Trace) -> int:
    """Return the most bytes that the program's tensors take at a time, inputs and outputs included.

    An estimate: every tensor counts as memory of its own, as views do not know their size, and calls need none inside.
    """
    return _peak(trace, trace.bound_symbols)


def _peak(trace: Trace, order: Sequence[BoundSymbol]) -> int:
    last: dict[str, int] = {}
    for position, bound in enumerate(order):
        for proxy in bound.outputs:
            last[proxy.name] = position
        for proxy in bound.inputs:
            last[proxy.name] = position
    for proxy in trace.outputs:
        last[proxy.name] = len(order)
    held = peak = sum([bytes_of(p) for p in trace.inputs])
    sizes = {p.name: bytes_of(p) for p in trace.inputs}
    for position, bound in enumerate(order):
        for proxy in bound.outputs:
            sizes[proxy.name] = bytes_of(proxy)
            held += sizes[proxy.name]
        peak = max(peak, held)
        for name in {p.name for p in bound.inputs} | {p.name for p in bound.outputs}:
            if last[name] == position:
                held -= sizes.get(name, 0)
                sizes[name] = 0
    return peak


@trace_pass
def order_for_memory(trace: Trace) -> Trace:
    """Move calls that make more than they free down to their first reader, where that lowers the peak.

    Calls with effects or random numbers stay where they are, and so does what writes could reach. The better of the new
    order and the old one is taken, by :func:`peak_bytes`. Cost: linear.
    """
    bounds = trace.bound_symbols
    if any([has_effect(bound) for bound in bounds]):
        return trace
    moved = _sink(trace)
    if all(map(_is, moved, bounds)) or _peak(trace, moved) >= _peak(trace, bounds):
        return trace
    return trace.replace(bound_symbols=tuple(moved))


def _is(a: Any, b: Any) -> bool:
    return a is b


def _sink(trace: Trace) -> list[BoundSymbol]:
    """Return the calls with each growing one right before its first reader."""
    bounds = trace.bound_symbols
    final = {p.name for p in trace.outputs}
    readers: dict[str, int] = {}
    for bound in bounds:
        for name in {p.name for p in bound.inputs}:
            readers[name] = readers.get(name, 0) + 1
    waiting: dict[int, list[BoundSymbol]] = {}  # the calls to put right before the call at a position
    first_reader: dict[str, int] = {}
    stays = [True] * len(bounds)
    for position in range(len(bounds) - 1, -1, -1):
        bound = bounds[position]
        outputs = bound.outputs
        reader = min([first_reader[p.name] for p in outputs if p.name in first_reader], default=None)
        target = position
        if reader is not None and reader > position + 1 and not is_random(bound) and _grows(bound, readers, final):
            stays[position] = False
            waiting.setdefault(reader, []).append(bound)
            target = reader
        for proxy in bound.inputs:
            seen = first_reader.get(proxy.name)
            first_reader[proxy.name] = target if seen is None else min(seen, target)
    out: list[BoundSymbol] = []
    for position, bound in enumerate(bounds):
        out += reversed(waiting.get(position, ()))
        if stays[position]:
            out.append(bound)
    return out


def _grows(bound: BoundSymbol, readers: dict[str, int], final: set[str]) -> bool:
    """Whether the call makes more bytes than moving it keeps alive: those of inputs that nobody else reads."""
    kept = {p.name: p for p in bound.inputs if readers[p.name] == 1 and p.name not in final}
    return sum([bytes_of(p) for p in bound.outputs]) > sum([bytes_of(p) for p in kept.values()])
