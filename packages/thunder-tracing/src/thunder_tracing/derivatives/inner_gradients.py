"""``torch.autograd.grad`` inside of a program: the gradients become part of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_autograd import Traits, differentiable_outputs, grad_transform_on_trace, gradient_trace
from thunder_guards.errors import AcquisitionError
from thunder_ir import BoundSymbol, Names, OpTags, TensorProxy, Trace, flat_proxies, substitute
from thunder_ir.passes import leading_to, read_from_outside, under_fresh_names
from thunder_torch.unknown_gradients import rules_for_unknown_sizes
from thunder_tracing.derivatives._freed_graphs import ancestors, check_not_freed, computed_of_others, descendants, freed
from thunder_tracing.derivatives._intermediates import beneath_hooks, edges, marked, with_rule
from thunder_tracing.derivatives._passed_hooks import through_hooks
from thunder_tracing.derivatives._retained_gradients import retain, retained_gradients, retaining
from thunder_tracing.derivatives.backward_hooks import hooked
from thunder_tracing.derivatives.custom_functions import rule_for_higher_derivatives
from thunder_tracing.derivatives.external_hooks import with_hooks
from thunder_tracing.tensors.levels import settle_gradients
from thunder_tracing.tensors.overwrites import WRITTEN_UNSEEN
from thunder_tracing.tensors.unseen_writes import check_read
from thunder_tracing.tensors.write_calls import WriteCalls

RuleOf = Callable[[BoundSymbol], Any]


def inner_gradients(
    calls: WriteCalls,
    outputs: object,
    inputs: object,
    grad_outputs: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Record the gradients of ``outputs`` with respect to ``inputs``; the arguments are ``torch.autograd.grad``'s."""
    with torch._C.DisableTorchFunction():
        outputs, inputs = listed(outputs), listed(inputs)
        wanted, results = edges(calls, inputs), [calls.value(t) for t in outputs]
        given = [None] * len(results) if grad_outputs is None else listed(grad_outputs)
        cotangents = [cotangent(calls, i, r, g) for i, (r, g) in enumerate(zip(results, given, strict=True))]
        gradients = _gradients(calls, wanted, results, cotangents, create_graph)
        made = []
        for tensor, gradient in zip(inputs, gradients, strict=True):
            if gradient is None and materialize_grads:
                gradient = calls.on_values(torch.zeros_like, (calls.value(tensor),), {})
            if gradient is None and not allow_unused:
                _refuse_unused([g is not None for g in gradients])
            made.append(None if gradient is None else calls.wrap(gradient))
        return tuple(made)


def _refuse_unused(used: Sequence[bool]) -> None:
    """Raise what PyTorch does, in its words, if some of the tensors that are differentiated by are not used."""
    with torch.enable_grad():
        tensors = [torch.zeros((), requires_grad=True) for _ in used]
        total = torch.zeros((), requires_grad=True) * 1
        for tensor, is_used in zip(tensors, used, strict=True):
            total = total + tensor if is_used else total
        torch.autograd.grad(total, tensors)


