"""From a program to what runs: transforms, derivative, executors, code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from thunder_autograd import Split, forward_and_backward
from thunder_executors import execution_traces, grad_rule, resolve_executors, transform_for_execution
from thunder_ir import TensorProxy, Trace
from thunder_ir.passes import dead_code_elimination
from thunder_torch.bridge import connect_autograd

from thunder_frontend.options import Options
from thunder_frontend.outputs import is_plain
from thunder_frontend.program import Program
from thunder_frontend.specialise import Specialisation, ordered, specialise
from thunder_frontend.stats import Timer


@dataclass(slots=True, eq=False)
class Compiled:
    """A program made ready to run, with the traces of every stage.

    Args:
        specialisation: what is called.
        traces: stages of the computation, or of its forward part, first to last.
        backward_traces: stages of its backward part.
    """

    specialisation: Specialisation
    traces: list[Trace] = field(default_factory=list)
    backward_traces: list[Trace] = field(default_factory=list)

    @property
    def program(self) -> Program:
        return self.specialisation.program


def compile_program(program: Program, options: Options, timer: Timer) -> Compiled:
    """Transform, differentiate, give to executors and generate code for a program."""
    computation = program.computation.replace(inputs=tuple(i.proxy for i in ordered(program.inputs)))
    traces, backward_traces = [computation], []
    with timer("transforms"):
        trace = dead_code_elimination(computation)
        for transform in options.transforms:
            trace = transform.transform_computation(trace)
            traces.append(trace)
    needs_grad = options.differentiate and any(isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs)
    if needs_grad:
        run = _differentiated(trace, options, timer, traces, backward_traces)
        returns_result = False
    else:
        returns_result = not program.effects and is_plain(program.result)
        if returns_result:
            trace = trace.replace(output=program.result)
        with timer("executors"):
            traces += execution_traces(trace, options.executors)
        with timer("code generation"):
            run = traces[-1].python_callable()
    with timer("code generation"):
        specialisation = specialise(program, run, returns_result)
    return Compiled(specialisation, traces, backward_traces)


def _differentiated(
    trace: Trace, options: Options, timer: Timer, traces: list[Trace], backward_traces: list[Trace]
) -> Callable[..., Any]:
    executors = resolve_executors(options.executors)

    def differentiate(program: Trace, wanted: Any = None) -> Split:
        return forward_and_backward(
            program,
            rule_of=lambda bound: grad_rule(bound, executors),
            wanted=wanted,
            partition=options.extra.get("partition", "min-cut"),
            memory_budget=options.extra.get("memory_budget"),
        )

    def compile_trace(program: Trace) -> Callable[..., Any]:
        return transform_for_execution(program, options.executors).python_callable()

    with timer("autograd"):
        split = differentiate(trace)
    traces.append(split.forward)
    backward_traces.append(split.backward)
    with timer("executors"):
        traces += execution_traces(split.forward, options.executors)
        backward_traces += execution_traces(split.backward, options.executors)
    with timer("code generation"):
        forward, backward = traces[-1].python_callable(), backward_traces[-1].python_callable()
        return connect_autograd(forward, backward, split, compile=compile_trace, differentiate=differentiate)
