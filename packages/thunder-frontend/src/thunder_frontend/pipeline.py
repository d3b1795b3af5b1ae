"""From a program to what runs: transforms, derivative, executors, code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from thunder_autograd import Split, forward_and_backward, gradients, written_out
from thunder_executors import execution_traces, grad_rule, resolve_executors, transform_for_execution
from thunder_frontend.codegen.inplace_writes import failures_before_writes, without_detaching, written_in_place
from thunder_frontend.codegen.outputs import is_plain
from thunder_frontend.codegen.prologue import ordered
from thunder_frontend.codegen.specialise import Specialisation, around, specialise
from thunder_frontend.derivatives.custom_functions import rule_for_higher_derivatives
from thunder_frontend.guards import AUTOCAST_DEVICES
from thunder_frontend.options import Options
from thunder_frontend.program import Program
from thunder_frontend.stats import Timer
from thunder_frontend.tensors.overwrites import RULES_AGAIN
from thunder_frontend.tensors.unseen_writes import check_saved
from thunder_frontend.transforms import Transform
from thunder_ir import BoundSymbol, Builder, OpTags, Proxy, TensorProxy, Trace, recording, substitute
from thunder_ir.passes import dead_code_elimination
from thunder_prims import replay, tidy
from thunder_torch import symbol_of, torch_language
from thunder_torch.bridge import connect_autograd, in_a_box
from thunder_torch.gradient_memory import gradients_apart
from thunder_torch.unknown_gradients import rules_for_unknown_sizes


@dataclass(slots=True, eq=False)
class Compiled:
    """A program made ready to run, with the traces of every stage.

    Args:
        specialisation: what is called.
        traces: stages of the computation, or of its forward part, first to last.
        backward_traces: stages of its backward part.
        split: the forward and backward program before executors, with what is saved and why; ``None`` where there are
            no gradients.
    """

    specialisation: Specialisation
    traces: list[Trace] = field(default_factory=list)
    backward_traces: list[Trace] = field(default_factory=list)
    split: Split | None = None

    @property
    def program(self) -> Program:
        return self.specialisation.program


def compile_program(program: Program, options: Options, timer: Timer) -> Compiled:
    """Transform, differentiate, give to executors and generate code for a program.

    What is decided on the way by comparing open sizes becomes constraints of the program too.
    """
    builder = Builder(program.computation.names())
    with recording(builder):
        return _compile_program(program, options, timer, builder)


def _compile_program(program: Program, options: Options, timer: Timer, builder: Builder) -> Compiled:
    computation = program.computation.replace(
        inputs=tuple(i.proxy for i in (*ordered(program.inputs), *program.numbers))
    )
    traces, backward_traces, result = [computation], [], program.result
    if any([e.kind == "tensor" for e in program.effects]):
        computation = failures_before_writes(computation)
    if any([bound.symbol is gradients for bound in computation.bound_symbols]):
        with timer("autograd"):
            computation, result = _with_inner_gradients(program, computation, options)
        traces.append(computation)
    trace = _transformed(program, computation, options, timer, traces)
    split, returns_result = None, False
    if options.differentiate and any(isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs):
        run, split = _differentiated(program, trace, options, timer, traces, backward_traces)
        if not program.environment.environment.grad_enabled:  # the program switches gradients on for a part of it
            run = with_gradients(run)
    else:
        returns_result = not program.effects and is_plain(program.result)
        trace = trace.replace(output=result) if returns_result else without_detaching(trace)
        run = _undifferentiated(program, trace, options, timer, traces, returns_result)
    autocast = [
        kind for kind, (on, _) in zip(AUTOCAST_DEVICES, program.environment.environment.autocast, strict=True) if on
    ]
    if autocast:
        run = without_autocast(run, autocast)
    if builder.constraints:
        computation = program.computation
        program = replace(
            program, computation=computation.replace(constraints=(*computation.constraints, *builder.constraints))
        )
    with timer("code generation"):
        specialisation = specialise(program, run, returns_result, guarded=options.cache != "same input")
    return Compiled(specialisation, traces, backward_traces, split)


def _transformed(program: Program, computation: Trace, options: Options, timer: Timer, traces: list[Trace]) -> Trace:
    """Apply the user's transforms; what each makes is added to the traces."""
    with timer("transforms"):
        trace = dead_code_elimination(computation)
        prologue, epilogue = around(program) if options.transforms else (None, None)
        for transform in options.transforms:
            _, trace, _ = transform.transform_traces_pre_prologue(prologue, trace, epilogue, compile_data=options)
            _check_interface(transform, computation, trace)
            traces.append(trace)
    return trace


