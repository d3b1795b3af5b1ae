"""A computation made ready to run and to take part in ``torch.autograd``: derivative, executors, code."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import torch

from thunder_autograd import Split, forward_and_backward
from thunder_executors import (
    cost_in_regions,
    execution_traces,
    for_all_of,
    grad_rule,
    resolve_executors,
    runnable,
    transform_for_execution,
    who_gains,
)
from thunder_ir import (
    BoundSymbol,
    Builder,
    NumberProxy,
    OpTags,
    Proxy,
    Symbol,
    TensorProxy,
    Trace,
    recording,
    substitute,
)
from thunder_ir.passes import dead_code_elimination, leading_to
from thunder_prims import clone, replay, tidy
from thunder_torch.bridge import connect_autograd, in_a_box
from thunder_torch.gradient_memory import gradients_apart
from thunder_torch.language import symbol_of, torch_language
from thunder_torch.links import ResultView
from thunder_torch.lone_results import lone_views
from thunder_torch.unknown_gradients import rules_for_unknown_sizes

_DETACH = symbol_of(torch.Tensor.detach)

Improve = Callable[[list[Trace]], None]


def _nothing(argument: Any) -> None:
    """Do nothing."""


def _no_phase(name: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True, eq=False)
class Writes:
    """What is written to the inputs of a computation once it has run.

    Args:
        inputs: the inputs that are written to, or share memory with such ones, by name.
        values: names of the values that are copied into inputs as a whole, by the names of these.
    """

    inputs: Mapping[str, TensorProxy] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


Tell = Callable[[Exception, Sequence[Trace]], None]
Phase = Callable[[str], AbstractContextManager[None]]
Made = tuple[list[Trace], Callable[[list[Any]], Any]]


class Backward:
    """A backward program, made ready to run when it is needed: where only some results are used, others run.

    Args:
        make: returns its stages, and what runs the last one; called with what the work of a named phase is done within.
        tell: called with what the program raises, and its stages, before it goes on to the caller.
    """

    def __init__(self, make: Callable[[Phase], Made], tell: Tell | None = None) -> None:
        self._make = make
        self._tell = tell
        self._one_at_a_time = threading.Lock()
        self._made: Made | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it was made ready."""
        return self._made is not None

    def make_ready(self, phase: Phase = _no_phase) -> Made:
        """Make it ready to run, if it is not yet."""
        with self._one_at_a_time, torch.no_grad():
            if self._made is None:
                self._made = self._make(phase)
        return self._made

    def stages(self) -> list[Trace]:
        """Return the stages, first to last; the last ones are there when executors finished the program."""
        return self.make_ready()[0]

    def __call__(self, values: list[Any]) -> Any:
        """Run it on what was saved and the cotangents, in a box."""
        stages, run = self._made or self.make_ready()
        try:
            return run(values)
        except Exception as error:
            if self._tell is not None:
                self._tell(error, stages[-2:])  # the last one, or what that was made of
            raise


@dataclass(frozen=True, slots=True, eq=False)
class Differentiated:
    """A computation that takes part in autograd.

    Args:
        run: takes the inputs, returns the outputs.
        split: the forward and backward program before executors, with what is saved and why.
        backward: the backward program.
    """

    run: Callable[..., Any]
    split: Split
    backward: Backward


