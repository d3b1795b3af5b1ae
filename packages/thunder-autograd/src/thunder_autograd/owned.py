"""Memory of a program that others own, and copies of what is small there.

An input that no pullback reads is its owner's, who may write to it before the backward program runs. So the values that
are computed from it are saved, be they as large as a batch of images to which a bias was added, unless they are
computed from a copy of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from thunder_autograd.programs import COPIED, Joint, live_calls
from thunder_autograd.traits import Trait, Traits, bytes_of
from thunder_ir import BoundSymbol, Builder, Names, OpTags, TensorProxy, flat_proxies, recording

Copy = Callable[[TensorProxy], TensorProxy]

SMALL = 1 / 16  # of what is computed from an input
WORTHWHILE = 1 << 17  # bytes of what is computed: below it, a copy is one more call rather than less memory


def roots(calls: list[BoundSymbol], views: Callable[[BoundSymbol], bool]) -> dict[str, str]:
    """Return what views are views of in the end, by names; ``views`` tells which calls return some."""
    found: dict[str, str] = {}
    for bound in calls:
        if bound.inputs and views(bound):
            source = bound.inputs[0].name
            found.update({p.name: found.get(source, source) for p in bound.outputs})
    return found


def kept_anyway(parts: Joint, traits: Traits) -> Callable[[str], bool]:
    """Return what tells of a name whether a pullback reads that value, or what it is a view of for sure.

    Eager programs keep such values, too.
    """
    viewed = roots(parts.primal, lambda bound: traits.of(bound) is Trait.VIEW)
    kept = {viewed.get(p.name, p.name) for p in parts.frontier()}
    return lambda name: viewed.get(name, name) in kept


def with_copies(parts: Joint, traits: Traits, copy: Copy, names: Names) -> tuple[Joint, dict[str, BoundSymbol]]:
    """Let what is cheap to compute read copies of small inputs that are not kept for the backward program anyway.

    What pullbacks compute of an input reads the input itself, as an eager program would keep it for them.

    Args:
        parts: a joint program.
        traits: of its calls.
        copy: records the copying of a tensor.
        names: of the values of the program; those of the copies are added.

    Returns:
        The program, at the start of which all copies are made, and what makes each, by its name. Calls that run once,
        such as those that draw random numbers, are the same objects as before.
    """
    needed = live_calls(parts.primal, flat_proxies(parts.outputs))
    chosen = _small_inputs(parts, needed, traits)
    if not chosen:
        return parts, {}
    builder = Builder(names)
    with recording(builder):
        copied = {name: copy(tensor) for name, tensor in chosen.items()}
    made = [bound.replace(tags=bound.tags | {COPIED}) for bound in builder.bound_symbols]
    reading = {id(b) for b in needed if _reads(b, copied, traits)}
    calls = [b.substituted(copied) if id(b) in reading else b for b in parts.primal]
    return replace(parts, primal=[*made, *calls]), {b.outputs[0].name: b for b in made}


def _reads(bound: BoundSymbol, copied: dict[str, TensorProxy], traits: Traits) -> bool:
    """Whether a call reads copies. What a checkpoint computes again reads what is there by then."""
    again = bound.has_tag(OpTags.RECOMPUTE)
    return not again and traits.of(bound) <= Trait.CHEAP and any([p.name in copied for p in bound.inputs])


def _small_inputs(parts: Joint, needed: list[BoundSymbol], traits: Traits) -> dict[str, TensorProxy]:
    given: dict[str, TensorProxy] = {p.name: p for p in parts.inputs if isinstance(p, TensorProxy)}
    is_kept = kept_anyway(parts, traits)
    memory = roots(parts.primal, lambda bound: traits.of(bound).may_view)
    largest: dict[str, int] = {}
    for bound in needed:
        if traits.of(bound) is Trait.CHEAP and not bound.has_tag(OpTags.RECOMPUTE):
            read = {memory.get(p.name, p.name) for p in bound.inputs if not is_kept(p.name)}
            size = max([bytes_of(p) for p in bound.outputs])
            largest.update({name: max(size, largest.get(name, 0)) for name in read if name in given})
    return {
        name: given[name]
        for name, size in largest.items()
        if size >= WORTHWHILE and bytes_of(given[name]) <= SMALL * size
    }
