"""A program made ready to run: derivative, executors, writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_executors import execution_traces, runnable
from thunder_guards import Program, ordered, result_views
from thunder_guards.program import new_values, written_inputs
from thunder_ir import BoundSymbol, TensorProxy, Trace
from thunder_ir.passes import dead_code_elimination
from thunder_torch.differentiated import Backward, Writes, differentiated
from thunder_torch.grad_modes import with_gradients, without_gradients
from thunder_tracing.derivatives.custom_functions import rule_for_higher_derivatives
from thunder_tracing.tensors.unseen_writes import check_saved


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """What runs a trace, with its stages.

    Args:
        run: takes the inputs of the trace, returns its outputs.
        traces: stages of the program, or of its forward part.
        backward: its backward part.
    """

    run: Callable[..., Any]
    traces: Sequence[Trace]
    backward: Backward | None = None

    @property
    def backward_traces(self) -> Sequence[Trace]:
        """Stages of its backward part; empty without one."""
        return () if self.backward is None else self.backward.stages()


def made_ready(program: Program, executors: Sequence[Any] | None = None) -> Ready:
    """Make the computation of a program ready to run.

    Args:
        program: its proxies say what requires grad.
        executors: in order of priority; ``None`` for the defaults.
    """
    trace, rules, unseen = computation_of(program), program.rules, program.unseen
    tracks = program.environment.environment.grad_enabled
    if not any([isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs]):
        stages = execution_traces(trace, executors)
        run = runnable(stages, executors)
        tracked = tracks and any([isinstance(p, TensorProxy) and p.requires_grad for p in trace.inputs])
        return Ready(without_gradients(run) if tracked else run, stages)

    def higher_rule_of(bound: BoundSymbol) -> Any:
        return rule_for_higher_derivatives(rules, bound)

    traces: list[Trace] = []
    made = differentiated(
        trace,
        traces,
        executors,
        rules=rules,
        higher_rule_of=higher_rule_of,
        writes=Writes(written_inputs(program), new_values(program)),
        views=result_views(program, trace),
        check=lambda split: check_saved(unseen, split),
    )
    # or the program switches gradients on for a part of it
    return Ready(made.run if tracks else with_gradients(made.run), traces, made.backward)


def computation_of(program: Program) -> Trace:
    """Return the computation of a program, with inputs in the order of a call, without what nothing reads."""
    inputs = tuple([i.proxy for i in (*ordered(program.inputs), *program.numbers)])
    return dead_code_elimination(program.computation.replace(inputs=inputs))


__all__ = ["Ready", "computation_of", "made_ready"]
