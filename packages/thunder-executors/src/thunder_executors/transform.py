"""From a program to one that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_executors.claim import claim
from thunder_executors.executor import Executor
from thunder_executors.finish import runnable
from thunder_executors.free import free_after_last_use
from thunder_executors.fuse import fuse
from thunder_executors.fusion import who_gains
from thunder_executors.order import order_for_memory
from thunder_executors.registry import resolve_executors
from thunder_ir import BoundSymbol, Trace, collector_paused
from thunder_ir.passes import common_subexpressions, dead_code_elimination, equal_integers


def transform_for_execution(trace: Trace, executors: Sequence[Executor | str] | None = None) -> Trace:
    """Return the program with every call given to an executor, regions fused, ordered for memory, and values freed.

    Args:
        trace: a program in prims and composites.
        executors: who is asked, in order, before those that always take part; see :func:`resolve_executors`.

    Raises:
        UnclaimedError: no executor runs an operation.
    """
    return execution_traces(trace, executors)[-1]


@collector_paused()
def execution_traces(
    trace: Trace,
    executors: Sequence[Executor | str] | None = None,
    writing: Callable[[Trace], Trace] | None = None,
) -> list[Trace]:
    """Return the stages of :func:`transform_for_execution`; the last one runs.

    Args:
        trace, executors: as there.
        writing: a pass that lets calls write to inputs, made when their order stands.
    """
    chosen = resolve_executors(executors)
    stages = [dead_code_elimination(equal_integers(trace))]
    stages.append(common_subexpressions(stages[-1]))
    asked = who_gains(stages[-1], chosen)
    stages.append(claim(stages[-1], asked))
    stages.append(dead_code_elimination(stages[-1]))
    stages += _improved(stages[-1], [p for e in chosen for p in e.passes])
    if any([bound.tags and _is_marked(bound, asked) for bound in stages[-1].bound_symbols]):
        stages.append(fuse(stages[-1], asked))
    stages.append(order_for_memory(stages[-1]))
    stages.append(free_after_last_use(stages[-1]))
    stages += _improved(stages[-1], [writing] if writing else [])
    return stages


def _improved(trace: Trace, passes: Sequence[Callable[[Trace], Trace]]) -> list[Trace]:
    """Return the program after each pass of an executor's own that changed it."""
    made = [trace]
    for improve in passes:
        improved = improve(made[-1])
        if improved.bound_symbols != made[-1].bound_symbols:
            made.append(improved)
    return made[1:]


def _is_marked(bound: BoundSymbol, executors: Sequence[Executor]) -> bool:
    return any([getattr(e, "mark", None) in bound.tags for e in executors])


def to_callable(trace: Trace, executors: Sequence[Executor | str] | None = None) -> Callable[..., Any]:
    """Return a Python function that runs the program on ``executors``.

    Example:
        >>> import operator
        >>> from thunder_executors import OperatorExecutor, to_callable
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> mul = Symbol("mul", "prims", meta=lambda a, b: a.like())
        >>> executor = OperatorExecutor("doc", checks=False)
        >>> executor.implements(mul)(operator.mul)
        <built-in function mul>
        >>> to_callable(trace_of(lambda x: mul(x, x), Tensor(())), [executor])(3.0)
        9.0
    """
    return runnable(execution_traces(trace, executors), executors)