def _undifferentiated(
    program: Program, trace: Trace, options: Options, timer: Timer, traces: list[Trace], returns_result: bool
) -> Callable[..., Any]:
    """Return what runs a computation that autograd is to record nothing of; its stages are added to the traces."""
    with timer("executors"):
        traces += execution_traces(trace, options.executors)
        if not returns_result:
            traces.append(written_in_place(program, traces[-1]))
        _after_optimisation(traces, options)
    with timer("code generation"):
        run = traces[-1].python_callable()
    leaves = [i for i in program.inputs if i.metadata.requires_grad or i.becomes_leaf]
    return without_gradients(run) if program.environment.environment.grad_enabled and leaves else run


def _with_inner_gradients(program: Program, computation: Trace, options: Options) -> tuple[Trace, Any]:
    """Write out the gradients that the program computes itself; return it, and its result in the names that it has."""
    executors = resolve_executors(options.executors)

    def rule_of(bound: BoundSymbol) -> Any:  # what stands before one call may be differentiated by the next one again
        own = RULES_AGAIN.get(bound.symbol) or rule_for_higher_derivatives(program.rules, bound)
        return own or grad_rule(bound, executors)

    made, renamed = written_out(computation, rule_of, symbol_of(torch.clone))
    return tidy(made), program.result if not renamed else substitute(program.result, renamed)


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


def written_inputs(program: Program) -> dict[str, TensorProxy]:
    """Return the inputs that the epilogue writes to, by their names."""
    targets = [e.target for e in program.effects if e.kind in ("tensor", "memory")]
    if any([e.kind == "metadata" for e in program.effects]):  # autograd takes it for a write to all that share memory
        targets += [i.proxy for i in program.inputs]
    names = {t.name for t in targets if isinstance(t, TensorProxy)}
    targets += [i.proxy for i in program.inputs if i.memory is not None and i.memory.name in names]
    return {t.name: t for t in targets if isinstance(t, TensorProxy)}


def _new_values(program: Program) -> dict[str, str]:
    """Return the names of tensors that are copied into inputs as a whole, by the names of these."""
    effects = [e for e in program.effects if e.kind == "tensor"]
    pairs = [(e.target, e.value) for e in effects]
    return {t.name: v.name for t, v in pairs if isinstance(t, TensorProxy) and isinstance(v, TensorProxy)}


def _perhaps_sharing(values: Iterable[Proxy], trace: Trace) -> set[str]:
    """Return the names of what values may share memory with: all that no executor's operator computed them from."""
    found = {p.name for p in values}
    for bound in reversed(trace.bound_symbols):
        computes = bound.symbol.executor is not None and not bound.has_tag(OpTags.VIEW)
        fresh = computes and all([isinstance(p, TensorProxy) for p in bound.outputs])
        if not fresh and not found.isdisjoint([p.name for p in bound.outputs]):
            found.update([p.name for p in bound.inputs])
    return found


def keep_written_inputs(written: Sequence[TensorProxy], trace: Trace) -> Trace:
    """Return the program with a copy in place of each of some inputs, which keeps what they held."""
    builder = Builder(trace.names())
    with recording(builder):
        copies = {p.name: symbol_of(torch.clone)(p) for p in written}
    for proxy in written:
        copies[proxy.name].requires_grad = proxy.requires_grad
    kept = frozenset({OpTags.DONT_RECOMPUTE})
    head = [b.replace(tags=b.tags | kept) for b in builder.bound_symbols]
    rest = [b.substituted(copies) for b in trace.bound_symbols]
    return trace.replace(bound_symbols=(*head, *rest), output=substitute(trace.output, copies))


