"""What passes may do with a call, read from the tags of its symbol."""

from __future__ import annotations

from thunder_ir.symbols import EFFECTS, BoundSymbol, OpTags
from thunder_ir.unknown import is_unknown


def has_effect(bound: BoundSymbol) -> bool:
    """Whether the call does more than define its outputs, so that it stays even if nothing reads them."""
    return not EFFECTS.isdisjoint(bound.symbol.tags) or not EFFECTS.isdisjoint(bound.tags)


def stays(bound: BoundSymbol) -> bool:
    """Whether the call is made even if nothing reads its outputs: for its effect, or for the numbers that it draws.

    What is drawn later would be other numbers without it.
    """
    return has_effect(bound) or is_random(bound)


def may_fail(bound: BoundSymbol) -> bool:
    """Whether the call, or a part of it, raises for some values of its arguments."""
    return bound.has_tag(OpTags.MAY_FAIL) or any([may_fail(sub) for sub in bound.subsymbols])


def depends_on_the_run(bound: BoundSymbol) -> bool:
    """Whether a number that only the run tells is among the arguments of a call, which may raise for that."""
    return any([is_unknown(p) for p in bound.inputs])


def writes(bound: BoundSymbol) -> bool:
    """Whether the call writes to its first argument."""
    return bound.has_tag(OpTags.IN_PLACE)


def is_random(bound: BoundSymbol) -> bool:
    """Whether the call draws random numbers."""
    return bound.has_tag(OpTags.RANDOM)


def is_repeatable(bound: BoundSymbol) -> bool:
    """Whether calling once or twice is the same: no effect and no random number, in its decomposition either."""
    if has_effect(bound) or is_random(bound):
        return False
    return all([is_repeatable(sub) for sub in bound.subsymbols])
