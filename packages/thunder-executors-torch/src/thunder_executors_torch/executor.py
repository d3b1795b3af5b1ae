"""The executor of PyTorch: what it runs without being told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import torch

from thunder_autograd import rule_of_grad, vjp_rule
from thunder_executors import (
    Implementation,
    OperatorExecutor,
    provide_gradient_adapter,
    provide_language_of_operators,
)
from thunder_executors_torch import recorded
from thunder_ir import BoundSymbol, DuplicateRuleError, OpTags, Symbol, TensorProxy
from thunder_torch import find_symbol, opaque_call, symbol_of, tensor_language, view_argument
from thunder_torch.communication import EFFECTS
from thunder_torch.names import path_of
from thunder_torch.opaque import call_of
from thunder_torch.plain_sizes import answered_plainly

F = TypeVar("F", bound=Callable[..., Any])


def by_autograd(symbol: Symbol, function: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Return the rule of ``symbol`` by PyTorch's autograd, which runs ``function``, that computes the same."""
    through = vjp_rule[opaque_call]

    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call, values = call_of(function, args, kwargs)
        _, pull = through(call, *values)  # what it computes is never read

        def pullback(*cotangents: Any) -> tuple[Any, ...]:
            of_values = {v.name: g for v, g in zip(values, pull(*cotangents)[1:], strict=True)}
            return tuple([of_values.get(a.name) if isinstance(a, TensorProxy) else None for a in args])

        return symbol(*args, **kwargs), pullback

    return rule


@dataclass(frozen=True)
class Holding:
    """A function with arguments through which PyTorch's autograd goes no further: it has no derivative for them.

    Args:
        function: of PyTorch.
        held: positions of these arguments.
    """

    function: Callable[..., Any]
    held: tuple[int, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [a.detach() if i in self.held and isinstance(a, torch.Tensor) else a for i, a in enumerate(args)]
        return self.function(*given, **kwargs)


def gradients(function: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor], dy: torch.Tensor) -> Any:
    """Return the gradients of ``inputs``, so that PyTorch's autograd knows the way through, if it is on."""
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        leaves = [t if t.requires_grad else t.detach().requires_grad_() for t in inputs]
        with answered_plainly():
            return torch.autograd.grad(function(*leaves), leaves, dy, create_graph=create_graph)


TAKE_OUT = frozenset({
    torch.add, torch.sub, torch.mul, torch.div, torch.addcmul, torch.addcdiv, torch.lerp, torch.neg, torch.sqrt,
    torch.maximum, torch.minimum, torch.abs, torch.reciprocal, torch.pow, torch.index_copy,
})  # fmt: skip
"""Functions that write to ``out=``, be it the argument that they change: elementwise ones, and one that copies some."""


