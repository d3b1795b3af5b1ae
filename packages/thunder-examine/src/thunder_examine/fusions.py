"""The regions that fusion executors run as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_executors import FusionExecutor
from thunder_ir import BoundSymbol, Trace


def get_fusion_symbols(trace: Trace) -> list[BoundSymbol]:
    """Return the calls of an execution trace that run a fused region.

    Args:
        trace: the last of :func:`thunder.last_traces`.
    """
    return [bound for bound in trace.bound_symbols if isinstance(bound.symbol.executor, FusionExecutor)]


def get_fusions(trace: Trace) -> list[tuple[str, Callable[..., Any]]]:
    """Return name and function of each fused region of an execution trace.

    Args:
        trace: the last of :func:`thunder.last_traces`.
    """
    found = []
    for bound in get_fusion_symbols(trace):
        if bound.symbol.implementation is not None:
            found.append((bound.symbol.name, bound.symbol.implementation))
    return found
