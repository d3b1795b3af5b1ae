"""The one table in which a call of a torch function is looked up: what does it, if it is not just recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from thunder_ir import DuplicateRuleError
from thunder_torch.names import name_of

HANDLERS: dict[Any, Callable[..., Any]] = {}
"""By function: takes the calls in progress and the function's arguments, and returns what the call returns."""


def answers(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """File the decorated function as what does calls of these; it gets the calls in progress first.

    Raises:
        DuplicateRuleError: something else does calls of one of them.
    """

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            if function in HANDLERS:
                raise DuplicateRuleError(f"calls of {name_of(function)} are done by {HANDLERS[function]} already")
            HANDLERS[function] = answer
        return answer

    return register


def answers_each(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """File the decorated function as :func:`answers` does; it gets the function that is called first of all."""

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            answers(function)(partial(answer, function))
        return answer

    return register
