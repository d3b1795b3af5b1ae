"""``torch.autograd.Function``: its own forward is what runs, its own backward is its derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from thunder_autograd import ARRIVES, Traits
from thunder_guards.errors import AcquisitionError
from thunder_ir import (
    BoundSymbol,
    NumberProxy,
    OpTags,
    Proxy,
    Symbol,
    TensorProxy,
    ThunderError,
    bind,
    current_builder,
    flat_proxies,
    is_unknown,
    substitute,
)
from thunder_ir.passes import read_from_outside
from thunder_tracing.bailouts import Bailout
from thunder_tracing.derivatives._custom_results import share, viewed_by_several
from thunder_tracing.tensors.overwrites import zeros_like
from thunder_tracing.tensors.storage import current_value, own_storage
from thunder_tracing.tensors.traced_tensor import TracedTensor
from thunder_tracing.tensors.write_calls import WriteCalls, target_dtype

T = torch.Tensor


@dataclass(frozen=True, slots=True)
class CustomRule:
    """The derivative of a custom function, as a rule.

    Args:
        first: the rule by what ``forward`` computes. Its results have that derivative, and not the one that the user
            wrote, where they are differentiated again.
        again: the rule by the call as a whole, for what is differentiated again.
        batches: whether the function says itself what it does for a batch, which no program asks.
    """

    first: Callable[..., Any]
    again: Callable[..., Any]
    batches: bool = False

    def __call__(self, *args: Any) -> Any:
        return self.first(*args)


class Context:
    """What a custom function's ``forward`` and ``backward`` get as ``ctx`` while a program is acquired.

    Args:
        needs_input_grad: for each argument, whether it requires a gradient.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for ``backward``."""
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Note outputs that have no derivative."""
        self._constant = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Note arguments that ``forward`` writes to."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Note whether ``backward`` wants zeros for missing cotangents."""
        self._materialize = value


@dataclass(frozen=True, slots=True, eq=False)
class Pullback:
    """A custom ``backward``, as recorded for some of the cotangents.

    Args:
        bound_symbols: what it does.
        gradients: proxies, one per tensor among the arguments; ``None`` for one without a gradient.
    """

    bound_symbols: list[BoundSymbol]
    gradients: list[Any]


_arrived = Symbol(
    "arrived",
    "custom",
    meta=lambda *cotangents: tuple([c.like() for c in cotangents]),
    decomposition=lambda *cotangents: cotangents,
)
"""All cotangents that ``backward`` gets: where some are missing when the program runs, they are zeros, and it runs."""

_where_arrived = Symbol(
    "where_arrived",
    "custom",
    meta=lambda gradient, cotangent: gradient.like(),
    decomposition=lambda gradient, cotangent: gradient,
)
"""A gradient that ``backward`` returns, which is none where no cotangent came: what does not depend on one, either."""

MOST_WITHOUT_ZEROS = 3
"""Up to how many results a function may have that wants no zeros: ``backward`` is recorded for each subset of them."""


