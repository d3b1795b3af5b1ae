"""Hooks on gradients, of modules and of tensors inside of a program: the backward program calls them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, TypeAlias

import torch

from thunder_autograd import gradients as gradients_of
from thunder_guards.errors import AcquisitionError
from thunder_ir import BoundSymbol, OpTags, Symbol, TensorProxy
from thunder_torch import call, torch_language
from thunder_torch.running import run
from thunder_tracing.derivatives._freed_graphs import ancestors
from thunder_tracing.derivatives._intermediates import edges
from thunder_tracing.tensors._handlers import answers
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.histories import is_unconnected
from thunder_tracing.tensors.overwrites import zeros_like
from thunder_tracing.tensors.traced_tensor import TracedTensor

CALL_HOOKS = Symbol(
    "call_hooks",
    "thunder_tracing",
    meta=lambda hooks, *gradients: hooks.metadata(gradients),
    origin=run,
    tags=frozenset({OpTags.DONT_DCE}),
    language=torch_language,
)
"""Calls hooks in the backward program: an object with a method ``metadata``, and gradients."""
Wrap: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
NO_INPUT_REQUIRES_GRAD = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See torch.nn.Module.register_full_backward_hook for more details."
)


@dataclass(frozen=True)
class Slots:
    """Where the gradients at hand stand among all that a hook is given, ``None`` in the other places.

    Args:
        places: of the gradients.
        count: of all.
    """

    places: tuple[int, ...]
    count: int

    def filled(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return all, with ``None`` where there is none."""
        given = dict(zip(self.places, gradients, strict=True))
        return tuple([given.get(i) for i in range(self.count)])

    def taken(self, all_of_them: Sequence[Any], gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return what stands in these places, in place of ``gradients``."""
        if any([g is not None for i, g in enumerate(all_of_them) if i not in self.places]):
            raise RuntimeError("a backward hook returned a gradient where there was none: a compiled program drops it")
        pairs = zip(self.places, gradients, strict=True)
        return tuple([_in_place_of(gradient, all_of_them[i]) for i, gradient in pairs])


def _in_place_of(gradient: torch.Tensor, changed: object) -> torch.Tensor:
    """Return what a hook made of a gradient."""
    if changed is None:
        return torch.zeros_like(gradient)
    if not isinstance(changed, torch.Tensor):
        raise TypeError(f"expected Variable or None, but a hook returned {type(changed).__name__}")
    if changed.shape != gradient.shape:
        raise RuntimeError(f"hook has changed the size of value: {tuple(gradient.shape)} to {tuple(changed.shape)}")
    if changed.dtype != gradient.dtype or changed.device != gradient.device:
        raise RuntimeError(
            f"hook has changed the type of value: {gradient.dtype} on {gradient.device} to {changed.dtype} on "
            f"{changed.device}"
        )
    return changed


@dataclass(frozen=True, eq=False)
class OutputHooks:
    """Calls the hooks of a module that come before its backward.

    Args:
        module: whose.
        before: these hooks.
        after: those that come after it, where they are called at once since no input has a gradient.
        outputs: of the gradients that are passed.
        inputs: how many inputs the module was given.
    """

    module: torch.nn.Module
    before: tuple[Callable[..., Any], ...]
    after: tuple[Callable[..., Any], ...]
    outputs: Slots
    inputs: int

    def __call__(self, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.outputs.filled(gradients)
        for hook in self.before:
            found = _replaced(hook(self.module, found), found, "Backward pre hook", "grad_output")
        if self.after:
            warnings.warn(NO_INPUT_REQUIRES_GRAD, stacklevel=2)
        for hook in self.after:
            made = hook(self.module, (None,) * self.inputs, found)
            if made is not None and not (isinstance(made, tuple) and all(m is None for m in made)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        return self.outputs.taken(found, gradients)

    def by(self, callable_as: Wrap) -> OutputHooks:
        """Return these, each hook as ``callable_as`` makes it."""
        return replace(self, before=tuple(map(callable_as, self.before)), after=tuple(map(callable_as, self.after)))

    def metadata(self, gradients: Sequence[TensorProxy]) -> tuple[TensorProxy, ...]:
        """Return proxies like the gradients."""
        return tuple([g.like() for g in gradients])


@dataclass(frozen=True, eq=False)
class InputHooks:
    """Calls the hooks of a module that come after its backward.

    Args:
        module: whose.
        after: these hooks.
        outputs, inputs: of the gradients that are passed, first those of outputs. Among those of inputs are zeros for
            tensors that have none.
        tracked: of inputs that have a gradient.
    """

    module: torch.nn.Module
    after: tuple[Callable[..., Any], ...]
    outputs: Slots
    inputs: Slots
    tracked: frozenset[int]

    def __call__(self, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        count = len(self.outputs.places)
        outputs, found = self.outputs.filled(gradients[:count]), self.inputs.filled(gradients[count:])
        for hook in self.after:
            found = _replaced(hook(self.module, found, outputs), found, "Backward hook", "grad_input")
        taken = self.inputs.taken(found, gradients[count:])
        return tuple([g for i, g in zip(self.inputs.places, taken, strict=True) if i in self.tracked])

    def by(self, callable_as: Wrap) -> InputHooks:
        """Return these, each hook as ``callable_as`` makes it."""
        return replace(self, after=tuple(map(callable_as, self.after)))

    def metadata(self, gradients: Sequence[TensorProxy]) -> tuple[TensorProxy, ...]:
        """Return proxies like the gradients of inputs."""
        inputs = gradients[len(self.outputs.places) :]
        return tuple([g.like() for i, g in zip(self.inputs.places, inputs, strict=True) if i in self.tracked])


def _replaced(made: Any, found: tuple[Any, ...], what: str, which: str) -> tuple[Any, ...]:
    if made is None:
        return found
    if len(made) != len(found):
        raise RuntimeError(f"{what} returned an invalid number of {which}, got {len(made)}, but expected {len(found)}")
    return tuple(made)


@dataclass(frozen=True, eq=False)
class TensorHook:
    """Calls a hook on the gradient of a tensor.

    Args:
        hook: takes the gradient, returns another one or ``None``.
    """

    hook: Callable[..., Any]

    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        changed = self.hook(gradient)
        return gradient if changed is None else _in_place_of(gradient, changed)

    def by(self, callable_as: Wrap) -> TensorHook:
        """Return this one, the hook as ``callable_as`` makes it."""
        return TensorHook(callable_as(self.hook))

    def metadata(self, gradients: Sequence[TensorProxy]) -> TensorProxy:
        """Return a proxy like the gradient."""
        return gradients[0].like()


Hooks: TypeAlias = OutputHooks | InputHooks | TensorHook
CallHooks: TypeAlias = Callable[..., Any]
"""Calls hooks: those that :data:`CALL_HOOKS` is given, with gradients."""


@dataclass(frozen=True, eq=False)
class HookRule:
    """The derivative of a call whose gradients pass hooks, which the backward program calls.

    Args:
        symbol: what is called.
        pullback: what calls hooks, and cotangents, to gradients.
    """

    symbol: Symbol
    pullback: Callable[..., Any]

    def __call__(self, *given: TensorProxy) -> tuple[Any, Callable[..., Any]]:
        return self.symbol(*given), partial(self.pullback, CALL_HOOKS)


def hooked(calls: Calls, bound_symbols: Sequence[BoundSymbol]) -> list[tuple[BoundSymbol, HookRule]]:
    """Return those whose gradients pass hooks, with their derivatives."""
    pairs = [(b, calls.rules.get(b.symbol)) for b in bound_symbols]
    return [(bound, rule) for bound, rule in pairs if isinstance(rule, HookRule)]


class ModuleHooks:
    """One call of a module with backward hooks, while a program is acquired: stands for PyTorch's ``BackwardHook``.

    Args:
        calls: the acquisition.
        module: what is called.
        after, before: its hooks, as they stand now.
    """

    def __init__(
        self,
        calls: Calls,
        module: torch.nn.Module,
        after: Sequence[Callable[..., Any]],
        before: Sequence[Callable[..., Any]],
    ) -> None:
        calls.changes += 1  # the hooks are given this very module
        self.calls, self.module = calls, module
        self.after, self.before = tuple(after), tuple(before)
        self.values: dict[int, TensorProxy] = {}
        self.count = 0
        self.places: tuple[int, ...] = ()
        self.of_outputs: tuple[Slots, Sequence[Any]] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of the module such that gradients of them pass its hooks."""
        with torch._C.DisableTorchFunction():
            self.values = {i: self.calls.value(a) for i, a in enumerate(args) if isinstance(a, torch.Tensor)}
        self.count = len(args)
        self.places = self._tracked(args)
        return self._through("module_input", args, self.places, self._pull_inputs)

    def setup_output_hook(self, result: object) -> Any:
        """Return what the module returned such that gradients of it pass its hooks."""
        results = result if isinstance(result, tuple) else (result,)
        places = self._tracked(results)
        count = len(results)
        made = self._through(
            "module_output", results, places, lambda call_hooks, *c: self._pull_outputs(call_hooks, count, places, c)
        )
        del self.calls  # whose rules, which last, refer to this
        if not isinstance(result, tuple):
            return made[0]
        return result._make(made) if hasattr(result, "_make") else made

    def _tracked(self, items: Sequence[Any]) -> tuple[int, ...]:
        if not torch.is_grad_enabled():
            return ()
        with torch._C.DisableTorchFunction():
            return tuple(
                [
                    i
                    for i, item in enumerate(items)
                    if isinstance(item, torch.Tensor) and self.calls.value(item).requires_grad
                ]
            )

    def _through(self, name: str, items: Sequence[Any], places: tuple[int, ...], pull: Any) -> tuple[Any, ...]:
        if not places:
            return tuple(items)
        with torch._C.DisableTorchFunction():
            values = [self.calls.value(items[i]) for i in places]
            made = record_identity(
                self.calls, name, values, lambda call_hooks, *c: pull(call_hooks, *_with_zeros(name, c, values))
            )
            wrapped = {i: self.calls.wrap(proxy) for i, proxy in zip(places, made, strict=True)}
            for tensor in wrapped.values():
                tensor._hooked = True
        return tuple([wrapped.get(i, item) for i, item in enumerate(items)])

    def _pull_outputs(
        self, call_hooks: CallHooks, count: int, places: tuple[int, ...], cotangents: Sequence[Any]
    ) -> tuple[Any, ...]:
        present = [k for k, c in enumerate(cotangents) if c is not None]
        slots = Slots(tuple([places[k] for k in present]), count)
        given = [cotangents[k] for k in present]
        at_once = () if self.places else self.after
        if self.before or at_once:
            hooks = OutputHooks(self.module, self.before, at_once, slots, self.count)
            given = list(call_hooks(hooks, *given))
        self.of_outputs = slots, given
        found = dict(zip(present, given, strict=True))
        return tuple([found.get(k) for k in range(len(cotangents))])

    def _pull_inputs(self, call_hooks: CallHooks, *cotangents: Any) -> tuple[Any, ...]:
        if self.of_outputs is None or not self.after:  # the gradient did not come by way of the outputs
            return cotangents
        (slots, given), self.of_outputs = self.of_outputs, None
        known = dict(zip(self.places, cotangents, strict=True))
        all_of_them = [known[i] if i in known else zeros_like(v) for i, v in self.values.items()]
        inputs = Slots(tuple(self.values), self.count)
        hooks = InputHooks(self.module, self.after, slots, inputs, frozenset(self.places))
        return tuple(call_hooks(hooks, *given, *all_of_them))


def _with_zeros(name: str, cotangents: Sequence[Any], values: Sequence[TensorProxy]) -> list[Any]:
    """Return the cotangents of a module's inputs, zeros for missing ones, as PyTorch does; those of outputs stay."""
    if name == "module_output":
        return list(cotangents)
    return [zeros_like(v) if c is None else c for c, v in zip(cotangents, values, strict=True)]


def record_identity(
    calls: Calls,
    name: str,
    values: Sequence[TensorProxy],
    pullback: Callable[..., Any],
    outputs: Sequence[TensorProxy] | None = None,
    place: int | None = None,
) -> tuple[TensorProxy, ...]:
    """Record a call that returns its values, and whose gradients pass hooks.

    Args:
        calls: the acquisition.
        name: of the symbol.
        values: what it is given.
        pullback: what calls hooks, and cotangents, to gradients, one for each of ``values``.
        outputs: the proxies for what it returns, new ones if not given.
        place: in the trace; the end if not given.
    """

    tags = frozenset({OpTags.VIEW} if len(values) == 1 else ())
    symbol = Symbol(name, "hooks", decomposition=_same, tags=tags, language=calls.builder.language)
    calls.rules[symbol] = HookRule(symbol, pullback)
    builder = calls.builder
    if outputs is None:
        outputs = [v.like() for v in values]
        for proxy in outputs:
            proxy.name = builder.names.fresh("t")
    where = builder.locate() if builder.locate is not None else None
    bound = BoundSymbol(symbol, tuple(values), {}, tuple(outputs), where, builder.tags)
    builder.bound_symbols.insert(len(builder.bound_symbols) if place is None else place, bound)
    return tuple(outputs)


def _same(*given: TensorProxy) -> tuple[Any, ...]:
    return tuple([call(torch.Tensor.detach, (v,), {}) for v in given])


class HookHandle:
    """What registering a hook on a tensor of a program returns."""

    def remove(self) -> None:
        """Refuse: the hook is part of the program by now."""
        raise AcquisitionError("a hook on a tensor of a compiled program cannot be removed inside of it")


@answers(torch.Tensor.register_hook)
def _register_hook(calls: Calls, tensor: torch.Tensor, hook: Callable[..., Any]) -> HookHandle:
    """Let the gradient of a tensor that the program computed pass a hook."""
    with torch._C.DisableTorchFunction():
        return _hooked(calls, calls.traced(tensor), hook)


def _hooked(calls: Calls, tensor: TracedTensor, hook: Callable[..., Any]) -> HookHandle:
    is_outside = calls.external.stays
    (value,) = edges(calls, [tensor])
    if not value.requires_grad and is_unconnected(tensor):
        raise AcquisitionError(
            "a hook on a view that autograd did not record, of a tensor that requires grad, is not supported inside of "
            "a compiled program; register it outside"
        )
    if not value.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    bounds = calls.builder.bound_symbols
    place = next((i for i, b in enumerate(bounds) if any([p.name == value.name for p in b.outputs])), None)
    unseen = tensor.source is not None and not tensor._recorded  # written behind autograd's back, if at all
    if place is None or unseen:
        raise AcquisitionError(
            "a hook on an input inside of a compiled program would be registered again on each call, which is not "
            "supported; register it outside"
        )
    if _passed_before(calls, value):
        raise AcquisitionError(
            "a hook that is registered here, behind a backward() that went through its tensor, would be called by that "
            "one, too; register it before, or outside of the compiled program"
        )
    if not is_outside(hook) and not _is_closed(hook, is_outside):
        raise AcquisitionError(
            "the hook that is registered here reads what the compiled program made, which is gone when the hook is "
            "called; let it read what is outside, or register it outside"
        )
    calls.changes += 1
    calls.hooks.setdefault(value.name, []).append(hook)
    while bounds[place].symbol.name == "tensor_hook" and bounds[place].symbol in calls.rules:  # called before this one
        value = bounds[place].args[0]
        place = next(i for i, b in enumerate(bounds) if any([p.name == value.name for p in b.outputs]))
    inner = value.renamed(calls.builder.names.fresh("t"))
    bounds[place] = bounds[place].substituted({value.name: inner}, outputs=True)
    called = TensorHook(hook)
    record_identity(
        calls,
        "tensor_hook",
        [inner],
        lambda call_hooks, c: (None if c is None else call_hooks(called, c),),
        [value],
        place + 1,
    )
    return HookHandle()


def hooks_of_result(calls: Calls, value: TensorProxy) -> tuple[Callable[..., Any], ...]:
    """Return the hooks on a value that leaves the program, and let its backward program not call them any more.

    The result is to have them, before those that user code registers outside: they see what comes to it from there, and
    what it retains is what they made of that.

    Raises:
        AcquisitionError: a derivative inside of the program has to call them, too.
    """
    hooks = calls.hooks.get(value.name)
    if not hooks:
        return ()
    if _passed_before(calls, value):
        raise AcquisitionError(
            "a tensor with a hook that is registered here leaves the compiled program, which computes gradients of "
            "what it computes of that; register the hook outside, or return a clone() of the tensor"
        )
    for bound in reversed(calls.builder.bound_symbols):
        if bound.symbol.name == "tensor_hook" and bound.outputs[0].name == value.name:
            calls.rules[bound.symbol] = lambda given: (_same(given), lambda cotangent: cotangent)
            value = bound.args[0]
    return tuple(hooks)


def _passed_before(calls: Calls, value: TensorProxy) -> bool:
    """Whether ``backward()`` inside of the program, which is written out in the end, went through a value."""
    bounds = calls.builder.bound_symbols
    return value.name in ancestors(bounds, [p for b in bounds if b.symbol is gradients_of for p in b.args[0]])


def _is_closed(hook: object, is_outside: Callable[[Any], bool]) -> bool:
    """Whether a function that the program made reads only numbers, and what is outside."""
    if isinstance(hook, (MethodType, BuiltinMethodType)):
        return is_outside(hook.__self__)
    if not isinstance(hook, FunctionType):
        return False
    held = [c.cell_contents for c in hook.__closure__ or () if not is_outside(c)]
    held += [*(hook.__defaults__ or ()), *(hook.__kwdefaults__ or {}).values()]
    return all([h is None or isinstance(h, (bool, int, float, str)) or is_outside(h) for h in held])
