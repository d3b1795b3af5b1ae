"""Backward programs for the occasion: without some cotangents or gradients, and for derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_autograd.joint import grad_transform_on_trace
from thunder_autograd.programs import ACCUMULATES, gradient_trace, live_calls
from thunder_autograd.split import Split
from thunder_autograd.traits import Trait, Traits
from thunder_ir import BoundSymbol, Provenance, Proxy, Trace, flat_proxies, substitute


def specialised_backward(split: Split, present: Sequence[bool], needed: Sequence[bool]) -> Trace | None:
    """Return the backward program for when only some cotangents are given and only some gradients are asked for.

    The program is linear in its cotangents: what depends only on those that are zero is zero, and a sum with one of
    them is its other term.

    Args:
        split: whose backward program.
        present: for each cotangent, whether there is one; the others count as zero.
        needed: for each gradient, whether it is wanted.

    Returns:
        The program that takes what was saved and the cotangents that are present, or ``None`` where an operation mixes
        a zero with something else, so that zeros must be made.
    """
    backward, count = split.backward, len(split.saved)
    cotangents = backward.inputs[count:]
    depending = {p.name for p in cotangents}
    zero = {p.name for p, there in zip(cotangents, present, strict=True) if not there}
    alias: dict[str, Any] = {}
    kept: list[BoundSymbol] = []
    for bound in backward.bound_symbols:
        read = [p for p in bound.inputs if p.name in depending]
        made = [p.name for p in bound.outputs]
        if read:
            depending.update(made)
        missing = [p for p in read if p.name in zero]
        if missing and len(missing) == len(read):
            zero.update(made)
        elif missing and ACCUMULATES in bound.tags:
            (term,) = [p for p in read if p.name not in zero]
            alias[made[0]] = alias.get(term.name, term)
        elif missing:
            return None
        else:
            kept.append(bound.substituted(alias))
    gradients = tuple(
        [
            None if g is None or not want or g.name in zero else substitute(g, alias)
            for g, want in zip(backward.output, needed, strict=True)
        ]
    )
    given = [p for p, there in zip(cotangents, present, strict=True) if there]
    return backward.replace(
        inputs=(*backward.inputs[:count], *given),
        bound_symbols=tuple(live_calls(kept, flat_proxies(gradients))),
        output=gradients,
        provenance=Provenance("specialised_backward"),
    )


def differentiable_gradients(split: Split) -> Trace:
    """Return the program of the gradients, from inputs and cotangents, in operations that have derivatives themselves.

    It computes from the inputs what the forward program would have saved.

    Raises:
        RuntimeError: the program draws random numbers, communicates or has effects, which must not happen again.
    """
    joint = split.joint
    if split.program is not None:
        wanted = {p.name for p, g in zip(split.program.inputs, joint.output[1], strict=True) if g is not None}
        joint = grad_transform_on_trace(split.program, wanted=wanted, runs_whole=lambda bound: False)
    program = gradient_trace(joint)
    traits = Traits()
    for bound in program.bound_symbols:
        if traits.of(bound) is Trait.FIXED:
            raise RuntimeError(
                f"a second derivative would run {bound.symbol.id} again, which draws random numbers or has effects; "
                "compute the first derivative inside the compiled function, or leave this operation outside of it"
            )
    return program


def differentiable_names(proxies: Sequence[Proxy]) -> set[str]:
    """Return the names of those that can have a derivative."""
    return {p.name for p in proxies if getattr(getattr(p, "dtype", None), "is_inexact", False)}