def with_distinct_outputs(forward: Trace) -> Trace:
    """Return a forward program whose results are as many tensors as the program's: it knows some to be one value."""
    outputs, saved = forward.output
    builder = Builder(forward.names(), torch_language)
    last: dict[str, Any] = {}
    distinct = []
    views = _lone_views(forward, outputs)
    with recording(builder):
        for output in outputs:
            if isinstance(output, TensorProxy):
                again = output.name in last
                apart = again or output.name in views
                made = symbol_of(torch.Tensor.detach)(last.get(output.name, output)) if apart else output
                made.requires_grad = output.requires_grad
                last[output.name] = output = made
            distinct.append(output)
    if not builder.bound_symbols:
        return forward
    return forward.replace(
        bound_symbols=(*forward.bound_symbols, *builder.bound_symbols), output=(tuple(distinct), saved)
    )


def _lone_views(forward: Trace, outputs: Sequence[Any]) -> set[str]:
    """Return the names of outputs that view what the program computed and no other output shows.

    PyTorch lets nobody write to views that a node of autograd returns: it takes these for views of what it cannot see.
    """
    roots = {p.name: None for p in forward.inputs}
    for bound in forward.bound_symbols:
        viewed = next(iter(bound.inputs), None) if bound.has_tag(OpTags.VIEW) else None
        for made in bound.outputs:
            roots[made.name] = made.name if viewed is None else roots.get(viewed.name)
    shown = [roots.get(p.name) for p in outputs if isinstance(p, TensorProxy)]
    return {
        p.name
        for p in outputs
        if isinstance(p, TensorProxy) and roots.get(p.name) not in (None, p.name) and shown.count(roots[p.name]) == 1
    }


def without_autocast(run: Callable[..., Any], kinds: Sequence[str]) -> Callable[..., Any]:
    """Return ``run`` such that autocast casts nothing in it: the casts are part of the program."""

    def uncast(*inputs: Any) -> Any:
        with ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(torch.autocast(kind, enabled=False))
            return run(*inputs)

    return uncast


def with_gradients(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` such that autograd records it."""

    def recorded(*inputs: Any) -> Any:
        with torch.enable_grad():
            return run(*inputs)

    return recorded


def without_gradients(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` such that autograd records nothing of it, for programs whose results are constants to it."""

    def quiet(*inputs: Any) -> Any:
        with torch.no_grad():
            return run(*inputs)

    return quiet


def _differentiated(
    program: Program, trace: Trace, options: Options, timer: Timer, traces: list[Trace], backward_traces: list[Trace]
) -> tuple[Callable[..., Any], Split]:
    """Return what runs a computation and lets autograd run its derivative; the stages are added to the traces."""
    executors, rules = resolve_executors(options.executors), program.rules

    def rule_of(bound: BoundSymbol) -> Any:
        return rules.get(bound.symbol) or grad_rule(bound, executors)

    def differentiate(differentiated: Trace, wanted: Any = None) -> Split:
        return forward_and_backward(
            differentiated,
            rule_of=rules_for_unknown_sizes(differentiated.bound_symbols, rule_of),
            wanted=wanted,
            partition=options.extra.get("partition", "min-cut"),
            memory_budget=options.extra.get("memory_budget"),
            replay=replay,
        )

    def compile_trace(made: Trace) -> Trace:
        return transform_for_execution(tidy(made), options.executors)

    with timer("autograd"):
        split = differentiate(trace)
        check_saved(program.unseen, split)
        written = written_inputs(program)
        shared = _perhaps_sharing(split.saved, split.forward) if written else set()
        kept = [proxy for name, proxy in written.items() if name in shared]
        if kept:  # the backward program, which runs after the epilogue, may read them
            split = differentiate(keep_written_inputs(kept, trace))
        split = replace(split, forward=with_distinct_outputs(split.forward))
        traces.append(split.forward)
        tidied = tidy(split.backward, apart=True)
        backward_traces += [split.backward, gradients_apart(tidied, len(split.saved))]
    with timer("executors"):
        traces += execution_traces(split.forward, options.executors)
        _after_optimisation(traces, options)
        backward_traces += execution_traces(backward_traces[-1], options.executors)
        _after_optimisation(backward_traces, options)
    with timer("code generation"):
        backward_traces.append(in_a_box(backward_traces[-1]))
        forward, backward = traces[-1].python_callable(), backward_traces[-1].python_callable()
        run = connect_autograd(
            forward,
            backward,
            split,
            boxed=True,
            compile=compile_trace,
            differentiate=differentiate,
            rule_of=lambda bound: rule_for_higher_derivatives(rules, bound),
            overwritten={**dict.fromkeys(written, ""), **_new_values(program)},
        )
        return run, split
