"""From a program to what runs: transforms, derivative, executors, code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from thunder_executors import execution_traces, grad_rule, resolve_executors, runnable, who_gains
from thunder_frontend._computations import Computation, is_paused, key_of, share, shared
from thunder_frontend._draws import Draw, DrawnFrom, opened
from thunder_frontend._inplace_writes import failures_before_writes, without_detaching, written_in_place
from thunder_frontend._outcomes import Look
from thunder_frontend._stats import Timer
from thunder_frontend._tracebacks import tell_the_user
from thunder_frontend._transforms import Transform
from thunder_frontend.options import Options
from thunder_guards import Specialisation, ordered, result_views, specialise
from thunder_guards.program import Program, new_values, written_inputs
from thunder_guards.templates import is_plain
from thunder_guards.traces import epilogue_trace, prologue_trace, with_traces
from thunder_ir import Builder, OpTags, TensorProxy, ThunderError, Trace, recording, substitute
from thunder_ir.passes import dead_code_elimination, equal_integers
from thunder_prims import tidy, tidy_apart
from thunder_torch import DataDependentShapeError, sized
from thunder_torch.differentiated import Differentiated, Writes, differentiated
from thunder_torch.grad_modes import with_gradients, without_gradients
from thunder_torch.uncast import uncast
from thunder_tracing.bailouts import Bailout, Check, EagerFallback
from thunder_tracing.derivatives.custom_functions import rule_for_higher_derivatives
from thunder_tracing.derivatives.written_out import computes_gradients, with_gradients_written_out
from thunder_tracing.tensors.array_calls import OnArrays
from thunder_tracing.tensors.unseen_writes import check_saved


@dataclass(slots=True, eq=False)
class Compiled:
    """A program made ready to run.

    Args:
        specialisation: what is called.
        computation: what it runs, with the traces of every stage.
    """

    specialisation: Specialisation
    computation: Computation

    @property
    def traces(self) -> list[Trace]:
        """The stages of the computation, or of its forward part, first to last."""
        return self.computation.traces

    @property
    def backward_traces(self) -> list[Trace]:
        """The stages of the backward part, which are made now where it was not needed before."""
        backward = self.computation.backward
        return [] if backward is None else backward.stages()

    @property
    def prologue_traces(self) -> list[Any]:
        """The prologue as a trace, and what is generated of it."""
        return [prologue_trace(self.program), self.specialisation.prologue]

    @property
    def program(self) -> Program:
        return self.specialisation.program


def compile_program(program: Program, options: Options, timer: Timer) -> Compiled:
    """Transform, differentiate, give to executors and generate code for a program.

    What is decided on the way by comparing symbolic sizes becomes constraints of the program too.
    """
    trace = program.computation.replace(inputs=tuple(i.proxy for i in (*ordered(program.inputs), *program.numbers)))
    key = key_of(program, trace, options)
    made = shared(key)
    with recording(Builder(trace.names())) as builder:
        if made is None:
            program, made = _computation(program, trace, options, timer)
            made = share(key, made)
        if key is not None:
            program = replace(program, computation=made.trace)
        constraints = (*program.computation.constraints, *builder.constraints)
        if builder.constraints:
            program = replace(program, computation=program.computation.replace(constraints=constraints))
        with timer("code generation"):
            guarded = options.cache != "same input"
            specialisation = specialise(program, made.run, made.returns_result, guarded)
    return Compiled(specialisation, made)


def _computation(program: Program, computation: Trace, options: Options, timer: Timer) -> tuple[Program, Computation]:
    """Make what runs the computation of a program; return it, with the program as transforms changed it."""
    traces, acquired = [computation], computation
    renamed: dict[str, Any] = {}
    if any([e.kind == "tensor" for e in program.effects]):
        computation = failures_before_writes(computation)
    if computes_gradients(computation.bound_symbols):
        with timer("autograd"):
            executors = who_gains(computation, resolve_executors(options.executors))
            rule_of = partial(grad_rule, executors=executors)
            computation, renamed = with_gradients_written_out(computation, program.rules, rule_of)
            computation = tidy(computation)
        traces.append(computation)
    program, trace = _transformed(program, computation, options, timer, traces)
    split, backward, returns_result = None, None, False
    if options.differentiate and any(isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs):
        made = _differentiated(program, trace, options, timer, traces)
        run, split, backward = made.run, made.split, made.backward
        if not program.environment.environment.grad_enabled:  # the program switches gradients on for a part of it
            run = with_gradients(run)
    else:
        returns_result = not program.effects and is_plain(program.result)
        trace = (
            trace.replace(output=substitute(program.result, renamed)) if returns_result else without_detaching(trace)
        )
        run = _undifferentiated(program, trace, options, timer, traces, returns_result)
    if program.tried or _claims_sizes(computation):
        run = as_eager_on_failure(run, Exception if program.tried else DataDependentShapeError)
    whole = opened(computation, program.rules)
    if _may_begin_anew(program, whole):
        run = rewinding(run, DrawnFrom(whole))
    if any([on for on, _ in program.environment.environment.autocast]):
        run = uncast(run)
    return program, Computation(acquired, run, returns_result, traces, backward, split)


def _transformed(
    program: Program, computation: Trace, options: Options, timer: Timer, traces: list[Trace]
) -> tuple[Program, Trace]:
    """Apply the user's transforms: return the program with what these check and write, and its computation.

    What each makes of the computation is added to the traces.
    """
    with timer("transforms"):
        trace = dead_code_elimination(equal_integers(computation))
        for transform in options.transforms:
            before = prologue_trace(program), epilogue_trace(program)
            prologue, trace, epilogue = transform.transform_traces_pre_prologue(
                before[0], trace, before[1], compile_data=options
            )
            _check_interface(transform, computation, trace)
            program = with_traces(program, before, (prologue, epilogue))
            traces.append(trace)
    return program, trace


def _undifferentiated(
    program: Program, trace: Trace, options: Options, timer: Timer, traces: list[Trace], returns_result: bool
) -> Callable[..., Any]:
    """Return what runs a computation that autograd is to record nothing of; its stages are added to the traces."""
    with timer("transforms"):
        tidied = tidy_apart(trace)
        if tidied.bound_symbols != trace.bound_symbols:
            traces.append(tidied)
            trace = tidied
    with timer("executors"):
        writing = None if returns_result else partial(written_in_place, program)
        traces += execution_traces(trace, options.executors, writing)
        _after_optimisation(traces, options)
    with timer("code generation"):
        run = runnable(traces, options.executors)
    leaves = [i for i in program.inputs if i.metadata.requires_grad or i.becomes_leaf]
    return without_gradients(run) if program.environment.environment.grad_enabled and leaves else run


def _check_interface(transform: Transform, before: Trace, after: Trace) -> None:
    names = [p.name for p in before.inputs]
    if [p.name for p in after.inputs] != names:
        raise ValueError(
            f"{type(transform).__name__} changed the inputs of the computation to {[p.name for p in after.inputs]}; "
            f"they must stay {names}"
        )


def _after_optimisation(traces: list[Trace], options: Options) -> None:
    """Apply the transforms of execution traces to the last stage."""
    for transform in options.transforms:
        trace = transform.transform_trace_post_optimization(traces[-1], compile_data=options)
        if trace is not traces[-1]:
            traces.append(trace)


def _may_begin_anew(program: Program, trace: Trace) -> bool:
    """Whether a program may end after it drew random numbers, and the call begin anew."""
    bounds = trace.bound_symbols
    looks = any([b.args and isinstance(b.args[0], (Check, Draw, Look, OnArrays)) for b in bounds])
    return (looks or program.tried or _claims_sizes(trace)) and any([b.has_tag(OpTags.RANDOM) for b in bounds])


def _claims_sizes(trace: Trace) -> bool:
    """Whether a program claims something of sizes that only its run tells, such as that none of two added ones is 1."""
    return any([b.symbol is sized and any([c is not None for c in b.args[1]]) for b in trace.bound_symbols])


def as_eager_on_failure(run: Callable[..., Any], failure: type[Exception]) -> Callable[..., Any]:
    """Return ``run`` such that the call begins anew as eager where an operation raises.

    Args:
        run: runs a program.
        failure: what it raises: anything where Python may catch that, what tells of sizes elsewhere.
    """

    def tried(*inputs: Any) -> Any:
        try:
            return run(*inputs)
        except (Bailout, torch.OutOfMemoryError):
            raise
        except failure as error:
            if isinstance(error, ThunderError) and not isinstance(error, DataDependentShapeError):
                raise
            raise EagerFallback(f"an operation of the program raised {type(error).__name__}") from error

    return tried


def rewinding(run: Callable[..., Any], drawn: DrawnFrom) -> Callable[..., Any]:
    """Return ``run`` such that random numbers which it drew are drawn again where the call begins anew."""

    def rewound(*inputs: Any) -> Any:
        before = drawn.states()
        try:
            return run(*inputs)
        except Bailout:
            drawn.set_states(before)
            raise

    return rewound


PARTITION_BEFORE_A_CALL = "save-all"
"""What is called between two programs may write to what the first was given: it keeps what an eager program keeps."""


def _differentiated(
    program: Program, trace: Trace, options: Options, timer: Timer, traces: list[Trace]
) -> Differentiated:
    """Return what runs a computation and lets autograd run its derivative; the stages are added to the traces."""
    rules = program.rules  # what runs must not hold the program, which knows the tensors of this call
    return differentiated(
        trace,
        traces,
        options.executors,
        rules=rules,
        higher_rule_of=lambda bound: rule_for_higher_derivatives(rules, bound),
        writes=Writes(written_inputs(program), new_values(program)),
        views=result_views(program, trace),
        partition=options.extra.get("partition", PARTITION_BEFORE_A_CALL if is_paused(program) else "min-cut"),
        memory_budget=options.extra.get("memory_budget"),
        check=lambda split: check_saved(program.unseen, split),
        improve=(lambda stages: _after_optimisation(stages, options)) if options.transforms else None,
        tell=tell_the_user,
        phase=timer,
    )
