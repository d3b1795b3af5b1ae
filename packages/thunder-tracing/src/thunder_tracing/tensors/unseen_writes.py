"""Writes behind autograd's back, through ``.data``, to what it has saved.

PyTorch takes the gradient from what they wrote. That is the derivative of nothing, and a program that is differentiated
as a whole does not compute it: it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from thunder_autograd import Joint, Split
from thunder_guards.errors import AcquisitionError
from thunder_guards.memory import part_of
from thunder_guards.program import UnseenWrites
from thunder_ir import BoundSymbol, OpTags, TensorProxy, Trace
from thunder_tracing.tensors._view_writes import placed, replaced_view


def check_saved(unseen: UnseenWrites, split: Split) -> None:
    """Refuse a program whose derivatives read what was overwritten.

    Raises:
        AcquisitionError: they do.
    """
    if split.program is not None:
        check_read(unseen, split.program.bound_symbols, split.joint)


def check_read(unseen: UnseenWrites, bound_symbols: Sequence[BoundSymbol], joint: Trace) -> None:
    """Refuse a derivative that reads what was overwritten.

    Args:
        unseen: what was, before the derivative was taken.
        bound_symbols: what is differentiated.
        joint: its joint trace.

    Raises:
        AcquisitionError: it does.
    """
    if not (unseen.memory or unseen.tensors):
        return
    parts = Joint.of(joint)
    found = _overwritten(unseen, bound_symbols, parts)
    for bound in parts.pulled:
        if not found.isdisjoint([p.name for p in bound.inputs]):
            raise AcquisitionError(
                "the program writes through .data to a tensor that autograd has saved, and PyTorch would compute the "
                "gradient from what was written; write before the tensor is used, or to a clone() of it"
            )


def _overwritten(unseen: UnseenWrites, bound_symbols: Sequence[BoundSymbol], parts: Joint) -> set[str]:
    """Return the names of overwritten values, and of what only derivatives compute of them."""
    found = unseen.memory | unseen.tensors | _of_the_same(unseen.tensors, bound_symbols, parts)
    moved = set(unseen.memory)
    computed = _results(bound_symbols)
    views = _results([b for b in bound_symbols if _shares_memory(b)])
    copies = _results([b for b in bound_symbols if b.symbol.origin in COPIES])
    for bound in parts.primal:
        names, made = {p.name for p in bound.inputs}, _results([bound])
        if moved.isdisjoint(names) and found.isdisjoint(names):
            continue
        if not moved.isdisjoint(names) and (_shares_memory(bound) or not made.isdisjoint(views)):
            moved |= made
            found |= made
        elif made.isdisjoint(views | copies):
            found.update([p.name for p in bound.outputs if p.name not in computed])
    return found


def _of_the_same(tensors: set[str], bound_symbols: Sequence[BoundSymbol], parts: Joint) -> set[str]:
    """Return what views of the whole stand for, which the derivatives read in their place."""
    there = _results(parts.primal)
    found: set[str] = set()
    for bound in reversed(bound_symbols):
        made = _results([bound])
        if _shares_memory(bound) and made.isdisjoint(there) and not made.isdisjoint(found | tensors):
            found.update([p.name for p in bound.inputs])
    return found


COPIES = frozenset({placed, replaced_view})
"""Functions that stand for writes to views: autograd saves nothing of what they copy."""


def _shares_memory(bound: BoundSymbol) -> bool:
    return bound.has_tag(OpTags.VIEW) or bound.has_tag(OpTags.SHAPE_OP) or bound.symbol.origin is part_of


def _results(bound_symbols: Sequence[BoundSymbol]) -> set[str]:
    return {p.name for bound in bound_symbols for p in bound.outputs if isinstance(p, TensorProxy)}
