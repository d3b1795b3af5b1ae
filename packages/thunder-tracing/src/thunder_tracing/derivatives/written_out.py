"""Gradients that a program computes itself, written out with the rules of those who run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thunder_autograd import gradients, written_out
from thunder_ir import BoundSymbol, Symbol, Trace
from thunder_torch.gradient_memory import own_gradient
from thunder_tracing.derivatives.custom_functions import rule_for_higher_derivatives
from thunder_tracing.tensors.overwrites import RULES_AGAIN


def computes_gradients(bound_symbols: Sequence[BoundSymbol]) -> bool:
    """Whether gradients are among what is computed."""
    return any([bound.symbol is gradients for bound in bound_symbols])


def with_gradients_written_out(
    trace: Trace,
    rules: Mapping[Symbol, Callable[..., Any]],
    other_rule: Callable[[BoundSymbol], Any] = lambda bound: None,
) -> tuple[Trace, dict[str, Any]]:
    """Return a program in which gradients are written out, and what goes by other names in it.

    Args:
        trace: the program.
        rules: derivatives that it brings along.
        other_rule: returns the derivative that whoever runs a call has of it, or ``None``.
    """

    def rule_of(bound: BoundSymbol) -> Any:  # what stands before one call may be differentiated by the next one again
        own = RULES_AGAIN.get(bound.symbol) or rule_for_higher_derivatives(rules, bound)
        return own or other_rule(bound)

    return written_out(trace, rule_of, own_gradient)
