"""Other ways to write a vjp rule, under the names that users of Lightning Thunder know."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from thunder_autograd.rules import Pullback, VjpRule, vjp_rule
from thunder_ir import (
    BoundSymbol,
    Namespace,
    OpTags,
    Proxy,
    RuleTable,
    Symbol,
    TensorProxy,
    ThunderError,
    current_builder,
    flat_proxies,
)
from thunder_ir.trace import DEFAULT

F = TypeVar("F", bound=Callable[..., Any])
AUTOGRAD = Namespace("autograd", "thunder_autograd")

get_grad = Symbol(
    "get_grad", AUTOGRAD, meta=lambda value: value.like(requires_grad=False),
    doc="Inside a rule of :func:`register_grad`: the cotangent of one of its results.",
)  # fmt: skip
put_grad = Symbol(
    "put_grad", AUTOGRAD, meta=lambda value, gradient: None, tags=frozenset({OpTags.DONT_DCE}),
    doc="Inside a rule of :func:`register_grad`: add to the gradient of one of its arguments.",
)  # fmt: skip


def put_grads(values: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Inside a rule of :func:`register_grad`: add to the gradients of several of its arguments."""
    for value, gradient in zip(values, gradients, strict=True):
        if isinstance(value, Proxy) and gradient is not None:
            put_grad(value, gradient)


def register_grad(symbol: Symbol, rule: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Make a function that calls :func:`get_grad` and :func:`put_grad` the derivative rule of a symbol.

    Args:
        symbol: the operation; a rule that it had before gives way.
        rule: takes the symbol's arguments, returns its output, and puts gradients. Without it, a decorator is returned.

    Example:
        >>> from thunder_autograd import get_grad, grad_transform_on_trace, put_grad, register_grad
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> double = Symbol("double", "doc", meta=lambda a: a.like())
        >>> @register_grad(double)
        ... def double_grad(a):
        ...     y = double(a)
        ...     put_grad(a, double(get_grad(y)))
        ...     return y
        >>> print(grad_transform_on_trace(trace_of(lambda x: double(x), Tensor((2,), requires_grad=True))))
        def program_joint(x: "float32[2]", dt0: "float32[2]"):
            t0 = _doc_double(x)  # float32[2]
            t3 = _doc_double(dt0)  # float32[2]
            return (t0, (t3,))
    """
    if rule is None:
        return lambda function: register_grad(symbol, function)
    vjp_rule.replace(symbol, rule_of_grad(rule))
    return rule


def rule_of_grad(function: Callable[..., Any]) -> VjpRule:
    """Return the vjp rule that a function with :func:`get_grad` and :func:`put_grad` amounts to."""

    @functools.wraps(function)
    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        builder = current_builder()
        around, builder.bound_symbols = builder.bound_symbols, []
        output = function(*args, **kwargs)
        recorded, builder.bound_symbols = builder.bound_symbols, around
        forward, backward = _separate(recorded)
        builder.bound_symbols += forward
        return output, _Puts(function, args, kwargs, flat_proxies(output), backward)

    return rule


def _separate(recorded: list[BoundSymbol]) -> tuple[list[BoundSymbol], list[BoundSymbol]]:
    """Part what depends on a cotangent, or puts a gradient, from the rest."""
    pulled: set[str] = set()
    forward: list[BoundSymbol] = []
    backward: list[BoundSymbol] = []
    for bound in recorded:
        if bound.symbol is get_grad or bound.symbol is put_grad or any([p.name in pulled for p in bound.inputs]):
            pulled.update([p.name for p in bound.outputs])
            backward.append(bound)
        else:
            forward.append(bound)
    return forward, backward


class _Puts:
    """The pullback of a rule with :func:`get_grad` and :func:`put_grad`: runs the recorded backward part."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outputs: list[Proxy],
        backward: list[BoundSymbol],
    ) -> None:
        self.arguments = args
        if kwargs:
            called = inspect.signature(function).bind(*args, **kwargs)
            called.apply_defaults()
            self.arguments = (*called.args, *called.kwargs.values())
        self.outputs, self.backward = outputs, backward

    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        builder = current_builder()
        tensors = [p for p in self.outputs if isinstance(p, TensorProxy)]
        given = dict(zip([p.name for p in tensors], cotangents, strict=True))
        values: dict[str, Any] = {}
        gradients: dict[str, Any] = {}
        for bound in self.backward:
            if bound.symbol is get_grad:
                values[bound.output.name] = self.cotangent(bound.args[0], given)
            elif bound.symbol is put_grad:
                to, gradient = bound.substituted(values).args
                before = gradients.get(to.name)
                gradients[to.name] = gradient if before is None else before + gradient
            else:
                builder.bound_symbols.append(bound.substituted(values))
        return tuple([_put(argument, gradients) for argument in self.arguments])

    def cotangent(self, of: TensorProxy, given: dict[str, Any]) -> Any:
        if of.name not in given:
            raise ThunderError(f"get_grad of {of!r}: that is no result of the operation whose rule this is")
        cotangent = given[of.name]
        if cotangent is not None:
            return cotangent
        zeros = DEFAULT.language and DEFAULT.language.find("zeros_like")
        if not zeros:
            raise ThunderError("no language is active that could make the zeros that stand for a missing cotangent")
        return zeros(of)


def _put(argument: Any, gradients: dict[str, Any]) -> Any:
    if isinstance(argument, Proxy):
        return gradients.get(argument.name)
    if isinstance(argument, (tuple, list)):
        return tuple([_put(item, gradients) for item in argument])
    return None


class VJPDual(NamedTuple):
    """What an augmented forward returns.

    Args:
        primal: the operation's output.
        residuals: what the backward takes before the cotangents.
    """

    primal: Any
    residuals: Sequence[Any]


_augmented_forward: RuleTable[Symbol, Callable[..., Any]] = RuleTable(
    "augmented forward", "@register_augmented_forward"
)
_backward: RuleTable[Symbol, Callable[..., Any]] = RuleTable("backward", "@register_backward")


def register_augmented_forward(symbol: Symbol) -> Callable[[F], F]:
    """Make the decorated function the forward half of a symbol's derivative rule.

    It takes the symbol's arguments and returns ``(output, residuals)``, as :class:`VJPDual` or any pair. The other half
    comes from :func:`register_backward`.
    """

    def register(function: F) -> F:
        _augmented_forward.replace(symbol, function)
        _combine(symbol)
        return function

    return register


def register_backward(symbol: Symbol) -> Callable[[F], F]:
    """Make the decorated function the backward half of a symbol's derivative rule.

    It takes the residuals, then the cotangents, and returns the gradients of the symbol's arguments.
    """

    def register(function: F) -> F:
        _backward.replace(symbol, function)
        _combine(symbol)
        return function

    return register


def _combine(symbol: Symbol) -> None:
    forward, backward = _augmented_forward.get(symbol), _backward.get(symbol)
    if forward is None or backward is None:
        return

    @functools.wraps(forward)
    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        output, residuals = forward(*args, **kwargs)
        return output, lambda *cotangents: backward(*residuals, *cotangents)

    vjp_rule.replace(symbol, rule)
