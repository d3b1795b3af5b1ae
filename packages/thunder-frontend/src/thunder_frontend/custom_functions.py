"""``torch.autograd.Function``: its own forward is what runs, its own backward is its derivative."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_autograd import Traits
from thunder_frontend.errors import AcquisitionError
from thunder_frontend.overwrites import RULES, zeros_like
from thunder_frontend.storage import own_storage
from thunder_frontend.torch_calls import TorchCalls
from thunder_frontend.traced_tensor import TracedTensor
from thunder_ir import BoundSymbol, OpTags, Proxy, Symbol, TensorProxy, flat_proxies, substitute


@dataclass(frozen=True, slots=True)
class CustomRule:
    """The derivative of a custom function, as a rule.

    Args:
        first: the rule by what ``forward`` computes. Its results have that derivative, and not the one that the user
            wrote, where they are differentiated again.
        again: the rule by the call as a whole, for what is differentiated again.
    """

    first: Callable[..., Any]
    again: Callable[..., Any]

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
        self._constant: set[int] = set()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for ``backward``."""
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Note outputs that have no derivative."""
        self._constant.update(map(id, tensors))

    def mark_dirty(self, *tensors: Any) -> None:
        """Refuse: a custom function that writes to its arguments cannot be taken apart."""
        raise AcquisitionError(
            "ctx.mark_dirty() inside of a compiled program is not supported; return a new tensor instead"
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Note whether ``backward`` wants zeros for missing cotangents."""
        self._materialize = value


