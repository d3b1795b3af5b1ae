"""What of a region becomes loop nests: what computes; views of the results are left to those who look at memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thunder_executors import Region
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace
from thunder_ir.passes import expand, leading_to
from thunder_ir.passes.traits import may_fail
from thunder_loops.space import symbolic_sizes


@dataclass(frozen=True, slots=True)
class Parts:
    """What becomes of a region.

    Args:
        inside: calls that are computed by kernels.
        outputs: what these kernels return.
        views: calls that only look at memory; others do that for nothing.
    """

    inside: tuple[BoundSymbol, ...]
    outputs: tuple[TensorProxy, ...]
    views: tuple[BoundSymbol, ...]


def moves_only(bound: BoundSymbol) -> bool:
    """Whether a call looks at memory in another way, and computes nothing."""
    if bound.symbol.is_prim:
        return OpTags.VIEW in bound.symbol.tags
    trace = Trace("call", tuple({p.name: p for p in bound.inputs}.values()), (bound,), bound.outputs)
    prims = expand(trace).bound_symbols
    return all([OpTags.VIEW in b.symbol.tags for b in prims])


def creates(bounds: Iterable[BoundSymbol]) -> bool:
    """Whether calls read no tensor."""
    return not any([isinstance(p, TensorProxy) for b in bounds for p in b.inputs])


def of_untold_sizes(region: Region) -> list[BoundSymbol]:
    """Return the calls of a region that make tensors of sizes which none that it reads tells: others make them."""
    told = {d.name for p in region.inputs for d in symbolic_sizes((p,))}
    return [
        b
        for b in region.bound_symbols
        if creates((b,)) and not told.issuperset([d.name for d in symbolic_sizes(b.outputs)])
    ]


def parts_of(region: Region) -> Parts:
    """Take the views that others want of a region out of it."""
    views = {p.name: b for b in region.bound_symbols if moves_only(b) for p in b.outputs}
    computed = {p.name for b in region.bound_symbols for p in b.outputs if p.name not in views}
    wanted: dict[str, Proxy] = {p.name: p for p in region.outputs if p.name in computed}
    left: dict[int, BoundSymbol] = {}
    waiting = [p for p in region.outputs if p.name in views]
    while waiting:
        bound = views[waiting.pop().name]
        if id(bound) in left:
            continue
        left[id(bound)] = bound
        for proxy in bound.inputs:
            if proxy.name in views:
                waiting.append(proxy)
            elif proxy.name in computed:
                wanted.setdefault(proxy.name, proxy)
    needed, _ = leading_to(region.bound_symbols, wanted, besides=may_fail)
    outputs = tuple([p for p in wanted.values() if isinstance(p, TensorProxy)])
    return Parts(tuple(needed), outputs, tuple([b for b in region.bound_symbols if id(b) in left]))