class TorchExecutor(OperatorExecutor):
    """Runs prims as its modules say, and any symbol that stands for a function of PyTorch by that very function."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._checks: dict[Any, Callable[[BoundSymbol], Sequence[BoundSymbol] | None]] = {}

    def checked_by(self, function: Callable[..., Any]) -> Callable[[F], F]:
        """Let the decorated function say by which calls it is checked that a call of ``function`` does not raise."""

        def register(calls: F) -> F:
            if function in self._checks:
                raise DuplicateRuleError(f"{function.__name__} is checked already")
            self._checks[function] = calls
            return calls

        return register

    def into(self, bound: BoundSymbol, made: TensorProxy, target: TensorProxy) -> BoundSymbol | None:
        if bound.symbol.implementation not in TAKE_OUT or "out" in bound.kwargs:
            return None
        return bound.replace(kwargs={**bound.kwargs, "out": target})

    def checks_of(self, bound: BoundSymbol) -> Sequence[BoundSymbol] | None:
        found = self._checks.get(bound.symbol.implementation)
        return None if found is None else found(bound)

    def makes_new(self, bound: BoundSymbol) -> bool:
        function = bound.symbol.implementation
        if OpTags.NEW_MEMORY in bound.symbol.tags:
            return True
        return function is not None and bool(path_of(function)) and view_argument(function) is None

    def implementations(self, symbol: Symbol) -> list[Implementation]:
        found = super().implementations(symbol)
        if not found and callable(symbol.origin):
            found = [Implementation(self, self.operator(symbol.origin), vjp=self.recorded(symbol))]
            self._implementations[symbol] = found
        return found

    def recorded(self, symbol: Symbol) -> Callable[..., Any] | None:
        """Return the rule by PyTorch's own graph, for an operation that only PyTorch knows."""
        if symbol.decomposition is None or find_symbol(symbol.origin) is not None or symbol in vjp_rule:
            return None
        if symbol.executor is self:
            return None
        tags = recorded.DRAWS if OpTags.RANDOM in symbol.tags else recorded.KEEPS
        runs = self.plain(recorded.run, recorded.run_meta, *tags, *(symbol.tags & EFFECTS))
        rule: Callable[..., Any] = recorded.rule_of(symbol.origin, runs, self.puller)
        return rule

    def puller(self, leaves: list[TensorProxy]) -> Symbol:
        """Return the operator that follows PyTorch's graph to tensors like ``leaves``."""

        def meta(graph: Any, outputs: Any, *cotangents: Any) -> tuple[TensorProxy, ...]:
            return tuple([leaf.like(requires_grad=False) for leaf in leaves])

        return self.plain(recorded.pull, meta)

    def plain(self, function: Callable[..., Any], meta: Callable[..., Any], *tags: OpTags, path: str = "") -> Symbol:
        """Return an operator that calls ``function``, and that no derivative goes through."""
        path = path or f"{function.__module__}.{function.__qualname__}"
        name = path.removesuffix(".default").rpartition(".")[2]
        return Symbol(
            name, self.name, meta=meta, tags=frozenset(tags), implementation=function, path=path, executor=self,
            origin=function,
        )  # fmt: skip

    def operator(self, function: Callable[..., Any], name: str = "", path: str = "") -> Symbol:
        return super().operator(function, name, path or path_of(function))

    def call(
        self,
        path: str,
        meta: Callable[..., Any],
        *tags: OpTags,
        differentiable: Callable[..., Any] | None = None,
        held: tuple[int, ...] = (),
    ) -> Symbol:
        """Return an operator for transforms and rules: the function of PyTorch at ``path``.

        Args:
            path: dotted, from ``torch`` on.
            meta: proxies in, proxies out.
            tags: traits that passes rely on.
            differentiable: computes the same, in functions that PyTorch's autograd knows, if it does not know this one.
            held: positions of arguments for which PyTorch has no derivative, and none is needed.
        """
        function = torch_function(path)
        if held:
            differentiable = Holding(function, held)
        return self.function(function, meta, *tags, path=path, differentiable=differentiable)

    def function(
        self,
        function: Callable[..., Any],
        meta: Callable[..., Any],
        *tags: OpTags,
        path: str = "",
        differentiable: Callable[..., Any] | None = None,
    ) -> Symbol:
        """Return an operator for transforms and rules that calls ``function``, which computes with PyTorch.

        Higher derivatives go through it by PyTorch's autograd.
        """
        symbol = self.without_rule(function, meta, *tags, path=path)
        vjp_rule(symbol)(by_autograd(symbol, differentiable or function))
        return symbol

    def without_rule(
        self, function: Callable[..., Any], meta: Callable[..., Any], *tags: OpTags, path: str = ""
    ) -> Symbol:
        """Return such an operator whose derivative is written by hand: what draws random numbers must not run again."""
        symbol = self.plain(function, meta, *tags, path=path)
        self.opmap[symbol.name] = symbol
        return symbol

    def differentiates_torch(
        self, *functions: Callable[..., Any], when: Callable[..., Any] | None = None
    ) -> Callable[[F], F]:
        """Let the decorated rule be that of functions of PyTorch; see :meth:`OperatorExecutor.differentiates`."""
        return self.differentiates(*dict.fromkeys(symbol_of(f) for f in functions), when=when)


def torch_function(path: str) -> Callable[..., Any]:
    """Return the function of PyTorch at a dotted path, from ``torch`` on."""
    function: Callable[..., Any] = attrgetter(path.removeprefix("torch."))(torch)
    return function


executor = TorchExecutor("torch", version=torch.__version__, always=True, priority=-100, checks=False)
provide_language_of_operators(tensor_language)
provide_gradient_adapter(rule_of_grad)