def differentiated(
    trace: Trace,
    traces: list[Trace],
    executors: Sequence[Any] | None = None,
    *,
    rules: Mapping[Symbol, Any] = MappingProxyType({}),
    higher_rule_of: Callable[[BoundSymbol], Any] | None = None,
    writes: Writes | None = None,
    views: Mapping[int, ResultView] = MappingProxyType({}),
    partition: Literal["min-cut", "fused", "save-all"] = "min-cut",
    memory_budget: Any = None,
    check: Callable[[Split], None] = _nothing,
    improve: Improve | None = None,
    tell: Tell | None = None,
    phase: Phase = _no_phase,
) -> Differentiated:
    """Make a computation ready to run such that its results have gradients.

    Args:
        trace: the computation; its proxies say what requires grad, its output is a tuple.
        traces: the stages of the forward program are added to them, first to last; the last ones when executors finish
            the program, as :func:`thunder_executors.runnable` tells.
        executors: in order of priority; ``None`` for the defaults.
        rules: derivatives that the computation brings along.
        higher_rule_of: the derivatives of calls for second ones to start from.
        writes: what is written to inputs once the computation has run.
        views: how results at some places are made of others, as views that autograd knows.
        partition, memory_budget: as :func:`thunder_autograd.forward_and_backward` takes them.
        check: refuses what is saved, by raising.
        improve: adds stages to those of the forward program, and of the backward program.
        tell: called with what the backward program raises, and its stages, before it goes on to the caller.
        phase: within which the work of a named phase is done.
    """
    chosen = for_all_of(trace, resolve_executors(executors))
    asked = who_gains(trace, chosen)
    in_regions = cost_in_regions(asked)
    written = writes or Writes()

    def rule_of(bound: BoundSymbol) -> Any:
        return rules.get(bound.symbol) or grad_rule(bound, asked)

    def differentiate(made: Trace, wanted: Any = None) -> Split:
        return forward_and_backward(
            made,
            rule_of=rules_for_unknown_sizes(rule_of),
            wanted=wanted,
            partition=partition,
            memory_budget=memory_budget,
            replay=replay,
            copy=clone,
            in_regions=in_regions,
        )

    with phase("autograd"):
        split = differentiate(trace)
        check(split)
        shared = _perhaps_sharing(split.saved, split.forward) if written.inputs else set()
        kept = [proxy for name, proxy in written.inputs.items() if name in shared]
        if kept:  # the backward program, which runs after the writes, may read them
            split = differentiate(keep_written_inputs(kept, trace))
        forward = without_views_to_copy(split.forward, frozenset(written.values.values()))
        split = replace(split, forward=with_distinct_outputs(forward, views))
        traces.append(split.forward)
    with phase("executors"):
        traces += execution_traces(split.forward, chosen)
        if improve is not None:
            improve(traces)

    def make(phase: Phase) -> Made:
        with phase("autograd"):
            tidied = gradients_apart(tidy(split.backward, apart=True), len(split.saved))
        with phase("executors"):
            stages = [split.backward, tidied, *execution_traces(tidied, chosen)]
            if improve is not None:
                improve(stages)
        with phase("code generation"):
            stages.append(in_a_box(stages[-1]))
            run = runnable(stages, executors)
        return stages, run

    backward = Backward(make, tell)
    if improve is not None or _is_sure_to_run(split):
        backward.make_ready(phase)
    with phase("code generation"):
        run = connect_autograd(
            runnable(traces, executors),
            backward,
            split,
            boxed=True,
            compile=lambda made: transform_for_execution(tidy(made), chosen),
            runnable=lambda made: runnable([made], executors),
            differentiate=differentiate,
            rule_of=higher_rule_of,
            overwritten={**dict.fromkeys(written.inputs, ""), **written.values},
            views=views,
        )
    return Differentiated(run, split, backward)


def _is_sure_to_run(split: Split) -> bool:
    """Whether a backward program is the only one, or may add to what the forward program is compiled for.

    Passes that compare sizes which stand in the program make constraints of it.
    """
    return sum(split.differentiable) < 2 or any([isinstance(p, NumberProxy) for p in split.joint.inputs])


def _perhaps_sharing(values: Iterable[Proxy], trace: Trace) -> set[str]:
    """Return the names of what values may share memory with: all that no executor's operator computed them from."""

    def may_share(bound: BoundSymbol) -> bool:
        computes = bound.symbol.executor is not None and not bound.has_tag(OpTags.VIEW)
        return not computes or not all([isinstance(p, TensorProxy) for p in bound.outputs])

    return leading_to(trace.bound_symbols, [p.name for p in values], through=may_share)[1]


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


def without_views_to_copy(forward: Trace, copied: Container[str]) -> Trace:
    """Return a forward program that returns values which are copied into inputs themselves, not detached from history.

    Args:
        forward: the program.
        copied: names of results that nobody sees but who copies them.
    """
    outputs, saved = forward.output
    detached = {b.output.name: b.args[0] for b in forward.bound_symbols if b.symbol is _DETACH}
    hidden = {p.name for p in forward.inputs} | {p.name for p in outputs if isinstance(p, TensorProxy)}

    def computed(output: Any) -> Any:
        if not isinstance(output, TensorProxy) or output.name not in copied:
            return output
        found = output
        while found.name in detached:
            found = detached[found.name]
        if found is output or found.name in hidden:
            return output
        made = found.renamed(found.name)
        made.requires_grad = output.requires_grad
        return made

    changed = tuple([computed(output) for output in outputs])
    if all(map(operator.is_, changed, outputs)):
        return forward
    return dead_code_elimination(forward.replace(output=(changed, saved)))


def with_distinct_outputs(forward: Trace, made: Container[int] = ()) -> Trace:
    """Return a forward program whose results are as many tensors as the program's: it knows some to be one value.

    Args:
        forward: the program.
        made: the places of results that are made of others afterwards.
    """
    outputs, saved = forward.output
    builder = Builder(forward.names(), torch_language)
    last: dict[str, Any] = {}
    distinct = []
    views = lone_views(forward, [p for i, p in enumerate(outputs) if i not in made])
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
