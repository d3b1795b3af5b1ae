"""The bridge to ``torch.autograd``: a compiled function takes part in it like any operation of PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from thunder_autograd import (
    Split,
    forward_and_backward,
    specialised_backward,
)
from thunder_ir import AnyProxy, BoundSymbol, OpTags, Proxy, Symbol, TensorProxy, Trace
from thunder_ir.trees import flatten, unflatten
from thunder_prims import tidy
from thunder_torch.gradient_memory import gradients_apart
from thunder_torch.independent_results import Flags, SavedForOthers, independent_groups, untouched
from thunder_torch.linked_results import Linked, Pass
from thunder_torch.links import Links, ResultView
from thunder_torch.lone_results import lone_places, views_of_inputs
from thunder_torch.own_nodes import give_own_node
from thunder_torch.randomness import Generators
from thunder_torch.result_hooks import skip_nothing
from thunder_torch.saved_apart import SavedApart, check_unchanged, versions_of
from thunder_torch.second_derivatives import SecondDerivatives, places_read
from thunder_torch.staged_backward import StagedBackward, filled
from thunder_torch.uncast import uncast

# ``Function.apply`` asks in Python whether functorch is active and whether ``setup_context`` is defined before it calls
# this method, in the time of a small operation. A compiled function is entered only where neither is the case.
_APPLY = torch._C._FunctionBase.__dict__["apply"]

_GRAD_FN = attrgetter("grad_fn")

Compile = Callable[[Trace], Trace]
Runnable = Callable[[Trace], Callable[..., Any]]


def connect_autograd(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    split: Split,
    *,
    boxed: bool = False,
    compile: Compile | None = None,
    runnable: Runnable = Trace.python_callable,
    differentiate: Callable[..., Split] = forward_and_backward,
    rule_of: Callable[[BoundSymbol], Any] | None = None,
    overwritten: Mapping[str, str] = MappingProxyType({}),
    views: Mapping[int, ResultView] = MappingProxyType({}),
    name: str = "Compiled",
) -> Callable[..., Any]:
    """Return a function of the forward program's inputs whose results have gradients.

    Args:
        forward: runs ``split.forward``: flat inputs to ``(outputs, saved)``.
        backward: runs ``split.backward``: ``saved`` and cotangents, flat, to the gradients, one per input.
        split: both programs; tells which outputs are differentiable and how many values are saved.
        boxed: whether ``backward`` takes a single list and empties it, as programs do that :func:`in_a_box` returns.
            What was saved is then freed as soon as it was used for the last time, and not when the whole is done.
        compile: makes programs ready to run that are needed seldom: the backward program for when only some outputs
            were used or only some gradients are asked for, and second derivatives. They are made at the first
            occasion. Without it, zeros stand for missing cotangents, and ``create_graph=True`` is refused.
        runnable: makes of what ``compile`` returns what is called.
        differentiate: called with a program and ``wanted=``, the names of inputs; splits what ``create_graph=True``
            differentiates again.
        rule_of: the derivatives that the program says some of its calls have, for second ones to start from.
        overwritten: names of inputs that are written to once the forward program has run, by who runs it, and of
            what is written: second derivatives start from what they held before.
        views: how results at some places are made of others, as views that autograd knows, where ``compile`` is given.
        name: of the node in the graph, ``"CompiledBackward"``.

    Returns:
        The function. It must not be called while a functorch transform is active: PyTorch refuses that.
    """
    node = _Node(forward, backward, split, boxed, compile, runnable, differentiate, rule_of, overwritten, views)
    function: Any = type(name, (torch.autograd.Function,), {"forward": node.forward(), "backward": node.backward()})
    function._backward_cls.apart = function._backward_cls.for_others = None
    # PyTorch's own ``apply`` asks in Python whether there is a ``vjp``, and then calls this.
    function._backward_cls.apply = function.backward
    apply = _without_constants(_APPLY.__get__(None, function), split.forward.inputs, node.wanted)
    if node.is_linked:
        apply = Linked(node.links, node.positions, name, function, node.sent).connected(apply)
    elif any(node.positions):
        skip_nothing(function)
        apply = _with_own_nodes(apply, [i for i in node.positions if i])
    structure = split.forward.output[0]
    if _is_flat(structure):
        return apply
    _, spec = flatten(structure)
    if isinstance(structure, Proxy):
        return lambda *inputs: apply(*inputs)[0]
    return lambda *inputs: unflatten(spec, apply(*inputs))


def _without_constants(apply: Callable[..., Any], inputs: Sequence[Any], wanted: Sequence[bool]) -> Callable[..., Any]:
    """Return ``apply`` such that the graph leads to no input through which no gradient flows.

    What computed such an input may have run backward already, and is nothing that eager's results depend on. Where
    there is no other input, it is what makes the results require grad.
    """
    requiring = [isinstance(p, TensorProxy) and p.requires_grad for p in inputs]
    constant = [i for i, (r, w) in enumerate(zip(requiring, wanted, strict=True)) if r and not w]
    if not constant or not any(wanted):
        return apply

    def apply_without(*values: Any) -> Any:
        given = list(values)
        for i in constant:
            given[i] = given[i].detach()
        return apply(*given)

    return apply_without


def _with_own_nodes(apply: Callable[..., Any], places: Sequence[int]) -> Callable[..., Any]:
    """Return ``apply`` such that results in some places have nodes of their own."""

    def apply_apart(*inputs: Any) -> Any:
        results = apply(*inputs)
        give_own_node(results, places)
        return results

    return apply_apart


def _leading_to_saved(split: Split, overwritten: Mapping[str, str]) -> list[int]:
    """Return the places of overwritten inputs that require no grad and that what is saved was computed from.

    Statistics that a call updates, of which it returns the new ones beside its result, do not lead to the result.
    """
    needed = {p.name for p in split.saved}
    producers = {p.name: bound for bound in split.forward.bound_symbols for p in bound.outputs}
    news: dict[str, set[str]] = {}
    for name, new in overwritten.items():
        producer = producers.get(new)  # which may be the copy into the input
        news[name] = {new} if producer is None else {new, *[p.name for p in producer.inputs]}
    for bound in reversed(split.forward.bound_symbols):
        if needed.isdisjoint([p.name for p in bound.outputs]):
            continue
        made = {p.name for p in bound.outputs}
        needed.update([p.name for p in bound.inputs if len(made) == 1 or made.isdisjoint(news.get(p.name, ()))])
    return [
        i
        for i, p in enumerate(split.forward.inputs)
        if isinstance(p, TensorProxy) and not p.requires_grad and p.name in overwritten and p.name in needed
    ]


def _is_flat(structure: Any) -> bool:
    return type(structure) is tuple and all([s is None or isinstance(s, Proxy) for s in structure])


def _taken(places: list[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what takes the items at some places, in their order, of a tuple."""
    if not places:
        return lambda values: ()
    if places[-1] - places[0] < len(places):  # they follow each other
        return itemgetter(slice(places[0], places[-1] + 1))
    return itemgetter(*places)


