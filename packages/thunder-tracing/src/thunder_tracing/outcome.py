"""What a program leaves behind: its result and its effects, as templates of values that it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.mutations import MISSING, Write
from thunder_guards.places import BUFFER, WRITTEN
from thunder_guards.program import Effect
from thunder_guards.sources import held
from thunder_guards.templates import Built, External, proxies_of
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, flat_proxies
from thunder_torch.traits import Trait, has_trait
from thunder_torch.views import is_view, view_argument, viewed
from thunder_tracing.derivatives._freed_graphs import SECOND_TIME, ancestors, descendants
from thunder_tracing.derivatives.backward_hooks import hooks_of_result
from thunder_tracing.derivatives.inner_backward import as_gradient
from thunder_tracing.outputs import template
from thunder_tracing.tensors._regenerated import (
    NoGraph,
    RegeneratedView,
    copied_with_history,
    in_inference_mode,
    view_with_history,
    with_attributes,
    with_contents,
    with_gradient,
    with_history,
    with_hooks,
    with_retained_gradient,
)
from thunder_tracing.tensors.array_calls import of_tensor
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.histories import is_unconnected, outdated
from thunder_tracing.tensors.leaves import AsClass, as_leaf
from thunder_tracing.tensors.overwrites import WRITTEN_UNSEEN
from thunder_tracing.tensors.storage import current_value
from thunder_tracing.tensors.symbolic_numbers import at_hand
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


class Outcome:
    """The result and the effects of a program that was acquired.

    Args:
        calls: the acquisition.
        result: what the call returned. What it holds stays alive with this, and so apart by identity.

    ``views`` are templates of values that are views of other values, by name, of which the program computes more.
    """

    def __init__(self, calls: Calls, result: object) -> None:
        self.calls = calls
        self._result = result
        self.spent = descendants(calls.builder.bound_symbols, calls.spent) if calls.spent else calls.spent
        self.views: dict[str, Any] = {}
        self._templates: dict[int, Any] = {}
        self._values: dict[tuple[int, bool], Any] = {}
        self._owners: dict[str, TracedTensor] = {}
        self._leaves: list[Effect] = []
        self._read = _read_by_others(calls.builder.bound_symbols)
        unseen = [b for b in calls.builder.bound_symbols if b.symbol is WRITTEN_UNSEEN]
        self._unseen: dict[str, BoundSymbol] = {b.output.name: b for b in unseen}
        self._there = {*[i.proxy.name for i in calls.inputs], *[n.proxy.name for n in calls.numbers]}
        self._looked_at = 0
        tensor = self._tensor_template
        for array, traced in calls.arrays.written():
            calls.external.templates[id(array)] = Built(of_tensor, (tensor(traced),)), array
        for array, whole, view in calls.arrays.views():
            made = Built(view, (template(whole, tensor, calls.external),))
            calls.external.templates.setdefault(id(array), (made, array))
        self.result = template(result, tensor, calls.external)
        earlier: list[Effect] = []
        others: list[Effect] = []
        for write in calls.external.mutations.writes():
            (earlier if self._fits_no_more(write) else others).extend(self._object_effect(write, tensor))
        changes = calls.stages.effects(tensor, self._history_effects)
        changed = {id(stage.target) for stage in calls.stages}
        histories: dict[bool, list[Effect]] = {False: [], True: []}
        for traced in calls.from_outside():
            histories[id(traced) in changed] += self._history_effects(traced)
        first = [*self._tensor_effects(), *histories[False], *earlier]
        self.effects = [*_with_leaves([*first, *changes, *histories[True]], self._leaves), *others]
        self.effects += calls.later

    @property
    def proxies(self) -> list[Proxy]:
        """The values that result and effects are made of, each once."""
        found = proxies_of(self.result) + [p for e in self.effects for p in proxies_of(e.value)]
        found += proxies_of(self.views)
        return list({p.name: p for p in found}.values())

    def _tensor_template(self, value: torch.Tensor) -> Any:
        """What stands for a tensor that leaves the program.

        One that came from outside is that very tensor. A view of one is made by the epilogue from that very tensor, so
        that it shares its memory, and its history in autograd, as eager's does. All others are computed.
        """
        traced = self.calls.traced(value)
        if hasattr(traced, "_input"):
            return traced._input.proxy
        if hasattr(traced, "_argument"):
            return External(traced._argument)
        made = self._templates.get(id(traced))
        if made is None:
            made = self._leaf_template(traced) if traced._leaf is not None else self._value_template(traced)
            if isinstance(made, TensorProxy) and made.name not in self.views:  # which have theirs
                made = self._with_hooks(made, made)
            is_other = traced._stands_for is not T or self.calls.any_class  # what kernels return may be of a class
            if is_other and traced._leaf is None and traced._shadow is None:
                made = Built(AsClass(traced._stands_for), (made,))
            if traced._retains and self.calls.requires_grad(traced):
                self._check_kept(traced)
                made = Built(with_retained_gradient, (made,))
            gradient = traced.__dict__.get("_gradient") if traced._leaf is None else None
            if gradient is not None:
                made = Built(with_gradient, (made, self._tensor_template(gradient)))
            given = traced.attributes()
            if given:
                parts = {
                    name: template(item, self._tensor_template, self.calls.external) for name, item in given.items()
                }
                made = Built(with_attributes, (made, parts))
            self._templates[id(traced)] = made
        return made

    def _leaf_template(self, traced: TracedTensor) -> Any:
        leaf = traced._leaf.input.proxy
        with torch.no_grad():
            contents = self._value_template(traced, with_gradient=False)
            if contents is traced._proxy:
                contents = self.calls.on_values(T.detach, (contents,), {})
        self._leaves.append(Effect("leaf", leaf, None, contents))
        if (gradient := traced.__dict__.get("_gradient")) is not None:
            self._leaves.append(Effect("attribute", leaf, "grad", self._tensor_template(gradient)))
        return leaf

    def _value_template(self, traced: TracedTensor, with_gradient: bool = True) -> Any:
        made = self._values.get((id(traced), with_gradient))
        if made is None:
            made = self._connected_template(traced, with_gradient)
            reason = outdated(traced) if with_gradient else None
            made = made if reason is None else Built(NoGraph(reason), (made,))
            self._values[id(traced), with_gradient] = made
        return made

    def _connected_template(self, traced: TracedTensor, with_gradient: bool) -> Any:
        view = traced._viewed_as
        current = current_value(traced, self.calls)
        unconnected = with_gradient and is_unconnected(traced)
        if view is not None and traced._memory.outside:
            if with_gradient and self._has_hooks(traced):
                raise AcquisitionError(
                    "a hook on a view of an input, which leaves the compiled program, is not supported; register it "
                    "outside, or on a clone() of the view"
                )
            return self._view_template(traced, current, with_gradient)
        if view is not None and with_gradient and self._is_seen_by_autograd(traced, current):
            is_same = current_value(view.parent, self.calls) is current  # a view of all: what reads it reads the other
            if is_same or not (current.requires_grad and self._is_read(traced)):
                return self._view_template(traced, current, with_gradient)
            if not self._has_own_history(traced) and current.name not in self.spent:
                return self._view_of_results(traced, current)
        before = self._as_others_read_it(traced, current) if with_gradient else None
        if before is not None:
            contents = self.calls.on_values(T.detach, (current,), {})
            return Built(with_contents, (self._own(traced, before), contents))
        value = self._own(traced, current)
        if unconnected:
            return Built(as_leaf, (self.calls.on_values(T.detach, (value,), {}),))
        if value.requires_grad and value.name in self.spent:
            return self._without_graph(value)
        if traced._memory.inference is not torch.is_inference_mode_enabled() and not value.requires_grad:
            return Built(in_inference_mode, (value, traced._memory.inference))
        return value

    def _view_template(self, traced: TracedTensor, current: TensorProxy, with_gradient: bool) -> Built:
        """Return how the epilogue makes a view of what it views."""
        view = traced._viewed_as
        parent_leaf = view.parent._leaf is not None and view.parent.source is None
        before_leaf = parent_leaf and not traced._proxy.requires_grad
        parent = (self._value_template if before_leaf else self._tensor_template)(view.parent)
        made = self._regenerated(traced, parent)
        self.calls.stages.note_view(traced, made)
        if with_gradient and current.requires_grad and self._has_own_history(traced):
            return Built(with_history if view.cuts else view_with_history, (made, current))
        return made

    def _view_of_results(self, traced: TracedTensor, current: TensorProxy) -> TensorProxy:
        """Return the value of a view that is made of other results, so that what is computed of it leads to it."""
        value = self._own(traced, current)
        self.views[value.name] = self._regenerated(traced, self._value_template(traced._viewed_as.parent))
        return value

    def _regenerated(self, traced: TracedTensor, parent: object) -> Built:
        """Return the call that makes a view of what it views."""
        view = traced._viewed_as
        given = tuple(flat_proxies((view.args, view.kwargs)))
        view_again = RegeneratedView(view.step, view.tracked, given)
        made = Built(view_again, (parent, *map(self._unwritten, given)))
        return self._with_hooks(made, traced._proxy) if traced._proxy.requires_grad else made

    def _with_hooks(self, made: Any, value: TensorProxy) -> Any:
        """Return what stands for a result, with the hooks that the program registered on its value."""
        hooks = hooks_of_result(self.calls, value)
        return Built(with_hooks, (made, External(held(hooks, "hooks")))) if hooks else made

    def _has_own_history(self, traced: TracedTensor) -> bool:
        """Whether a view that requires grad does not have the history of what it views."""
        view = traced._viewed_as
        # in place, after the view was made
        forgets = not self.calls.requires_grad(view.parent) or self.calls.is_forgotten(traced)
        return view.detaches or traced._leaf is None and forgets

    def _without_graph(self, value: TensorProxy) -> Built:
        """Return what stands for a value whose graph a derivative has gone through, and freed."""
        detached = self.calls.on_values(T.detach, (value,), {})
        return Built(NoGraph(SECOND_TIME), (detached, *self._sources_of(value)))

    def _sources_of(self, value: TensorProxy) -> list[TensorProxy]:
        """Return the inputs that derivatives of a value go to."""
        reached = ancestors(self.calls.builder.bound_symbols, [value])
        return [i.proxy for i in self.calls.inputs if i.proxy.name in reached and i.proxy.requires_grad]

    def _as_others_read_it(self, traced: TracedTensor, current: TensorProxy) -> TensorProxy | None:
        """Return what a tensor was before writes that autograd did not see, if the program computed something of that.

        Autograd takes both for one tensor: gradients of what was computed of it then come to it.
        """
        if traced._viewed_as is not None or traced._leaf is not None or current.name in self.spent:
            return None
        value, names = current, set()
        while (bound := self._unseen.get(value.name)) is not None:
            value = bound.args[0]
            names.add(value.name)
        if names.isdisjoint(self._read) or any([i.proxy.name == value.name for i in self.calls.inputs]):
            return None
        return value

    def _is_seen_by_autograd(self, traced: TracedTensor, current: TensorProxy) -> bool:
        """Whether autograd knows a view of what the program computes as one, so that the epilogue has to make it.

        What it views is computed then, and leaves the program behind the view, as in eager.
        """
        view, parent = traced._viewed_as, traced
        if view.cuts and traced._recorded:
            return True
        while (leads := parent._viewed_as) is not None:
            if leads.in_place or leads.uncounted or parent._leaf is not None or parent._hooked:
                return False
            if not self._is_there((leads.args, leads.kwargs)):
                return False
            parent = leads.parent
        root = current_value(parent, self.calls)
        return (current.requires_grad or root.requires_grad) and parent._leaf is None and self._is_there(root)

    def _has_hooks(self, traced: TracedTensor) -> bool:
        """Whether the program registered a hook on a tensor, which is part of what it computes then."""
        return traced._hooked or traced._proxy.name in self.calls.hooks

    def _is_read(self, traced: TracedTensor) -> bool:
        """Whether the program computes what requires grad of a view, or of views of that."""
        memory, views, names = traced._memory, {id(traced)}, set()
        for view in (traced, *memory.views):
            if view is traced or id(view._viewed_as.parent) in views:
                views.add(id(view))
                if view._seen == memory.version:  # what was computed before a write is of what was there before
                    names.add(view._proxy.name)
        return not names.isdisjoint(self._read)

    def _is_there(self, tree: object) -> bool:
        """Whether the trace defines all values in a tree: those within ``torch.func``'s levels are gone after them."""
        bound = self.calls.builder.bound_symbols
        self._there.update([p.name for b in bound[self._looked_at :] for p in b.outputs])
        self._looked_at = len(bound)
        return all([p.name in self._there for p in flat_proxies(tree)])

    def _own(self, traced: TracedTensor, value: TensorProxy) -> TensorProxy:
        """Return the value of a tensor as one that no other tensor leaves the program as."""
        if self._owners.setdefault(value.name, traced) is traced:
            return value
        alias: TensorProxy = self.calls.on_values(torch.ops.aten.alias.default, (value,), {})
        return alias

    def _unwritten(self, proxy: object) -> Any:
        """Return a proxy of the same value, apart from inputs that the epilogue writes to before it is read."""
        is_input = any(i.proxy is proxy for i in self.calls.inputs)
        return self.calls.on_values(torch.clone, (proxy,), {}) if is_input else proxy

    def _tensor_effects(self) -> list[Effect]:
        effects = []
        for traced in (*self.calls.from_outside(), *self.calls.stages.befores()):
            if traced._memory.version and traced._viewed_as is None:
                value = current_value(traced, self.calls)
                if value.requires_grad and not traced._recorded:  # written behind autograd's back
                    value = self.calls.on_values(T.detach, (value,), {})
                unseen = "unseen" if traced._versions.count else "uncounted"
                if traced._recorded and value.requires_grad and (value.name in self._read or self._is_read(traced)):
                    value = self._linked_input(traced, value)
                kind = "inference" if traced._memory.inference else "seen" if traced._recorded else unseen
                spent = value.requires_grad and value.name in self.spent
                written = self._without_graph(value) if spent else value
                effects.append(Effect("tensor", traced._input.proxy, kind, written))
        return effects

    def _linked_input(self, traced: TracedTensor, value: TensorProxy) -> TensorProxy:
        """Return what is written to an input such that what the program computes of it then leads, for autograd, to
        the input.

        Raises:
            AcquisitionError: it cannot, and the input keeps its gradient, to which that would not add.
        """
        covers = {i.memory.name for i in self.calls.inputs if i.memory is not None}
        alone = any([i is traced._input for i in self.calls.inputs]) and traced._input.proxy.name not in covers
        if alone and value.name not in self.spent and not self.calls.stages.befores():
            value = self._own(traced, value)
            self.views[value.name] = Built(copied_with_history, (traced._input.proxy, value))
            return value
        self._check_retains(traced)
        return value

    def _check_retains(self, traced: TracedTensor) -> None:
        """Refuse to write to what keeps its gradient where what the program computes of it does not lead to it.

        Raises:
            AcquisitionError: it does, as user code called ``retain_grad()``.
        """
        given = traced.given
        if given is None or given.is_leaf or not self.calls.ask(traced, "retains_grad", given.retains_grad):
            return
        raise AcquisitionError(
            f"the program writes to {traced.source}, which keeps its gradient (retain_grad()), in a way that what it "
            "computes of that then would not add to its gradient; write to a clone() of it, or call retain_grad() on "
            "the result"
        )

    def _check_kept(self, traced: TracedTensor) -> None:
        """Refuse to let a view of what the caller has keep its gradient: that goes to what it views by the program.

        Raises:
            AcquisitionError: the program computes something of it, and it leaves the program.
        """
        if traced._viewed_as is not None and traced._memory.outside and self._is_read(traced):
            raise AcquisitionError(
                "the program calls retain_grad() on a view of a tensor that was computed outside, and computes "
                "something of the view: that would not add to its gradient; call retain_grad() on a clone() of the view"
            )

    def _history_effects(self, traced: TracedTensor) -> list[Effect]:
        """What gives a tensor of the caller's its history, if that is apart from the memory's."""
        view = traced._viewed_as
        if view is None or not view.cuts or not traced._recorded:
            return []
        if traced.given is not None and traced.given.requires_grad and traced.given.is_leaf:
            raise AcquisitionError(
                f"{traced.source} is a leaf that the program detaches in place and then writes what requires grad to, "
                "which is not supported; use detach() and another name"
            )
        if self._is_read(traced):
            self._check_retains(traced)
        return [Effect("tensor", self._tensor_template(traced), "seen", current_value(traced, self.calls))]

    def _fits_no_more(self, write: Write) -> bool:
        """Whether a write gives a tensor a gradient of the shape that it had before its metadata were changed."""
        if not isinstance(write.target, TracedTensor) or write.key != "_gradient":
            return False
        now = self.calls.external.mutations.now(write)
        return isinstance(now, T) and self.calls.value(now).shape != self.calls.value(write.target).shape

    def _object_effect(self, write: Write, tensor: Callable[[torch.Tensor], Any]) -> list[Effect]:
        now = self.calls.external.mutations.now(write)
        if isinstance(write.target, TracedTensor):
            if write.target.source is None:  # goes with the tensor, if that leaves the program
                return []
            value = template(now, tensor, self.calls.external)
            if write.key != "_gradient":
                return [Effect("attribute", tensor(write.target), write.key, value)]
            if isinstance(value, TensorProxy) and not value.requires_grad:
                value = Built(as_gradient, (value, tensor(write.target)))
            return [Effect("attribute", tensor(write.target), "grad", value)]
        source = self.calls.external.source_of(write.target) or held(write.target, type(write.target).__name__)
        target = External(source)
        place = WRITTEN[write.kind]
        if place.is_whole:
            left = place.contents(now, write.before)
            value = External(held(left, "contents")) if place is BUFFER else template(left, tensor, self.calls.external)
            return [Effect(write.kind, target, None, value)]
        if now is MISSING:
            self.calls.external.deleted(write)
        if now is write.before is MISSING or self.calls.external.is_put_back(write, now):
            return []
        if now is MISSING and write.kind == "context":
            raise AcquisitionError(f"the program takes its value from {write.target!r}, which it did not set")
        if now is MISSING:
            return [Effect("delete", target, (write.kind, write.key), None)]
        return [Effect(write.kind, target, write.key, template(now, tensor, self.calls.external))]


