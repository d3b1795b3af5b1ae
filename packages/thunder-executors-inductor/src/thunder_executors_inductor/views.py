"""Views of a region's outputs, which need no kernel: regions that differ in them alone are equal without."""

from __future__ import annotations

from thunder_executors import Region
from thunder_ir import BoundSymbol, OpTags, TensorProxy


def without_views(region: Region) -> tuple[Region, tuple[BoundSymbol, ...]]:
    """Return a region without those of its outputs that are views of others, and the calls that make these of them.

    The last layer of a model often hands on what the others hand on, but for a view.
    """
    maker = {p.name: bound for bound in region.bound_symbols for p in bound.outputs}
    given = {p.name for p in region.outputs}
    views: dict[str, BoundSymbol] = {}  # in an order in which they can run
    for proxy in region.outputs:
        chain: list[BoundSymbol] = []
        name: str | None = proxy.name
        while name is not None and (bound := maker.get(name)) is not None and (name := viewed(bound)) is not None:
            chain.append(bound)
            if name in given:
                views |= {b.outputs[0].name: b for b in reversed(chain)}
                break
    if not views:
        return region, ()
    outputs = tuple([p for p in region.outputs if p.name not in views])
    return Region(region.bound_symbols, region.inputs, outputs), tuple(views.values())


def viewed(bound: BoundSymbol) -> str | None:
    """Return the name of the tensor that a call returns a view of; ``None`` if it does more, or something else."""
    alone = len(bound.inputs) == len(bound.outputs) == 1 and isinstance(bound.inputs[0], TensorProxy)
    return bound.inputs[0].name if alone and bound.has_tag(OpTags.VIEW) else None


__all__ = ["viewed", "without_views"]