@dataclass(frozen=True, slots=True)
class _Variant:
    """The backward program for some cotangents.

    Args:
        run: takes what was saved and the cotangents, in a box.
        reads: the places of what it reads of what was saved.
    """

    run: Callable[[list[Any]], Any]
    reads: frozenset[int]


class _Node:
    """What all calls of one compiled function share: the two programs and those made on occasion."""

    def __init__(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        split: Split,
        boxed: bool,
        compile: Compile | None,
        runnable: Runnable,
        differentiate: Callable[..., Split],
        rule_of: Callable[[BoundSymbol], Any] | None,
        overwritten: Mapping[str, str],
        views: Mapping[int, ResultView],
    ) -> None:
        self.run_forward = forward
        self.run_backward = backward if boxed else lambda values: backward(*values)
        self.split, self.compile, self.runnable = split, compile, runnable
        self.differentiate, self.rule_of = differentiate, rule_of
        self.leaves = flatten(split.forward.output[0])[0]
        takes = iter(split.differentiable)
        flags = [isinstance(leaf, Proxy) and next(takes) for leaf in self.leaves]
        self.positions = [i for i, taken in enumerate(flags) if taken]
        self.constant = [
            i
            for i, (leaf, taken) in enumerate(zip(self.leaves, flags, strict=True))
            if isinstance(leaf, TensorProxy) and leaf.dtype.is_inexact and not (taken or leaf.requires_grad)
        ]
        self.wanted = tuple([g is not None for g in split.joint.output[1]])
        self.tensors = sum([isinstance(p, TensorProxy) for p in split.saved])
        self.variants: dict[Any, _Variant | None] = {}
        self.read_by: dict[Any, frozenset[int] | None] = {}
        self.groups: tuple[int, ...] | None = None
        self.may_run_in_part = compile is not None and len(self.positions) > 1
        self.second = SecondDerivatives(split, self.wanted, differentiate, rule_of, self.connected)
        saved = {p.name for p in split.saved}
        self.given = [i for i, p in enumerate(split.forward.inputs) if isinstance(p, TensorProxy)]
        self.copied = _leading_to_saved(split, overwritten) if overwritten and compile is not None else []
        names = [p.name for p in split.forward.inputs]
        self.unsaved = [i for i in self.given if names[i] not in saved and i not in self.copied]
        self.generators = Generators.of(split.forward) if split.draws and compile is not None else None
        self.links = Links.of(split, self.positions, views)
        self.alone = lone_places(split.forward, self.leaves, list(views))
        self.views = views_of_inputs(split.forward, split.saved)
        self.is_linked = compile is not None and any(self.links.levels)
        self.staged = StagedBackward(split, self.links, self.positions, self.made_ready) if self.is_linked else None

    def forward(self) -> Any:
        """Make the static method that runs the forward program."""
        run, tensors, constant, unsaved = self.run_forward, self.tensors, self.constant, _taken(self.unsaved)
        alone, views = self.alone, self.views
        copied, keeps_inputs, generators = self.copied, self.compile is not None, self.generators
        all_tensors = tensors == len(self.split.saved)
        in_part = self.may_run_in_part
        structure = self.split.forward.output[0]
        spread = None if _is_flat(structure) else _spread(structure)

        def forward(context: Any, *inputs: Any) -> Any:
            if generators is not None:  # a second derivative draws the same numbers again
                context.states = generators.states()
            before: Sequence[Any] = inputs
            if copied:
                before = [t.clone() if i in copied else t for i, t in enumerate(inputs)]
            outputs, saved = run(*inputs)
            if spread is not None:
                outputs = spread(outputs)
            for i in alone:
                if outputs[i]._is_view():
                    outputs = [o.detach() if k in alone and o._is_view() else o for k, o in enumerate(outputs)]
                    break
            if views:  # PyTorch hands out no view, made where nothing is recorded, of what was written to since
                saved = tuple([t.detach() if i in views else t for i, t in enumerate(saved)])
            if all_tensors:
                context.to_save = saved
            else:
                context.to_save, context.numbers = saved[:tensors], saved[tensors:]
            if in_part:
                context.saved_versions = versions_of(context.to_save)
            context.materialize_grads = False
            if keeps_inputs:  # a second derivative starts from them; versions tell whether they are still the same
                context.inputs = before, versions_of(unsaved(inputs))
            if constant:
                context.mark_non_differentiable(*[outputs[i] for i in constant])
            return tuple(outputs)

        return staticmethod(forward)

    def backward(self) -> Any:
        """Make the static method that runs the backward program."""
        run, positions, release = self.run_backward, self.positions, self.release
        all_outputs = positions == list(range(len(self.leaves)))
        all_tensors = self.tensors == len(self.split.saved)
        is_grad_enabled, linked, in_part = torch.is_grad_enabled, self.is_linked, self.may_run_in_part

        def backward(context: Any, *arrived: Any) -> Any:
            cotangents: Sequence[Any] = arrived
            reads: Container[int] | None = None
            present: Flags | None = None
            others: Flags | None = None
            if linked and context.passes:
                current = context.passes.get(torch._C._current_graph_task_id())
                if current is not None:
                    return self.last(context, current, cotangents)
            if not all_outputs:
                cotangents = tuple([cotangents[i] for i in positions])
            if is_grad_enabled():
                return self.differentiably(context, cotangents)
            program: Callable[[list[Any]], Any] = run
            for cotangent in cotangents:
                if cotangent is None:
                    present = tuple([c is not None for c in cotangents])
                    if not any(present):  # nothing is read of what user code may have written to
                        release(context)
                        return (None,) * len(self.wanted)
                    program, cotangents, reads = self.with_some(context, cotangents, present)
                    break
            try:
                saved = context.saved_tensors
            except RuntimeError as error:
                if reads is None or present is None:
                    raise
                saved, others = self.saved_apart(context, present, reads, error)
            if in_part:
                context.for_others = None if present is None else self.kept_for_others(context, present, others, saved)
            values = [*saved, *cotangents] if all_tensors else [*saved, *context.numbers, *cotangents]
            del saved
            release(context)
            return program(values)

        return staticmethod(uncast(backward))

    def sent(self, context: Any, current: Pass, places: Sequence[int]) -> list[Any]:
        """Return what comes to results in some places from those that are computed of them."""
        if all([i not in current.asked for i in places]):
            return [None for _ in places]
        if torch.is_grad_enabled():
            found = self.differentiably_in_part(context, current, places)
        else:
            assert self.staged is not None
            found = self.staged.send(current, self.saved_of(context), self.metadata_of(context))
        return [found.get(i) for i in places]

    def last(self, context: Any, current: Pass, cotangents: Sequence[Any]) -> Any:
        """Return the gradients once those of results were looked at on the way."""
        current.cotangents.update([(i, c) for i, c in enumerate(cotangents) if self.links.levels[i] == 0])
        if torch.is_grad_enabled():
            return self.differentiably_in_part(context, current, None)
        assert self.staged is not None
        needed = self.needed_by(context)
        return self.staged.last(current, self.saved_of(context), self.metadata_of(context), needed)

    def saved_of(self, context: Any) -> Sequence[Any]:
        """Return what the forward program saved."""
        saved = context.saved_tensors
        return saved if self.tensors == len(self.split.saved) else (*saved, *context.numbers)

    def metadata_of(self, context: Any) -> Any:
        """Return shapes, dtypes and devices of the results."""
        return context._input_metadata

    def release(self, context: Any) -> None:
        """Let go of what was saved, and of inputs that were computed and that nothing else may need, as PyTorch does.

        Where the graph is kept nothing happens: what was saved can still be read then, and only PyTorch knows.
        """
        context.maybe_clear_saved_tensors()
        if self.compile is None or context.inputs is None:
            return
        inputs = context.inputs[0]
        given = inputs if len(inputs) == len(self.given) else [inputs[i] for i in self.given]
        try:
            are_leaves = context.apart is None and not any(map(_GRAD_FN, given))
        except RuntimeError:  # of one of several views, to whose memory something was written since
            are_leaves = False
        if not are_leaves:
            try:
                context._raw_saved_tensors  # noqa: B018
            except RuntimeError:
                context.inputs = context.apart = None

    def with_some(
        self, context: Any, cotangents: Sequence[Any], present: Flags
    ) -> tuple[Callable[[list[Any]], Any], Sequence[Any], Container[int] | None]:
        """Return the backward program for the cotangents that there are and the inputs that required grad, what it
        takes of them, and the places of the saved tensors that it reads; ``None`` for all."""
        if self.compile is None:
            return self.run_backward, self.with_zeros(context, cotangents), None
        needed = self.needed_by(context)
        if (present, needed) not in self.variants:
            self.variants[present, needed] = self.variant(present, needed)
        variant = self.variants[present, needed]
        if variant is None:
            return self.run_backward, self.with_zeros(context, cotangents), None
        return variant.run, [c for c in cotangents if c is not None], variant.reads

    def variant(self, present: tuple[bool, ...], needed: tuple[bool, ...]) -> _Variant | None:
        """Make the backward program for some cotangents and some inputs; ``None`` where zeros must be made."""
        program = specialised_backward(self.split, present, needed)
        if program is None:
            return None
        return _Variant(self.compiled_backward(program, self.split), places_read(program, self.split.saved))

    def needed_by(self, context: Any) -> Flags:
        """Return for each input whether a call computes its gradient."""
        return tuple([w and n for w, n in zip(self.wanted, context.needs_input_grad, strict=True)])

    def saved_apart(
        self, context: Any, present: Flags, reads: Container[int], error: RuntimeError
    ) -> tuple[list[Tensor | None], Flags | None]:
        """Return the saved tensors that are read where PyTorch has an error for all of them: user code wrote to one,
        or the node ran before. Also for which results what was saved is still there; ``None`` for all.

        Raises:
            RuntimeError: one of those that are read was written to or is gone, or the error is another one.
        """
        if context.apart is None:
            try:
                context.apart = SavedApart(context, context.saved_versions)
            except RuntimeError:
                kept = context.for_others
                if kept is None or not kept.serve(present):
                    raise error from None
                return kept.values(reads, context.saved_versions), kept.results
        return context.apart.values(reads), None

    def kept_for_others(
        self, context: Any, present: Flags, still: Flags | None, saved: Sequence[Tensor | None]
    ) -> SavedForOthers | None:
        """Return what was saved for results that are independent of those with cotangents; ``None`` if there are none.

        Args:
            context: of the call.
            present: for each result, whether it has a cotangent.
            still: for which of them what was saved was still there; ``None`` for all.
            saved: what was; ``None`` for what user code may have written to.
        """
        if self.groups is None:
            self.groups = independent_groups(self.split.joint)
        others = untouched(self.groups, present)
        if still is not None:
            saved = context.for_others.tensors
            others = tuple([o and s for o, s in zip(others, still, strict=True)])
        if not any(others):
            return None
        key = others, self.needed_by(context)
        if key not in self.read_by:
            program = specialised_backward(self.split, *key)
            self.read_by[key] = None if program is None else places_read(program, self.split.saved)
        reads = self.read_by[key]
        if reads is None or any([t is None and i in reads for i, t in enumerate(saved)]):
            return None
        return SavedForOthers(saved, reads, others)

    def made_ready(self, program: Trace) -> Callable[..., Any]:
        """Return what runs a program that is needed seldom."""
        assert self.compile is not None
        return self.runnable(self.compile(program))

    def compiled_backward(self, program: Trace, split: Split) -> Callable[[list[Any]], Any]:
        """Make a backward program of a split ready to run."""
        assert self.compile is not None
        apart = gradients_apart(tidy(program), len(split.saved))
        return self.runnable(in_a_box(self.compile(apart)))

    def with_zeros(self, context: Any, cotangents: Sequence[Any]) -> list[Any]:
        """Put zeros where there is no cotangent."""
        return filled(cotangents, [context._input_metadata[i] for i in self.positions])

    def differentiably(self, context: Any, cotangents: Sequence[Any]) -> Any:
        """Compute gradients that have gradients: from the inputs anew, as a compiled function of its own."""
        if self.compile is None:
            raise RuntimeError(
                "this compiled function was made without second derivatives: create_graph=True is refused"
            )
        return self.differentiated_again(context, cotangents)

    def connected(self, split: Split) -> Callable[..., Any]:
        """Return what runs the program of gradients, which have gradients in turn."""
        return connect_autograd(
            self.made_ready(split.forward),
            self.compiled_backward(split.backward, split),
            split,
            boxed=True,
            compile=self.compile,
            runnable=self.runnable,
            differentiate=self.differentiate,
            rule_of=self.rule_of,
            name="CompiledGradient",
        )

    def differentiably_in_part(self, context: Any, current: Pass, places: Sequence[int] | None) -> Any:
        """Compute gradients that have gradients of some results, or of the inputs, where results were looked at."""
        watched = zip(self.links.watched, context.results, strict=True)
        given = {place: reference() for (place, _), reference in watched if place in current.asked}
        if any([result is None for result in given.values()]):
            raise RuntimeError(
                "a result of a compiled function has a hook on its gradient and is gone, so that gradients of the "
                "results that were computed of it cannot be differentiated again; keep it until then"
            )
        cotangents = [current.cotangents.get(i) for i in self.positions]
        wanted = None if places is None else tuple([i for i in places if i in given])
        made = self.differentiated_again(context, cotangents, given, wanted)
        return made if wanted is None else dict(zip(wanted, made, strict=True))

    def differentiated_again(
        self,
        context: Any,
        cotangents: Sequence[Any],
        given: Mapping[int, Any] = MappingProxyType({}),
        wanted: tuple[int, ...] | None = None,
    ) -> Any:
        """Run the program of the gradients, with the results that are ``given`` for what is computed of them."""
        context.saved_tensors  # noqa: B018  (raises PyTorch's error where they are freed or were modified)
        program = self.second.program(tuple(given), wanted)
        inputs = self.unchanged_inputs(context, program.reads)
        values = [*inputs, *given.values(), *self.with_zeros(context, cotangents)]
        if self.generators is None:
            return program.run(*values)
        with self.generators.replaying(context.states):
            return program.run(*values)

    def unchanged_inputs(self, context: Any, reads: Container[int]) -> Sequence[Any]:
        """Return the inputs of a call.

        Raises:
            RuntimeError: one of those at the places that are read was written to since.
        """
        inputs, versions = context.inputs
        for i, version in zip(self.unsaved, versions, strict=True):
            if i in reads:
                check_unchanged(f"input {i} of a compiled function", inputs[i], version)
        return inputs  # type: ignore[no-any-return]


def in_a_box(trace: Trace) -> Trace:
    """Return a program that takes its inputs in one list, which it empties.

    A caller that passes values one by one holds on to them until the program returns; in a list it hands them over.

    Args:
        trace: ready to run; what frees values after their last use stands in it.
    """
    box = AnyProxy(trace.names().take("values"))
    unpacking = BoundSymbol(_UNPACK, (box,), {}, tuple(trace.inputs))
    return trace.replace(inputs=(box,), bound_symbols=(unpacking, *trace.bound_symbols))


def _print_unpacking(bound: BoundSymbol, context: Any) -> list[str]:
    names = [p.name for p in bound.outputs]
    return [f"[{', '.join(names)}] = {bound.args[0].name}", f"{bound.args[0].name}.clear()"]


_UNPACK = Symbol("unpack", "bridge", printer=_print_unpacking, tags=frozenset({OpTags.DONT_DCE, OpTags.PROLOGUE}))


def _spread(structure: Any) -> Callable[[Any], tuple[Any, ...]]:
    if isinstance(structure, Proxy):
        return lambda outputs: (outputs,)
    return lambda outputs: tuple(flatten(outputs)[0])
