"""Backward programs for the occasion: without some cotangents or gradients, and for derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from thunder_autograd.joint import RuleOf, grad_transform_on_trace
from thunder_autograd.programs import (
    ACCUMULATES,
    ARRIVES,
    DRAWS_APART,
    Joint,
    differentiable_outputs,
    gradient_trace,
    inputs_with_zeros,
    live_calls,
)
from thunder_autograd.split import Split
from thunder_autograd.traits import Traits
from thunder_ir import (
    BoundSymbol,
    Builder,
    OpTags,
    Provenance,
    Proxy,
    TensorProxy,
    ThunderError,
    Trace,
    flat_proxies,
    recording,
    substitute,
)
from thunder_ir.trace import DEFAULT


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
    kept = without_zeros(backward.bound_symbols, depending, zero, alias)
    if kept is None:
        return None
    gradients, made = remaining_gradients(split, backward.output, present, needed, depending, zero, alias)
    given = [p for p, there in zip(cotangents, present, strict=True) if there]
    return backward.replace(
        inputs=(*backward.inputs[:count], *given),
        bound_symbols=tuple(live_calls([*[bound for _, bound in kept], *made], flat_proxies(gradients))),
        output=gradients,
        provenance=Provenance("specialised_backward"),
    )


def without_zeros(
    bound_symbols: Iterable[BoundSymbol], depending: set[str], zero: set[str], alias: dict[str, Any]
) -> list[tuple[int, BoundSymbol]] | None:
    """Return what is left of calls that are linear in some values where some of these are zero.

    Args:
        bound_symbols: the calls, in order.
        depending: names of the values in which they are linear; those of all that depends on them are added.
        zero: names of those that are zero; all that are zero because of them are added.
        alias: gets what stands for sums of which one term is left.

    Returns:
        The identity of each call that is left, and what it is then; ``None`` where one mixes a zero with something
        else.
    """
    kept: list[tuple[int, BoundSymbol]] = []
    for bound in bound_symbols:
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
        elif missing and ARRIVES in bound.tags and not any([has_open_sizes(p) for p in missing]):
            kept += [(id(bound), call) for call in _arriving(bound, zero, alias)]
        elif missing:
            return None
        else:
            kept.append((id(bound), bound.substituted(alias)))
    return kept


def _arriving(bound: BoundSymbol, zero: Collection[str], alias: dict[str, Any]) -> list[BoundSymbol]:
    """Return the calls that make zeros of the cotangents of a call which are missing; the others are what they are."""
    builder = Builder(None, DEFAULT.language)
    with recording(builder):
        for given, arrived in zip(bound.inputs, bound.outputs, strict=True):
            if given.name in zero:
                _zeros(arrived, builder).name = arrived.name
            else:
                alias[arrived.name] = alias.get(given.name, given)
    return builder.bound_symbols


def remaining_gradients(
    split: Split,
    gradients: Sequence[Any],
    present: Sequence[bool],
    needed: Sequence[bool],
    depending: set[str],
    zero: set[str],
    alias: dict[str, Any],
) -> tuple[tuple[Any, ...], list[BoundSymbol]]:
    """Return the gradients that are left once zeros are gone, and the calls that make zeros among them.

    Args:
        split: whose gradients.
        gradients: those of its backward program.
        present: for each cotangent, whether there is one.
        needed: for each gradient, whether it is wanted.
        depending, zero, alias: see :func:`without_zeros`.
    """
    builder = Builder(split.backward.names(), DEFAULT.language)
    zeros = inputs_with_zeros(split.joint, present)
    for value, gradient in zip(split.joint.inputs, gradients, strict=False):
        if gradient is not None and gradient.name not in depending and value.name not in zeros:
            zero.add(gradient.name)  # zeros that belong to a cotangent which is missing
    with recording(builder):
        left = tuple(
            [
                _specialised(p, g if want else None, zero, alias, zeros, builder)
                for p, g, want in zip(split.joint.inputs, gradients, needed, strict=False)
            ]
        )
    return left, builder.bound_symbols


def _specialised(
    value: Proxy, gradient: Any, zero: Collection[str], alias: dict[str, Any], zeros: set[str], builder: Builder
) -> Any:
    """Return what is left of the gradient of an input where the values in ``zero`` are, zeros if it is in ``zeros``."""
    if gradient is None or gradient.name not in zero:
        return substitute(gradient, alias)
    return _zeros(value, builder) if not has_open_sizes(value) and value.name in zeros else None


def has_open_sizes(value: Proxy) -> bool:
    """Whether a value is no tensor of known sizes."""
    return not isinstance(value, TensorProxy) or any([isinstance(d, Proxy) for d in value.shape])


def differentiable_gradients(split: Split, rule_of: RuleOf | None = None) -> tuple[Trace, set[str]]:
    """Return the program of the gradients, from inputs and cotangents, in operations that have derivatives themselves.

    It computes from the inputs what the forward program would have saved. It draws random numbers as often and in the
    same order as the forward program, so that it meets the same ones where generators are set to what they were.

    Args:
        split: whose gradients.
        rule_of: the rules that go before those of operations because they are part of what the program says, such as
            the derivatives that its author wrote; those of executors are not, as they need have no derivative.

    Returns:
        The program, which takes and returns what the joint program of ``split`` does, and the names of those of its
        inputs that have a second derivative: the ones that have a first one, and the cotangents.

    Raises:
        RuntimeError: the program communicates or has effects, which must not happen again, or draws random numbers in
            a way of its own.
    """
    joint, traits = split.joint, Traits()
    for bound in joint.bound_symbols:
        if DRAWS_APART in bound.tags:
            raise _refused(bound, "draws random numbers that cannot be drawn again")
    if split.program is not None:
        wanted = {p.name for p, g in zip(split.program.inputs, joint.output[1], strict=True) if g is not None}
        program = split.program.replace(
            bound_symbols=tuple([_marked(bound, traits) for bound in split.program.bound_symbols])
        )
        joint = grad_transform_on_trace(program, rule_of=rule_of, wanted=wanted, runs_whole=lambda bound: False)
    made = gradient_trace(joint)
    for bound in made.bound_symbols:
        if traits.has_effects(bound):
            raise _refused(bound, "communicates or has effects")
    made = _aligned(made, Joint.of(joint), Joint.of(split.joint))
    gradients = split.joint.output[1]
    inputs = [p for p, g in zip(made.inputs, gradients, strict=False) if g is not None]
    return made, {p.name for p in (*inputs, *made.inputs[len(gradients) :])}


def _aligned(program: Trace, joint: Joint, first: Joint) -> Trace:
    """Return the program of the gradients of ``joint`` with the cotangents and gradients that ``first`` has.

    The rules of executors may find a derivative, of zeros, where those of the operations find none; or the reverse.
    """
    builder = Builder(program.names(), DEFAULT.language)
    inputs, given, known = list(joint.inputs), iter(joint.cotangents), {}
    takes = zip(
        flat_proxies(joint.outputs),
        differentiable_outputs(first.trace),
        differentiable_outputs(joint.trace),
        strict=True,
    )
    with recording(builder):
        for output, wanted, there in takes:
            cotangent = next(given) if there else None
            if wanted:
                inputs.append(cotangent if cotangent is not None else _unread(output, builder))
            elif cotangent is not None:
                known[cotangent.name] = _zeros(output, builder)
        gradients = tuple(
            [
                _zeros(p, builder) if g is None and other is not None else g
                for p, g, other in zip(joint.inputs, joint.gradients, first.gradients, strict=True)
            ]
        )
    calls = [bound.substituted(known) for bound in program.bound_symbols] if known else program.bound_symbols
    return program.replace(
        inputs=tuple(inputs), bound_symbols=(*builder.bound_symbols, *calls), output=substitute(gradients, known)
    )


def _unread(output: Proxy, builder: Builder) -> Proxy:
    """Return a cotangent that nothing reads."""
    assert isinstance(output, TensorProxy)
    cotangent = output.like(requires_grad=False)
    cotangent.name = builder.names.fresh("d")
    return cotangent


def _zeros(value: Proxy, builder: Builder) -> Any:
    language = builder.language
    zeros = language and language.find("zeros_like")
    if not zeros:
        raise ThunderError("no language is active that could make the zeros of a gradient")
    return zeros(value)


def _marked(bound: BoundSymbol, traits: Traits) -> BoundSymbol:
    """Return a call that says so by its tags where a part of it draws random numbers: it stays, read or not."""
    if bound.has_tag(OpTags.RANDOM) or not traits.draws(bound):
        return bound
    return bound.replace(tags=bound.tags | {OpTags.RANDOM})


def _refused(bound: BoundSymbol, why: str) -> RuntimeError:
    return RuntimeError(
        f"a second derivative would run {bound.symbol.id} again, which {why}; "
        "compute the first derivative inside the compiled function, or leave this operation outside of it"
    )