def autograd_grad(
    calls: WriteCalls,
    outputs: object,
    inputs: object,
    grad_outputs: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *args: Any,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Do what ``torch.autograd.grad`` does; its arguments but for the acquisition.

    Raises:
        RuntimeError: as PyTorch's, if one of the tensors does not require grad.
    """
    calls.external.contents(inputs)  # a list may hold some that are not read yet
    with torch._C.DisableTorchFunction():
        outputs, inputs = listed(outputs), listed(inputs)  # which are looked at twice, and may be generators
        results, wanted = [calls.value(t) for t in outputs], edges(calls, inputs)
        if not calls.levels.stack:
            _check_requires_grad(results, wanted)
        bounds = calls.builder.bound_symbols
        gone_through = ancestors(bounds, results) & descendants(bounds, {p.name for p in wanted})
        check_not_freed(gone_through, calls.spent)
        names = {p.name for p in wanted}
        gone_through -= names - computed_of_others(bounds, names)
        if not (create_graph if retain_graph is None else retain_graph):
            calls.spent.update(freed(bounds, gone_through))
        inside = retaining(calls, gone_through)
        retained = retained_gradients(calls, outputs, inside, grad_outputs, create_graph)
    found = calls.inner_gradients(
        outputs, inputs, grad_outputs, *args, retain_graph=retain_graph, create_graph=create_graph, **kwargs
    )
    with torch._C.DisableTorchFunction():
        retain(calls, inside, retained)
    if calls.levels.stack:
        return found
    pairs = zip(map(calls.traced, listed(inputs)), found, strict=True)
    return tuple([with_hooks(calls, tensor, gradient, create_graph) for tensor, gradient in pairs])


def _check_requires_grad(results: Sequence[Any], wanted: Sequence[Any]) -> None:
    for index, result in enumerate(results):
        if not result.requires_grad:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
    if not all([p.requires_grad for p in wanted]):
        raise RuntimeError("One of the differentiated Tensors does not require grad")


def listed(tensors: Any) -> list[Any]:
    """Return a tensor, or several, as a list."""
    return [tensors] if isinstance(tensors, torch.Tensor) or tensors is None else list(tensors)


def cotangent(calls: WriteCalls, index: int, result: TensorProxy, given: Any) -> TensorProxy:
    """Return the cotangent of the result at ``index``: the one that was given, or one.

    Raises:
        RuntimeError: as PyTorch's, where there is none, or one of another shape.
    """
    if given is None:
        if result.numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if result.dtype.is_complex:
            raise RuntimeError("grad can be implicitly created only for real scalar outputs")
        return calls.on_values(torch.ones_like, (result,), {})  # type: ignore[no-any-return]
    made = calls.value(given)
    if tuple(made.shape) != tuple(result.shape):
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {tuple(made.shape)} and output[{index}] has a "
            f"shape of {tuple(result.shape)}."
        )
    return made


def _gradients(
    calls: WriteCalls, wanted: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any], create_graph: bool
) -> list[Any]:
    before = calls.builder.bound_symbols
    wanted = beneath_hooks(before, wanted)
    passed = hooked(calls, _between(before, wanted, results))
    if not passed:
        return _recorded(calls, before, wanted, results, cotangents, create_graph)

    return through_hooks(calls, passed, wanted, (results, cotangents), _recorded, create_graph)


def _recorded(
    calls: WriteCalls,
    part: Sequence[BoundSymbol],
    wanted: Sequence[Any],
    results: Sequence[Any],
    cotangents: Sequence[Any],
    create_graph: bool,
) -> list[Any]:
    """Record gradients that a part of the program leads to."""
    rule_of = with_rule(_rule_of(calls))
    before = calls.builder.bound_symbols
    between = _with_open_draws(before, _between(part, wanted, results), calls.builder.names)
    defined = {p.name for b in before for p in b.outputs}
    calls_between, marked_results, probes = marked(between, results, wanted, calls.builder.names)
    sought = [probes.get(p.name, p) for p in wanted]
    joint, outside = _joint(calls_between, defined, sought, marked_results, rule_of)
    check_read(calls.unseen, calls_between, joint)
    differentiable = [c for c, flows in zip(cotangents, differentiable_outputs(joint), strict=True) if flows]
    known = {**outside, **{p.name: c for p, c in zip(joint.inputs[len(outside) :], differentiable, strict=True)}}
    known |= {probes[p.name].name: p for p in wanted if p.name in probes}
    _record(calls, joint, defined, known, create_graph)
    by_name = dict(zip(outside, joint.output[1], strict=True))
    found = [by_name.get(p.name) for p in sought]
    return [None if g is None else known.get(flat_proxies(g)[0].name, g) for g in found]


def check_recorded(calls: WriteCalls, wanted: Sequence[TensorProxy], results: Sequence[TensorProxy]) -> None:
    """Refuse gradients that are written out in the end if they read what was overwritten behind autograd's back."""
    before, unseen = calls.builder.bound_symbols, calls.unseen.memory | calls.unseen.tensors
    between = _between(before, wanted, results) if unseen else []
    if any([p.name in unseen for b in between if b.symbol is not WRITTEN_UNSEEN for p in b.inputs]):
        defined = {p.name for b in before for p in b.outputs}
        check_read(calls.unseen, between, _joint(between, defined, wanted, results, _rule_of(calls))[0])


def _rule_of(calls: WriteCalls) -> RuleOf:
    return rules_for_unknown_sizes(lambda bound: rule_for_higher_derivatives(calls.rules, bound))


def _between(
    bound_symbols: Sequence[BoundSymbol], wanted: Sequence[TensorProxy], results: Sequence[TensorProxy]
) -> list[BoundSymbol]:
    """Return the calls that a derivative of results by what is wanted may go through: a program may ask for many."""
    reached, after = {p.name for p in wanted}, []
    for bound in bound_symbols:
        if not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and any([p.name in reached for p in bound.inputs]):
            after.append(bound)
            reached.update([p.name for p in bound.outputs])
    return leading_to(after, [p.name for p in results])[0]


def _joint(
    between: Sequence[BoundSymbol], defined: set[str], wanted: Sequence[Any], results: Sequence[Any], rule_of: RuleOf
) -> tuple[Trace, dict[str, Any]]:
    """Return the joint trace of what leads from the wanted to the results, and by name what it gets of that.

    What it computes anew has none of the names that are defined.
    """
    outside = read_from_outside(between, [*wanted, *results])
    trace = Trace("inner", tuple(outside.values()), tuple(between), tuple(results))
    sought = {p.name for p in wanted}
    return grad_transform_on_trace(trace, rule_of=rule_of, wanted=sought, reserved=defined), outside


def _record(calls: WriteCalls, joint: Trace, defined: set[str], known: dict[str, Any], create_graph: bool) -> None:
    """Record what of a joint trace is not yet; ``known``, what stands for its values, gets what stands for the rest."""
    builder = calls.builder
    tags = frozenset() if create_graph else frozenset({OpTags.CONSTANT_FOR_DERIVATIVE})
    requiring = calls.levels.requiring_grad() if create_graph else {}
    drawn: dict[str, BoundSymbol] = {}
    for bound in gradient_trace(joint).bound_symbols:
        if all(p.name in defined for p in bound.outputs):
            continue
        draws = bound.has_tag(OpTags.RANDOM)
        made = under_fresh_names(bound, builder.names, known)
        fresh = {name: p for name, p in made.items() if not draws or name not in defined}
        known.update(fresh)
        emitted = bound.substituted(known).replace(output=substitute(bound.output, fresh))
        if draws:  # in the place of the call that drew these numbers; it returns more
            if len(fresh) == len(emitted.outputs):
                raise AcquisitionError(
                    f"torch.autograd.grad inside of a compiled program goes through {bound.symbol.id}, whose random "
                    "numbers cannot be drawn again; move it out of the program"
                )
            drawn.update({p.name: emitted for p in emitted.outputs})
            continue
        builder.bound_symbols.append(emitted.replace(tags=emitted.tags | tags))
        for proxy in emitted.outputs:
            if isinstance(proxy, TensorProxy):
                proxy.requires_grad = create_graph and proxy.dtype.is_inexact
        if create_graph:
            settle_gradients([builder.bound_symbols[-1]], requiring)
    if drawn:
        replaced = [next((drawn[p.name] for p in b.outputs if p.name in drawn), b) for b in builder.bound_symbols]
        builder.bound_symbols[:] = replaced


def _with_open_draws(bound_symbols: list[BoundSymbol], between: list[BoundSymbol], names: Names) -> list[BoundSymbol]:
    """Put the parts of composites that draw random numbers in the place of these, and return the calls between.

    What is drawn then has a name, by which a derivative reads it. It would draw other numbers of its own otherwise.

    Args:
        bound_symbols: all calls, which are changed.
        between: those that a derivative goes through.
        names: for what is made.
    """
    traits = Traits()
    parts = {id(bound): _opened(bound, names, traits) for bound in between if traits.draws(bound)}
    if not parts:
        return between
    bound_symbols[:] = [part for bound in bound_symbols for part in parts.get(id(bound), (bound,))]
    return [part for bound in between for part in parts.get(id(bound), (bound,))]


def _opened(bound: BoundSymbol, names: Names, traits: Traits) -> list[BoundSymbol]:
    is_constant = bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE)
    if bound.symbol.decomposition is None or is_constant or not traits.draws(bound):
        return [bound]
    parts, output = bound.decomposed(names)
    inner, outer = flat_proxies(output), bound.outputs
    made = {p.name for part in parts for p in part.outputs}
    if any([p.name not in made for p in inner]):  # it returns what it was given
        return [bound]
    known = {p.name: o for p, o in zip(inner, outer, strict=True)}
    renamed = [part.substituted(known).substituted(known, outputs=True) for part in parts]
    return [part for bound in renamed for part in _opened(bound, names, traits)]