def unobserved(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method ask PyTorch things while what the user's code asks is being recorded."""

    @functools.wraps(method)
    def asked(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return method(*args, **kwargs)

    return asked


class CustomFunctions:
    """Applies custom functions while a program is acquired.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: WriteCalls) -> None:
        self._calls = calls

    def apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Do what ``cls.apply`` does."""
        for name in ("forward", "setup_context", "backward", "vmap"):
            self._calls.external.lookup(cls, name)
        tracked = torch.is_grad_enabled()
        needs = tuple(isinstance(a, torch.Tensor) and tracked and self._calls.value(a).requires_grad for a in args)
        context = Context(needs)
        if any(needs) or self._calls.levels.stack:  # a level asks what forward is, whoever requires grad
            return self._applied(cls, context, args, kwargs)
        with torch.no_grad():
            outputs = self._forward(cls, context, args, kwargs)
        given = [a for a in args if isinstance(a, torch.Tensor) and not _among(a, context._dirty)]
        single = isinstance(outputs, torch.Tensor)
        results = [self._detached(r) if _among(r, given) else r for r in ([outputs] if single else outputs)]
        return results[0] if single else tuple(results)

    def _applied(self, cls: Any, context: Context, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        calls = self._calls
        arguments = {id(a): calls.traced(a) for a in args if isinstance(a, torch.Tensor)}
        inner = {i: self._apart(calls.value(a)) for i, a in arguments.items()}
        passed = [inner.get(id(a), a) for a in args]
        with _Region(self._calls) as forward, torch.no_grad():
            outputs = self._forward(cls, context, passed, kwargs)
        if not _draw(forward.bound_symbols):
            # what it wrote to tensors that it was not given is read from here
            constant = frozenset({OpTags.CONSTANT_FOR_DERIVATIVE})
            calls.builder.bound_symbols += [b.replace(tags=b.tags | constant) for b in forward.bound_symbols]
        single = isinstance(outputs, torch.Tensor)
        results = [calls.traced(r) if isinstance(r, torch.Tensor) else r for r in ([outputs] if single else outputs)]
        written = [t for t in inner.values() if t._memory.version and not _among(t, context._dirty)]
        inside = [*results, *written, *viewed_by_several(results, inner.values())]
        made = self._differentiable(cls, context, list(args), inside, len(results), forward.bound_symbols)
        outside = {id(t): arguments[i] for i, t in inner.items()}
        for tensor, value in zip(written, made[len(results) :], strict=False):
            self._write_unseen(outside[id(tensor)], value)
        made = [self._result(r, m, context, outside) for r, m in zip(inside, made, strict=True)]
        self._share(cls.__name__, context, inside, made, outside, len(results))
        return made[0] if single else tuple(made[: len(results)])

    @unobserved
    def _result(self, result: Any, made: Any, context: Context, outside: Mapping[int, TracedTensor]) -> Any:
        """Return what the caller gets for a result: the argument that was written, if it is that."""
        if _among(result, context._dirty):
            target = outside[id(result)]
            try:
                self._calls.check_writable(target)
            except RuntimeError:  # forward did write to it before autograd refused
                self._write_unseen(target, made)
                raise
            self._calls.assign(target, self._calls.value(made))
            return target
        if _among(result, context._constant):
            return self._detached(made)
        return made

    @unobserved
    def _share(
        self,
        name: str,
        context: Context,
        inside: Sequence[Any],
        made: Sequence[Any],
        outside: dict[int, TracedTensor],
        count: int,
    ) -> None:
        """Let what the caller gets for results share memory as the first ``count`` of ``inside`` do."""
        tensors = [(t, m) for t, m in zip(inside, made, strict=True) if isinstance(t, TracedTensor)]
        places = {id(t): m for t, m in tensors if t.source is None} | outside
        for k, result in enumerate(inside[:count]):
            if isinstance(result, TracedTensor) and not _among(result, context._dirty):
                share(self._calls.new_traced, result, made[k], places, k, name, _among(result, context._constant))

    @unobserved
    def _detached(self, tensor: torch.Tensor) -> Any:
        return self._calls(T.detach, (tensor,), {})

    @unobserved
    def _write_unseen(self, target: TracedTensor, value: torch.Tensor) -> None:
        with torch.no_grad():
            self._calls.assign(target, self._calls.on_values(T.detach, (self._calls.value(value),), {}))

    def _forward(self, cls: Any, context: Context, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if cls.setup_context is torch.autograd.Function.setup_context:
            return self._calls.interpreted(cls.forward)(context, *args, **kwargs)
        outputs = self._calls.interpreted(cls.forward)(*args, **kwargs)
        self._calls.interpreted(cls.setup_context)(context, tuple(args), outputs)
        return outputs

    def _apart(self, proxy: TensorProxy) -> TracedTensor:
        """A traced tensor of the same value, which writes inside the function do not lead out of."""
        tensor = self._calls.new_traced(proxy)
        own_storage(tensor)
        return tensor

    def _differentiable(
        self, cls: type, context: Context, args: list[Any], results: list[Any], count: int, forward: list[BoundSymbol]
    ) -> list[Any]:
        """Record the call as one composite whose rule is the user's ``backward``.

        Args:
            cls, context, args: the function, and what it was given.
            results: what it returned, the first ``count``, and arguments that it wrote to.
            forward: what it did.
        """
        # as forward, which autograd does not record, has them
        values = [
            current_value(self._calls.traced(r), self._calls) if isinstance(r, torch.Tensor) else None for r in results
        ]
        outputs = [v for v in values if v is not None]
        cotangents = [None if v is None else v.like(requires_grad=False) for v in values]
        for c in cotangents:
            if c is not None:
                c.name = self._calls.builder.names.fresh("ct")
                self._calls.layouts.assume(c)
        differentiable = [
            c is not None and c.dtype.is_inexact and not _among(r, context._constant)
            for c, r in zip(cotangents[:count], results, strict=False)
        ]
        there = [c is not None for c in cotangents[:count]]
        pullbacks = {
            present: self._pullback(cls, context, args, cotangents[:count], present)
            for present in _presences(there if context._materialize else differentiable, context._materialize)
        }
        inputs = [self._calls.value(a) for a in args if isinstance(a, torch.Tensor)]
        taken = [c for c in cotangents if c is not None]
        backward = [b for p in pullbacks.values() for b in p.bound_symbols]
        given = {p.name for p in (*inputs, *taken)}
        free = [p for name, p in read_from_outside([*forward, *backward]).items() if name not in given]
        symbol = self._symbol(cls, [*inputs, *free], outputs, taken, there, pullbacks, forward)
        requires_grad = any(context.needs_input_grad)
        made = [o.like(requires_grad=requires_grad and o.dtype.is_inexact) for o in outputs]
        for proxy, value in zip(made, outputs, strict=True):
            proxy.strides = value.strides
        bind(self._calls.builder, symbol, (*inputs, *free), {}, tuple(made))
        wrapped = iter([self._calls.wrap(p) for p in made])
        return [next(wrapped) if v is not None else r for r, v in zip(results, values, strict=True)]

    def _pullback(
        self, cls: Any, context: Context, args: list[Any], cotangents: Sequence[Any], present: tuple[bool, ...]
    ) -> Pullback:
        """Record ``backward`` for the cotangents that are present."""
        given = [self._apart(c) if p else None for c, p in zip(cotangents, present, strict=True)]
        mutations, later = self._calls.external.mutations, self._calls.later
        before = mutations.version, len(later)
        with _Region(self._calls) as backward, torch.no_grad():
            gradients = self._backward(cls, context, given)
            gradients = gradients if isinstance(gradients, tuple) else (gradients,)
            if len(gradients) < len(args) or any([g is not None for g in gradients[len(args) :]]):
                raise AcquisitionError(
                    f"{cls.__name__}.backward returns {len(gradients)} gradients for {len(args)} arguments, for which "
                    "autograd raises an error when it runs it"
                )
            pairs = zip(args, gradients, strict=False)
            pulled = [self._as_gradient(g, a) for a, g in pairs if isinstance(a, torch.Tensor)]
        if (mutations.version, len(later)) != before:
            raise AcquisitionError(
                f"{cls.__name__}.backward prints, warns or changes objects outside of it, which a compiled program "
                "cannot do when it runs backward; do that in a hook of the tensor, or outside"
            )
        return Pullback(backward.bound_symbols, pulled)

    def _backward(self, cls: Any, context: Context, given: Sequence[Any]) -> Any:
        try:
            return self._calls.interpreted(cls.backward)(context, *given)
        except (ThunderError, Bailout):
            raise
        except Exception as error:
            raise AcquisitionError(
                f"{cls.__name__}.backward raises {type(error).__name__}: {error}, which autograd is to raise when it "
                "runs it"
            ) from error

    @unobserved
    def _as_gradient(self, gradient: object, argument: torch.Tensor) -> TensorProxy | None:
        """Bring a gradient to the shape and dtype of its argument, as autograd does."""
        if not isinstance(gradient, torch.Tensor):
            return None
        value, wanted = self._calls.value(gradient), self._calls.value(argument)
        if tuple(value.shape) != tuple(wanted.shape):
            value = self._calls.on_values(T.sum_to_size, (value, tuple(wanted.shape)), {})
        if value.dtype is not wanted.dtype and wanted.dtype.is_inexact:
            value = self._calls.on_values(T.to, (value, target_dtype(self._calls.traced(argument))), {})
        return value

    def _symbol(
        self,
        cls: Any,
        inputs: list[Any],
        outputs: list[Any],
        cotangents: list[Any],
        there: Sequence[bool],
        pullbacks: dict[tuple[bool, ...], Pullback],
        forward: list[BoundSymbol],
    ) -> Symbol:
        def run(*args: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            known = dict(zip([p.name for p in inputs], args, strict=True))
            record_again(forward, known)
            return tuple(substitute(o, known) for o in outputs), known

        def pulled(known: dict[str, Any], given: Sequence[Any]) -> tuple[Any, ...]:
            complete = max(pullbacks, key=sum)
            tensors = iter(given)
            values = [next(tensors) if tensor else None for tensor in there]
            present = tuple([p and v is not None for p, v in zip(complete, values, strict=True)])
            found = pullbacks.get(present, pullbacks[complete])
            builder = current_builder()
            with builder.tagged(ARRIVES):
                arrived = iter(_arrived(*[c for c in given if c is not None]))
            for proxy, cotangent in zip(cotangents, given, strict=True):
                known[proxy.name] = next(arrived) if cotangent is not None else zeros_like(proxy)
            record_again(found.bound_symbols, known)
            first = next(known[p.name] for p, c in zip(cotangents, given, strict=True) if c is not None)
            return tuple(None if g is None else _where_arrived(substitute(g, known), first) for g in found.gradients)

        def rule(*args: Any) -> Any:
            made, known = run(*args)
            return made, lambda *given: pulled(dict(known), given)

        def rule_again(*args: Any) -> Any:
            made = symbol(*args)

            def pullback(*given: Any) -> tuple[Any, ...]:
                with current_builder().tagged(OpTags.CONSTANT_FOR_DERIVATIVE):  # what forward keeps has no history
                    known = run(*args)[1]
                known.update(zip([o.name for o in outputs], made, strict=True))
                return pulled(known, given)

            return made, pullback

        symbol = Symbol(
            cls.__name__, "custom", decomposition=lambda *args: run(*args)[0], language=self._calls.builder.language
        )
        batches = cls.vmap is not torch.autograd.Function.vmap
        self._calls.rules[symbol] = CustomRule(rule, rule if _draw(forward) else rule_again, batches)
        return symbol


def rule_for_higher_derivatives(rules: Mapping[Symbol, Callable[..., Any]], bound: BoundSymbol) -> Any:
    """Return the rule that a program has for a call whose derivative is differentiated again, or ``None``."""
    rule = rules.get(bound.symbol)
    return rule.again if isinstance(rule, CustomRule) else rule


def _draw(bound_symbols: Sequence[BoundSymbol]) -> bool:
    """Whether calls draw random numbers, which must not happen twice."""
    with torch._C.DisableTorchFunction():
        return any([Traits().draws(bound) for bound in bound_symbols])


def _among(tensor: object, tensors: Sequence[Any]) -> bool:
    return any(t is tensor for t in tensors)


def _presences(there: Sequence[bool], materialize: bool) -> list[tuple[bool, ...]]:
    """Return for which of the cotangents ``backward`` is recorded: all, and each subset if it wants no zeros."""
    if materialize or sum(there) > MOST_WITHOUT_ZEROS:
        return [tuple(there)]
    return [choice for choice in product(*[(True, False) if t else (False,) for t in there]) if any(choice)]


class _Region:
    """Takes what is recorded within it out of the trace, but for sizes that are computed of others alone.

    These stay, because what the program demands of sizes is checked before every call.
    """

    def __init__(self, calls: WriteCalls) -> None:
        self._calls, self._builder = calls, calls.builder
        self.bound_symbols: list[BoundSymbol] = []

    def __enter__(self) -> _Region:
        self._start = len(self._builder.bound_symbols)
        self._calls.regions += 1
        return self

    def __exit__(self, *error: Any) -> None:
        self._calls.regions -= 1
        recorded = self._builder.bound_symbols
        taken: list[BoundSymbol] = []
        inside: set[str] = set()
        sizes: list[BoundSymbol] = []
        for bound in recorded[self._start :]:
            if all([_is_symbolic(p) and p.name not in inside for p in (*bound.inputs, *bound.outputs)]):
                sizes.append(bound)
            else:
                inside.update([p.name for p in bound.outputs])
                taken.append(bound.replace(tags=bound.tags - {OpTags.CONSTANT_FOR_DERIVATIVE}))
        self.bound_symbols = taken
        self._calls.producers.keep(taken)
        recorded[self._start :] = sizes


def _is_symbolic(value: Proxy) -> bool:
    """Whether a value is a number that is known before a call, though not when it is compiled."""
    return isinstance(value, NumberProxy) and not is_unknown(value)


def record_again(bound_symbols: Sequence[BoundSymbol], known: dict[str, Any]) -> None:
    """Record calls again, tagged as they were, with the values in ``known`` for names; add what they return to it."""
    for bound in bound_symbols:
        with current_builder().tagged(*bound.tags):  # a check or a draw is more than what reads its result
            made = bound.symbol(*substitute(bound.args, known), **substitute(bound.kwargs, known))
        known.update(zip([p.name for p in bound.outputs], flat_proxies(made), strict=True))
