"""The derivatives that executors bring along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_executors.executor import Executor
from thunder_executors.fusion import FusionExecutor
from thunder_executors.implementation import Declined
from thunder_ir import BoundSymbol


def grad_rule(bound: BoundSymbol, executors: Sequence[Executor]) -> Callable[..., Any] | None:
    """Return the rule of the executor that will run this call, if it has one.

    Args:
        bound: a call.
        executors: in the order in which they are asked, as :func:`resolve_executors` returns them.

    Returns:
        What was given as ``grad_transform``; ``None`` where the symbol's own rule or decomposition applies.
    """
    for executor in executors:
        if isinstance(executor, FusionExecutor) and not executor.can_fuse(bound):
            continue
        found = executor.find(bound)
        if not isinstance(found, Declined):
            return found.rule(bound)
        if isinstance(executor, FusionExecutor):
            return None
    return None