class CustomFunctions:
    """Applies custom functions while a program is acquired.

    Args:
        calls: the acquisition.
        interpreted: makes a callable that runs interpreted when called from here.
    """

    def __init__(self, calls: TorchCalls, interpreted: Callable[[Any], Callable[..., Any]]) -> None:
        self._calls = calls
        self._interpreted = interpreted
        self.rules: dict[Symbol, Callable[..., Any]] = dict(RULES)

    def apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Do what ``cls.apply`` does."""
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        tracked = torch.is_grad_enabled()
        needs = tuple(isinstance(a, torch.Tensor) and tracked and self._calls.value(a).requires_grad for a in args)
        context = Context(needs)
        inner = {id(t): self._apart(self._calls.value(t)) for t in tensors}
        passed = [inner[id(a)] if isinstance(a, torch.Tensor) else a for a in args]
        with self._recorded() as forward, torch.no_grad():
            outputs = self._forward(cls, context, passed, kwargs)
        if not any(needs):
            self._calls.builder.bound_symbols += forward.bound_symbols
            return outputs
        single = isinstance(outputs, torch.Tensor)
        results = [outputs] if single else list(outputs)
        made = self._differentiable(cls, context, list(args), results, forward.bound_symbols)
        return made[0] if single else tuple(made)

    def _forward(self, cls: Any, context: Context, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if cls.setup_context is torch.autograd.Function.setup_context:
            return self._interpreted(cls.forward)(context, *args, **kwargs)
        outputs = self._interpreted(cls.forward)(*args, **kwargs)
        self._interpreted(cls.setup_context)(context, tuple(args), outputs)
        return outputs

    def _apart(self, proxy: TensorProxy) -> TracedTensor:
        """A traced tensor of the same value, which writes inside the function do not lead out of."""
        tensor = TracedTensor(proxy)
        own_storage(tensor)
        return tensor

    def _recorded(self) -> _Region:
        return _Region(self._calls)

    def _differentiable(
        self, cls: Any, context: Context, args: list[Any], results: list[Any], forward: list[BoundSymbol]
    ) -> list[Any]:
        """Record the call as one composite whose rule is the user's ``backward``."""
        values = [self._calls.value(r) if isinstance(r, torch.Tensor) else None for r in results]
        outputs = [v for v in values if v is not None]
        cotangents = [v.like(requires_grad=False) for v in outputs]
        for c in cotangents:
            c.name = self._calls.builder.names.fresh("ct")
        given = [self._apart(c) for c in cotangents]
        with self._recorded() as backward, torch.no_grad():
            gradients = self._interpreted(cls.backward)(context, *given)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        pulled = [self._calls.value(g) if isinstance(g, torch.Tensor) else None for g in gradients]
        inputs = [self._calls.value(a) for a in args if isinstance(a, torch.Tensor)]
        wanted = [p for a, p in zip(args, [*pulled, *[None] * len(args)], strict=False) if isinstance(a, torch.Tensor)]
        free = _free([*forward, *backward.bound_symbols], [*inputs, *cotangents])
        symbol = self._symbol(cls, [*inputs, *free], outputs, cotangents, wanted, forward, backward.bound_symbols)
        made = [o.like(requires_grad=True) for o in outputs]
        builder = self._calls.builder
        for proxy in made:
            proxy.name = builder.names.fresh("t")
        arguments = (*inputs, *free)
        where = builder.locate() if builder.locate is not None else None
        builder.bound_symbols.append(BoundSymbol(symbol, arguments, {}, tuple(made), where, builder.tags))
        wrapped = iter([self._calls.wrap(p) for p in made])
        return [next(wrapped) if v is not None else r for r, v in zip(results, values, strict=True)]

    def _symbol(
        self,
        cls: Any,
        inputs: list[Any],
        outputs: list[Any],
        cotangents: list[Any],
        gradients: list[Any],
        forward: list[BoundSymbol],
        backward: list[BoundSymbol],
    ) -> Symbol:
        def run(*args: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            known = dict(zip([p.name for p in inputs], args, strict=True))
            replay(forward, known)
            return tuple(substitute(o, known) for o in outputs), known

        def pulled(known: dict[str, Any], given: Sequence[Any]) -> tuple[Any, ...]:
            for proxy, cotangent in zip(cotangents, given, strict=True):
                known[proxy.name] = cotangent if cotangent is not None else zeros_like(proxy)
            replay(backward, known)
            return tuple(None if g is None else substitute(g, known) for g in gradients)

        def rule(*args: Any) -> Any:
            made, known = run(*args)
            return made, lambda *given: pulled(dict(known), given)

        def rule_again(*args: Any) -> Any:
            made = symbol(*args)

            def pullback(*given: Any) -> tuple[Any, ...]:
                known = run(*args)[1]
                known.update(zip([o.name for o in outputs], made, strict=True))
                return pulled(known, given)

            return made, pullback

        symbol = Symbol(
            cls.__name__, "custom", decomposition=lambda *args: run(*args)[0], language=self._calls.builder.language
        )
        draws = any([Traits().draws(bound) for bound in forward])  # which must not happen twice
        self.rules[symbol] = CustomRule(rule, rule if draws else rule_again)
        return symbol


def rule_for_higher_derivatives(rules: Mapping[Symbol, Callable[..., Any]], bound: BoundSymbol) -> Any:
    """Return the rule that a program has for a call whose derivative is differentiated again, or ``None``."""
    rule = rules.get(bound.symbol)
    return rule.again if isinstance(rule, CustomRule) else rule


class _Region:
    """Takes what is recorded within it out of the trace."""

    def __init__(self, calls: TorchCalls) -> None:
        self._builder = calls.builder
        self.bound_symbols: list[BoundSymbol] = []

    def __enter__(self) -> _Region:
        self._start = len(self._builder.bound_symbols)
        return self

    def __exit__(self, *error: Any) -> None:
        recorded = self._builder.bound_symbols
        self.bound_symbols = [
            b.replace(tags=b.tags - {OpTags.CONSTANT_FOR_DERIVATIVE}) for b in recorded[self._start :]
        ]
        del recorded[self._start :]


def replay(bound_symbols: Sequence[BoundSymbol], known: dict[str, Any]) -> None:
    """Record calls again, with the values in ``known`` for names; add what they return to ``known``."""
    for bound in bound_symbols:
        made = bound.symbol(*substitute(bound.args, known), **substitute(bound.kwargs, known))
        known.update(zip([p.name for p in bound.outputs], flat_proxies(made), strict=True))


def _free(bound_symbols: Sequence[BoundSymbol], inputs: Sequence[Proxy]) -> list[Proxy]:
    """Values that the calls read and neither define nor get."""
    known = {p.name for p in inputs}
    for bound in bound_symbols:
        known.update(p.name for p in bound.outputs)
    found: dict[str, Proxy] = {}
    for bound in bound_symbols:
        for proxy in bound.inputs:
            if proxy.name not in known:
                found.setdefault(proxy.name, proxy)
    return list(found.values())
