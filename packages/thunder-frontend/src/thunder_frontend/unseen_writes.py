"""Writes behind autograd's back, through ``.data``, to what it has saved.

PyTorch takes the gradient from what they wrote. That is the derivative of nothing, and a program that is differentiated
as a whole does not compute it: it is refused.
"""

from __future__ import annotations

from thunder_autograd import Joint, Split
from thunder_frontend.errors import AcquisitionError
from thunder_frontend.storage import UnseenWrites
from thunder_frontend.view_writes import replaced_view
from thunder_ir import BoundSymbol, OpTags, Trace


def check_saved(unseen: UnseenWrites, split: Split) -> None:
    """Refuse a program whose derivatives read what was overwritten.

    Raises:
        AcquisitionError: they do.
    """
    if not (unseen.memory or unseen.tensors) or split.program is None:
        return
    parts = Joint.of(split.joint)
    found = _overwritten(unseen, split.program, parts)
    for bound in parts.pulled:
        if not found.isdisjoint([p.name for p in bound.inputs]):
            raise AcquisitionError(
                "the program writes through .data to a tensor that autograd has saved, and PyTorch would compute the "
                "gradient from what was written; write before the tensor is used, or to a clone() of it"
            )


def _overwritten(unseen: UnseenWrites, program: Trace, parts: Joint) -> set[str]:
    """Return the names of overwritten values, and of what only derivatives compute of them."""
    found = unseen.memory | unseen.tensors | _of_the_same(unseen.tensors, program, parts)
    moved = set(unseen.memory)
    computed = {p.name for bound in program.bound_symbols for p in bound.outputs}
    copies = {p.name for bound in program.bound_symbols if bound.symbol.origin is replaced_view for p in bound.outputs}
    for bound in parts.primal:
        names, made = {p.name for p in bound.inputs}, [p.name for p in bound.outputs]
        if _shares_memory(bound) and not moved.isdisjoint(names):
            moved.update(made)
            found.update(made)
        elif not found.isdisjoint(names) and copies.isdisjoint(made):
            found.update([name for name in made if name not in computed])
    return found


def _of_the_same(tensors: set[str], program: Trace, parts: Joint) -> set[str]:
    """Return what views of the whole stand for, which the derivatives read in their place."""
    there = {p.name for bound in parts.primal for p in bound.outputs}
    found: set[str] = set()
    for bound in reversed(program.bound_symbols):
        made = {p.name for p in bound.outputs}
        if _shares_memory(bound) and made.isdisjoint(there) and not made.isdisjoint(found | tensors):
            found.update([p.name for p in bound.inputs])
    return found


def _shares_memory(bound: BoundSymbol) -> bool:
    return bound.has_tag(OpTags.VIEW) or bound.has_tag(OpTags.SHAPE_OP)


__all__ = ["check_saved"]
