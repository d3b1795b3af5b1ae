"""Graphs of autograd that ``backward()`` or ``torch.autograd.grad`` inside of a program frees: no second time."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

from thunder_ir import BoundSymbol, OpTags, TensorProxy
from thunder_torch.traits import Trait, has_trait


def ancestors(bound_symbols: Sequence[BoundSymbol], results: Sequence[TensorProxy]) -> set[str]:
    """Return the names of all that derivatives of ``results`` go through, down to the inputs of the program."""
    reached = {p.name for p in results}
    for bound in reversed(bound_symbols):
        if not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and any(
            [p.name in reached and getattr(p, "requires_grad", False) for p in bound.outputs]
        ):
            reached.update([p.name for p in bound.inputs if getattr(p, "requires_grad", False)])
    return reached


def descendants(bound_symbols: Sequence[BoundSymbol], names: set[str]) -> set[str]:
    """Return the names of all whose derivatives go through values in ``names``, and of these."""
    reached = set(names)
    for bound in bound_symbols:
        if not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and any([p.name in reached for p in bound.inputs]):
            reached.update([p.name for p in bound.outputs if getattr(p, "requires_grad", False)])
    return reached


def computed_of_others(bound_symbols: Sequence[BoundSymbol], names: set[str]) -> set[str]:
    """Return those of ``names`` that derivatives go through on their way to others of them."""
    reached = descendants(bound_symbols, names)
    return {
        p.name
        for bound in bound_symbols
        if not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and any([p.name in reached for p in bound.inputs])
        for p in bound.outputs
        if p.name in names
    }


SECOND_TIME = (
    "Trying to backward through the graph a second time: a compiled program went through it before and freed it. "
    "Specify retain_graph=True there."
)


def freed(bound_symbols: Sequence[BoundSymbol], gone_through: Collection[str]) -> set[str]:
    """Return those of the values that a derivative has gone through which have none any more.

    Args:
        bound_symbols: what was recorded.
        gone_through: names of the results of all nodes that were freed.
    """
    found: set[str] = set()
    for bound in bound_symbols:
        made = [p.name for p in bound.outputs if p.name in gone_through]
        if made and (_keeps_something(bound) or not found.isdisjoint([p.name for p in bound.inputs])):
            found.update(made)
    return found


def _keeps_something(bound: BoundSymbol) -> bool:
    if bound.has_tag(OpTags.VIEW) or bound.has_tag(OpTags.SHAPE_OP) or bound.has_tag(OpTags.CAST):
        return False
    return not has_trait(bound.symbol, Trait.SAVES_NOTHING)


def check_not_freed(gone_through: Collection[str], spent: Set[str]) -> None:
    """Refuse, as PyTorch does, to go a second time through a graph that was freed.

    Args:
        gone_through: names of the values that a derivative is to go through.
        spent: names of those that have none any more.

    Raises:
        RuntimeError: some are the same.
    """
    if not spent.isdisjoint(gone_through):
        raise RuntimeError(SECOND_TIME)
