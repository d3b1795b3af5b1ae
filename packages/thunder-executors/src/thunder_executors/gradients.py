"""The derivatives that executors bring along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_executors.executor import Executor
from thunder_executors.fusion import FusionExecutor
from thunder_executors.implementation import Declined
from thunder_ir import BoundSymbol

Adapter = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Default:
    """What makes rules of functions with ``get_grad`` and ``put_grad``; the package of derivatives knows how."""

    __slots__ = ("adapter",)

    def __init__(self) -> None:
        self.adapter: Adapter | None = None


_DEFAULT = _Default()


def provide_gradient_adapter(adapter: Adapter) -> None:
    """Make rules of functions with ``get_grad`` and ``put_grad`` by ``adapter``: ``thunder_autograd.rule_of_grad``."""
    _DEFAULT.adapter = adapter


def grad_rule(
    bound: BoundSymbol, executors: Sequence[Executor], adapt: Adapter | None = None
) -> Callable[..., Any] | None:
    """Return the rule of the executor that will run this call, if it has one.

    Args:
        bound: a call.
        executors: in the order in which they are asked, as :func:`resolve_executors` returns them.
        adapt: makes a rule of a ``grad_transform``; what :func:`provide_gradient_adapter` was given, if not given.

    Returns:
        A function of the symbol's arguments that returns the output and the pullback; ``None`` where the symbol's own
        rule or decomposition applies.
    """
    for executor in executors:
        if isinstance(executor, FusionExecutor):
            opened = executor.opened(bound)
            if opened is not None and (rule := opened.rule(bound, adapt if adapt is not None else _DEFAULT.adapter)):
                return rule
            if not (executor.differentiates(bound) and executor.can_fuse(bound)):
                continue
        found = executor.find(bound)
        if not isinstance(found, Declined):
            return found.rule(bound, adapt if adapt is not None else _DEFAULT.adapter)
        if isinstance(executor, FusionExecutor):
            return None
    return None