def _read_by_others(bound_symbols: Sequence[BoundSymbol]) -> set[str]:
    """Return the names of values that something which requires grad is computed of: what are no views of them, and not
    written over them behind autograd's back."""
    found: set[str] = set()
    for bound in bound_symbols:
        if not any([isinstance(p, TensorProxy) and p.requires_grad for p in bound.outputs]):
            continue
        if not (bound.symbol is WRITTEN_UNSEEN or _only_views(bound)):
            found.update([p.name for p in bound.inputs])
    return found


def _only_views(bound: BoundSymbol) -> bool:
    """Whether a call returns nothing but views of its first argument, for the sizes at hand."""
    if bound.has_tag(OpTags.VIEW) and not has_trait(bound.symbol, Trait.MAY_VIEW):
        return True
    if view_argument(bound.symbol.origin) is None:
        return False
    args, kwargs = at_hand((bound.args, bound.kwargs))
    return is_view(bound.symbol.origin) or all([base is not None for base in viewed(bound.symbol, args, kwargs)])


def _with_leaves(effects: list[Effect], leaves: list[Effect]) -> list[Effect]:
    """Return effects and those that give leaves their contents: these last, or before the first that views a leaf."""
    left: dict[str, list[Effect]] = {}
    for effect in leaves:
        left.setdefault(effect.target.name, []).append(effect)
    ordered: list[Effect] = []

    def give_contents(value: object) -> None:
        for proxy in proxies_of(value):
            for effect in left.pop(proxy.name, ()):
                give_contents(effect.value)
                ordered.append(effect)

    for effect in effects:
        give_contents(effect.value)
        ordered.append(effect)
    return [*ordered, *[effect for rest in left.values() for effect in rest]]
