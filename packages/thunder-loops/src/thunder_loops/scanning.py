"""Cumulative sums and products: one value after the other, as PyTorch adds them up, and in the same dtype."""

from __future__ import annotations

from collections.abc import Mapping

import thunder_prims as prims
from thunder_ir import Trace
from thunder_loops.build import LOW_PRECISION, Builder, computed_in
from thunder_loops.elementwise import operand_dtype
from thunder_loops.rules import Elements, Wanted, lowering
from thunder_loops.shape import is_one

SCANNING: Mapping[object, str] = {prims.cumsum: "sum", prims.cumprod: "prod"}
"""Prims that walk along a dimension, and the names of their scans."""


@lowering(prims.cumsum, prims.cumprod)
def accumulated(build: Builder, wanted: Wanted) -> Elements:
    """All elements up to the place, and each result rounded."""
    a, dim = wanted.args
    if not a.ndim or is_one(a.shape[dim]):
        return (yield a, wanted.place)
    dtype = operand_dtype(a)
    axis, reverse = build.scanned(wanted, dim)
    wide = computed_in(dtype) if dtype in LOW_PRECISION else build.accumulate.get(dtype, dtype)
    value = build.to((yield a, wanted.place), wide)
    return build.to(build.scan(SCANNING[wanted.bound.symbol], value, axis, reverse), dtype)


def turned_around(region: Trace) -> frozenset[str]:
    """Return the results of scans that are read from the other end alone: of those that run backwards.

    Args:
        region: in prims.
    """
    scans = [b for b in region.bound_symbols if b.symbol in SCANNING and b.args[0].ndim]
    found = {p.name: b.args[1] for b in scans for p in b.outputs if isinstance(b.args[0].shape[b.args[1]], int)}
    read: set[str] = set()
    others = {p.name for p in region.outputs}
    for bound in region.bound_symbols:
        for proxy in bound.inputs:
            if proxy.name not in found:
                continue
            turns = bound.symbol is prims.flip and tuple(bound.args[1]) == (found[proxy.name],)
            (read if turns else others).add(proxy.name)
    return frozenset(read - others)
