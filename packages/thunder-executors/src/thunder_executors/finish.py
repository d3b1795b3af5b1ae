"""What runs a finished program: its Python text, and what executors make of it once it is called often."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from thunder_executors.executor import Executor
from thunder_executors.implementation import Finish
from thunder_executors.registry import resolve_executors
from thunder_ir import Trace, collector_paused


def runnable(stages: list[Trace], executors: Sequence[Executor | str] | None = None) -> Callable[..., Any]:
    """Return what runs the last of some stages of a program.

    That is its Python text. Where executors make something of finished programs, by :attr:`Executor.finishing`, they
    do so as soon as it was called as often as they want to see; what they make is added to the stages, and runs then.

    Args:
        stages: of a program, the last one ready to run.
        executors: as for :func:`execution_traces`.

    Example:
        >>> import operator
        >>> from thunder_executors import OperatorExecutor, execution_traces, runnable
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> mul = Symbol("mul", "prims", meta=lambda a, b: a.like())
        >>> executor = OperatorExecutor("doc", checks=False)
        >>> executor.implements(mul)(operator.mul)
        <built-in function mul>
        >>> stages = execution_traces(trace_of(lambda x: mul(x, x), Tensor(())), [executor])
        >>> runnable(stages, [executor])(3.0)
        9.0
    """
    last = stages[-1]
    finishing = [f for e in resolve_executors(executors) for f in e.finishing if f.counts(last) >= f.fewest]
    if not finishing:
        return stages[-1].python_callable()
    unfinished = _Unfinished(stages, finishing)

    def running(*inputs: Any) -> Any:
        finished = unfinished.finished
        return finished(*inputs) if finished is not None else unfinished.first_calls(*inputs)

    return running


class _Unfinished:
    """A program that executors may make something of.

    Args:
        stages: of the program.
        finishing: what is to be done, in order.
    """

    def __init__(self, stages: list[Trace], finishing: list[Finish]) -> None:
        self.stages = stages
        self.finishing = sorted(finishing, key=lambda f: f.after)
        self.calls = itertools.count()  # counts in whatever thread
        self.one_at_a_time = threading.Lock()
        self.text = stages[-1].python_callable() if self.finishing[0].after else None
        self.finished: Callable[..., Any] | None = None

    def first_calls(self, *inputs: Any) -> Any:
        """Run the program, with what is due at this call made of it, unless somebody does so just now."""
        calls = next(self.calls)
        if self.one_at_a_time.acquire(blocking=False):
            try:
                if self.finished is None and self.finish(calls):
                    self.finished = self.text or self.stages[-1].python_callable()
            finally:
                self.one_at_a_time.release()
        if self.finished is not None:
            return self.finished(*inputs)
        text = self.text
        if text is None:
            text = self.text = self.stages[-1].python_callable()
        return text(*inputs)

    @collector_paused()
    def finish(self, calls: int) -> bool:
        """Make what is due of the passes after some calls; return whether all are made."""
        while self.finishing and self.finishing[0].after <= calls:
            improved = self.finishing[0].improve(self.stages[-1])
            if improved is None:
                return False
            if improved.bound_symbols != self.stages[-1].bound_symbols:
                self.stages.append(improved)
                self.text = None
            del self.finishing[0]
        return not self.finishing


__all__ = ["runnable"]
