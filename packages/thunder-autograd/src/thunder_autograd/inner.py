"""Gradients that a program computes of its own values: one call in the program as recorded, written out later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_autograd.joint import RuleOf, grad_transform_on_trace
from thunder_autograd.programs import DRAWS_APART, Joint, differentiable_outputs
from thunder_autograd.traits import Traits
from thunder_ir import (
    BoundSymbol,
    Builder,
    OpTags,
    Provenance,
    Symbol,
    TensorProxy,
    ThunderError,
    Trace,
    recording,
    substitute,
)
from thunder_ir.passes import leading_to
from thunder_ir.trace import DEFAULT


def _like_wanted(results: Any, cotangents: Any, wanted: Sequence[TensorProxy]) -> tuple[TensorProxy, ...]:
    return tuple([p.like(requires_grad=False) for p in wanted])


gradients = Symbol(
    "gradients", "autograd", meta=_like_wanted, tags=frozenset({OpTags.CONSTANT_FOR_DERIVATIVE, OpTags.DONT_RECOMPUTE})
)
"""``gradients(results, cotangents, wanted)``: the gradients of results with respect to inputs of the program.

Each gradient is a tensor of its own, which shares memory with nothing. Nothing runs this: :func:`written_out` puts the
backward program of all that stands before it in its place.
"""


Own = Callable[[TensorProxy, TensorProxy, BoundSymbol | None], TensorProxy]
"""Records what makes a gradient a tensor of its own: takes the gradient, what it is of, and the call that computed it
into memory of its own, ``None`` where it may share some."""


def written_out(trace: Trace, rule_of: RuleOf | None = None, own: Own | None = None) -> tuple[Trace, dict[str, Any]]:
    """Return a program in which no call of :data:`gradients` is left.

    Args:
        trace: the program.
        rule_of: as for :func:`thunder_autograd.grad_transform_on_trace`.
        own: what makes gradients tensors of their own; by default the method ``clone`` of the language.

    Returns:
        The program, and for each value that goes by another name in it, what stands for it.

    Raises:
        ThunderError: a gradient was promised where a rule gives none.
    """
    renamed: dict[str, Any] = {}
    while True:
        index = next((i for i, b in enumerate(trace.bound_symbols) if b.symbol is gradients), None)
        if index is None:
            return trace, renamed
        trace, mapping = _written_out_at(trace, index, rule_of, own or _copied)
        renamed = {name: substitute(proxy, mapping) for name, proxy in renamed.items()} | mapping


def _written_out_at(trace: Trace, index: int, rule_of: RuleOf | None, own: Own) -> tuple[Trace, dict[str, Any]]:
    before, call, after = trace.bound_symbols[:index], trace.bound_symbols[index], trace.bound_symbols[index + 1 :]
    results, given, wanted = call.args
    outputs = {p.name for p in results}
    defined = {p.name: p for b in before for p in b.outputs if p.name not in outputs}
    read = dict.fromkeys([p.name for b in after for p in b.inputs] + [p.name for p in (*trace.outputs, *given)])
    others = [defined[name] for name in read if name in defined]
    _refuse_draws_apart(before, results)
    region = trace.replace(bound_symbols=before, output=(tuple(results), tuple(others)))
    joint = grad_transform_on_trace(
        region,
        rule_of=rule_of,
        wanted={p.name for p in wanted},
        constant={p.name for p in others},
        reserved=[p.name for b in after for p in b.outputs] + [p.name for p in call.outputs],
    )
    parts = Joint.of(joint)
    mapping = dict(zip([p.name for p in (*results, *others)], [*parts.outputs[0], *parts.outputs[1]], strict=True))
    mapping = {name: proxy for name, proxy in mapping.items() if proxy.name != name}
    found = dict(zip([p.name for p in trace.inputs], parts.gradients, strict=True))
    fresh = _fresh_values(parts)
    calls, made = [], {}
    names = joint.names()
    names.reserve([p.name for b in (*after, call) for p in b.outputs])
    copies = Builder(names, DEFAULT.language)
    for proxy, of in zip(call.outputs, wanted, strict=True):
        gradient = found[of.name]
        if gradient is None:
            raise ThunderError(f"no gradient reaches {of.name} ({of.type_string}), though it seemed so")
        with recording(copies):
            made[proxy.name] = own(gradient, of, fresh.pop(gradient.name, None))
    flows = differentiable_outputs(joint)[: len(results)]
    passed = [c for c, flow in zip(substitute(given, mapping), flows, strict=True) if flow]
    cotangents = dict(zip([p.name for p in parts.cotangents], passed, strict=True))
    depending = {id(b) for b in parts.pulled}
    for bound in joint.bound_symbols:
        calls.append(_constant(bound.substituted(cotangents)) if id(bound) in depending else bound)
    mapping |= made
    rest = [b.substituted(mapping) for b in after] if mapping else after
    program = trace.replace(
        bound_symbols=(*calls, *[_constant(b.substituted(cotangents)) for b in copies.bound_symbols], *rest),
        output=substitute(trace.output, mapping),
        constraints=joint.constraints,
        provenance=Provenance("written_out"),
    )
    return program, mapping


def _refuse_draws_apart(before: Sequence[BoundSymbol], results: Sequence[TensorProxy]) -> None:
    """Refuse to go a second time through what cannot draw the same random numbers again."""
    for bound in leading_to(before, [p.name for p in results])[0]:
        if DRAWS_APART in bound.tags and bound.has_tag(OpTags.RANDOM):
            raise ThunderError(
                f"{bound.symbol.id} draws random numbers in a way of its own, and backward() goes through it twice; "
                "call it once, on the sum of the losses"
            )


def _fresh_values(parts: Joint) -> dict[str, BoundSymbol]:
    """Return what computes the values from cotangents that have memory of their own, by the names of these."""
    traits = Traits()
    computing = [b for b in parts.pulled if not traits.of(b).may_view and not b.has_tag(OpTags.SHAPE_OP)]
    return {p.name: b for b in computing for p in b.outputs}


def _constant(bound: BoundSymbol) -> BoundSymbol:
    for proxy in bound.outputs:
        if isinstance(proxy, TensorProxy):
            proxy.requires_grad = False
    return bound.replace(tags=bound.tags | {OpTags.CONSTANT_FOR_DERIVATIVE})


def _copied(gradient: TensorProxy, of: TensorProxy, made_by: BoundSymbol | None) -> TensorProxy:
    return gradient.clone() if made_by is None else gradient
