"""A traced function made ready to run: derivative, executors, writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_executors import execution_traces
from thunder_ir import BoundSymbol, TensorProxy, Trace
from thunder_torch.differentiated import Writes, differentiated
from thunder_tracing import TracedFunction
from thunder_tracing.derivatives.custom_functions import rule_for_higher_derivatives


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """What runs a trace, with its stages.

    Args:
        run: takes the inputs of the trace, returns its outputs.
        traces: stages of the program, or of its forward part.
        backward_traces: stages of its backward part; empty without one.
    """

    run: Callable[..., Any]
    traces: Sequence[Trace]
    backward_traces: Sequence[Trace] = ()


def made_ready(traced: TracedFunction, executors: Sequence[Any] | None = None) -> Ready:
    """Make the trace of a function ready to run.

    Args:
        traced: the function; its inputs say what requires grad.
        executors: in order of priority; ``None`` for the defaults.
    """
    trace, rules = traced.trace, traced.rules
    if not any([isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs]):
        stages = execution_traces(trace, executors)
        run = stages[-1].python_callable()
        tracked = any([isinstance(p, TensorProxy) and p.requires_grad for p in trace.inputs])
        return Ready(_untracked(run) if tracked else run, stages)

    def higher_rule_of(bound: BoundSymbol) -> Any:
        return rule_for_higher_derivatives(rules, bound)

    made = differentiated(trace, executors, rules=rules, higher_rule_of=higher_rule_of, writes=_writes(traced))
    return Ready(made.run, made.traces, made.backward_traces)


def _writes(traced: TracedFunction) -> Writes:
    targets = [(traced.inputs[w.input].proxy, w.value) for w in traced.writes]
    return Writes({t.name: t for t, _ in targets}, {t.name: v.name for t, v in targets})


def _untracked(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` such that autograd records nothing of it: its results are constants."""

    def quiet(*inputs: Any) -> Any:
        with torch.no_grad():
            return run(*inputs)

    return quiet


__all__ = ["Ready", "made_ready"]
