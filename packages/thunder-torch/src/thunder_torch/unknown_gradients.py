"""Derivatives of calls on tensors whose sizes are known only when the program runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from thunder_autograd import Through, grad_transform_on_trace
from thunder_ir import BoundSymbol, Proxy, TensorProxy, Trace, UnknownNumberError, is_unknown
from thunder_torch.opaque import call_of, opaque_call_vjp
from thunder_torch.sized import with_sizes

RuleOf = Callable[[BoundSymbol], Any]


def rules_for_unknown_sizes(rule_of: RuleOf) -> RuleOf:
    """Return what finds the rule of each call of a program.

    A call whose rule, or whose decomposition's, would have to know a size that only the run tells is differentiated as
    a whole by PyTorch's autograd, if it stands for a function of PyTorch.

    Args:
        rule_of: finds the rule of an executor for a call, or ``None``.
    """

    def found(bound: BoundSymbol) -> Any:
        rule = rule_of(bound)
        if bound.symbol.is_prim or not callable(bound.symbol.origin) or not _sizes(bound) or _holds(bound, rule_of):
            return rule
        return rule_by_autograd(bound.symbol.origin)

    return found


def _sizes(bound: BoundSymbol) -> list[Proxy]:
    """Return the unknown sizes of what a call reads and returns, each once."""
    tensors = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
    return list({d.name: d for p in tensors for d in p.shape if isinstance(d, Proxy) and is_unknown(d)}.values())


def _holds(bound: BoundSymbol, rule_of: RuleOf) -> bool:
    """Whether the derivative of a call can be recorded without knowing its sizes, found out by doing so."""
    inputs = {p.name: p for p in (*bound.inputs, *_sizes(bound)) if p.name}
    inexact = [p for p in inputs.values() if isinstance(p, TensorProxy) and p.dtype.is_inexact]
    wanted = [p.name for p in inexact if p.requires_grad] or [p.name for p in inexact]
    outputs = tuple([p for p in bound.outputs if isinstance(p, TensorProxy)])
    alone = Trace("alone", tuple(inputs.values()), (bound,), outputs)
    try:
        grad_transform_on_trace(alone, rule_of=rule_of, wanted=wanted)
    except UnknownNumberError:
        return False
    return True


def rule_by_autograd(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of a function of PyTorch that runs it again, under PyTorch's autograd."""

    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
        call, values = call_of(function, args, kwargs)
        output, pull = opaque_call_vjp(call, *values)
        assert isinstance(pull, Through)

        def pullback(*cotangents: Any) -> tuple[Any, ...]:
            gradients = iter(pull(*cotangents)[1:])
            return tuple([_placed(argument, gradients) for argument in (*args, *kwargs.values())])

        return with_sizes(output), Through(pullback, pull.outputs)

    return rule


def _placed(argument: Any, gradients: Iterator[Any]) -> Any:
    """Return the gradient of an argument: of one that holds several values, those of all of them."""
    if isinstance(argument, (Proxy, torch.Tensor)):
        return next(gradients)
    if isinstance(argument, slice):
        return tuple([_placed(part, gradients) for part in (argument.start, argument.stop, argument.step)])
    if isinstance(argument, dict):
        return tuple([_placed(item, gradients) for item in argument.values()])
    if isinstance(argument, (tuple, list)):
        return tuple([_placed(item, gradients) for item in argument])
    return None
