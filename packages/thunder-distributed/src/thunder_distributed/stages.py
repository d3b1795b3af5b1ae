"""Stages: a program cut where named modules begin, each part with the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_distributed.executor import executor
from thunder_distributed.prim import DIST_PRIMS
from thunder_frontend import CompiledFunction, Transform
from thunder_frontend.options import Options
from thunder_guards.program import Input, Program
from thunder_ir import (
    BoundSymbol,
    Builder,
    Context,
    OpTags,
    Proxy,
    Symbol,
    TensorProxy,
    Trace,
    flat_proxies,
    recording,
    register_literal,
)
from thunder_ir.passes import dead_code_elimination, is_random
from thunder_torch import symbol_of


@dataclass(frozen=True, eq=False)
class StageProgram:
    """A part of a program.

    Args:
        trace: from what the stage reads of its own, and then what it is given, to what it hands on.
        names: of the parameters and buffers that it reads, the first inputs of the trace.
        tensors: these.
    """

    trace: Trace
    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]

    @property
    def given(self) -> list[TensorProxy]:
        """What the stage before hands on."""
        return list(self.trace.inputs[len(self.names) :])  # type: ignore[arg-type]


register_literal(StageProgram, lambda program, context: _printed(program, context))


def _printed(program: StageProgram, context: Context) -> str:
    return context.object(program, "stage")


def cut_program(model: torch.nn.Module, split_at: Sequence[str], args: tuple[Any, ...]) -> list[StageProgram]:
    """Acquire a model's program for some arguments, and cut it where modules begin.

    Args:
        model: what is called.
        split_at: names of modules; a stage begins with each, in this order.
        args: of the call: tensors, in tuples, lists and dicts or not.

    Raises:
        KeyError: a name is that of no module.
        ValueError: modules run in another order, or not once.
        NotImplementedError: the program does what stages cannot.
    """
    modules = dict(model.named_modules())
    unknown = [name for name in split_at if name not in modules]
    if unknown or not split_at:
        raise KeyError(f"split_at names {unknown or 'nothing'}; there are {', '.join(n for n in modules if n)}")
    with _announced([modules[name] for name in split_at]):
        program = CompiledFunction(model, Options(fallback="error")).acquired(args, {})
    _check_effects(program)
    return _cut(program, split_at, model)


def _check_effects(program: Program) -> None:
    for effect in program.effects:
        if isinstance(effect.target, TensorProxy) or flat_proxies((effect.target, effect.value)):
            raise NotImplementedError(
                f"a stage of a pipeline neither keeps nor writes to a tensor outside of it ({effect.kind} "
                f"{effect.key or ''}), as batch normalisation does in training: use a normalisation without running "
                "statistics, or return the value"
            )
    if program.raises is not None:
        raise program.raises


# Where modules begin --------------------------------------------------------------------------------------------------


def begins(index: int) -> None:
    """Say that a stage begins: nothing, outside of a program."""


stage_begins = Symbol(
    "stage_begins", DIST_PRIMS, meta=lambda index: None, tags=frozenset({OpTags.DONT_DCE}),
    doc="Here a stage begins.",
)  # fmt: skip
executor.replacements[begins] = stage_begins


@contextmanager
def _announced(modules: Sequence[torch.nn.Module]) -> Iterator[None]:
    """Let modules say where they begin."""
    handles = [m.register_forward_pre_hook(_announcing(i)) for i, m in enumerate(modules, 1)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _announcing(index: int) -> Callable[..., None]:
    def announce(module: torch.nn.Module, args: Any) -> None:
        begins(index)

    return announce


# Cutting --------------------------------------------------------------------------------------------------------------


def _segments(trace: Trace, split_at: Sequence[str]) -> list[list[BoundSymbol]]:
    """Return the calls of each stage."""
    segments: list[list[BoundSymbol]] = [[]]
    for bound in trace.bound_symbols:
        if bound.symbol is not stage_begins:
            segments[-1].append(bound)
            continue
        if bound.args[0] != len(segments):
            raise ValueError(
                f"{split_at[bound.args[0] - 1]} runs as number {len(segments)} of {list(split_at)}: name modules that "
                "run once each, in the order in which they run"
            )
        segments.append([])
    if len(segments) <= len(split_at):
        raise ValueError(f"{split_at[len(segments) - 1]} does not run when the model is called with these arguments")
    return segments


def _cut(program: Program, split_at: Sequence[str], model: torch.nn.Module) -> list[StageProgram]:
    trace = dead_code_elimination(program.computation)
    result = _plain_result(program.result)
    segments = _segments(trace, split_at)
    own = {i.proxy.name: i for i in program.inputs if not i.source.is_of_the_call()}
    given = [i.proxy for i in _in_order(program)]
    anywhere = _anywhere(trace, own)
    ids = {id(t): name for name, t in (*model.named_parameters(), *model.named_buffers())}
    stages = []
    for number, segment in enumerate(segments):
        later = [b for s in segments[number + 1 :] for b in s if id(b) not in anywhere]
        handed_on = result if number == len(segments) - 1 else _wanted(later, result, own, anywhere, segment, given)
        stage = _stage(number, [*_repeated(segments[:number], anywhere), *segment], given, handed_on, own, ids, trace)
        stages.append(stage)
        given = handed_on
    _check_shared(stages)
    return stages


def _in_order(program: Program) -> list[Input]:
    """Return the inputs that are arguments of the call, in the order of these."""
    found = [i for i in program.inputs if i.source.is_of_the_call()]
    if program.numbers:
        raise NotImplementedError(
            "a pipeline's stages are cut for fixed sizes: pass examples without marked dimensions"
        )
    return found


def _plain_result(result: Any) -> list[TensorProxy]:
    leaves = [result] if isinstance(result, TensorProxy) else result
    if not isinstance(leaves, (tuple, list)) or not all([isinstance(leaf, TensorProxy) for leaf in leaves]):
        raise NotImplementedError(
            "a model that is cut into stages returns a tensor, or a tuple of tensors, which the loss gets: take what "
            "is needed out of what it returns, in a module around it"
        )
    return list(leaves)


def _anywhere(trace: Trace, own: Mapping[str, Input]) -> set[int]:
    """Return the calls that depend on constants and buffers alone: each stage that reads their results makes them."""
    known = {name for name, given in own.items() if not given.metadata.requires_grad}
    found = set()
    for bound in trace.bound_symbols:
        plain = not is_random(bound) and not bound.has_tag(OpTags.DONT_DCE)
        if plain and bound.outputs and all([p.name in known for p in bound.inputs]):
            found.add(id(bound))
            known.update([p.name for p in bound.outputs])
    return found


def _repeated(segments: Sequence[Sequence[BoundSymbol]], anywhere: set[int]) -> list[BoundSymbol]:
    return [bound for segment in segments for bound in segment if id(bound) in anywhere]


def _wanted(
    later: Sequence[BoundSymbol], result: Sequence[TensorProxy], own: Mapping[str, Input], anywhere: set[int],
    segment: Sequence[BoundSymbol], given: Sequence[Proxy],
) -> list[TensorProxy]:  # fmt: skip
    """Return what a stage hands on: what it has, or was given, and later stages read."""
    here = {p.name: p for p in given}
    here.update({p.name: p for bound in segment if id(bound) not in anywhere for p in bound.outputs})
    read = [p for bound in later for p in bound.inputs] + list(result)
    found = {p.name: here[p.name] for p in read if p.name in here and p.name not in own}
    strange = [p for p in found.values() if not isinstance(p, TensorProxy)]
    if strange:
        raise NotImplementedError(
            f"a stage would hand on {strange[0].name}, {strange[0].type_string}, which is no tensor"
        )
    return list(found.values())  # type: ignore[arg-type]


def _stage(
    number: int, calls: Sequence[BoundSymbol], given: Sequence[Proxy], handed_on: Sequence[TensorProxy],
    own: Mapping[str, Input], ids: Mapping[int, str], trace: Trace,
) -> StageProgram:  # fmt: skip
    builder, arrived = Builder(trace.names()), {p.name for p in given}
    with recording(builder):
        passed = {p.name: symbol_of(torch.clone)(p) for p in handed_on if p.name in arrived}
    body = (*calls, *builder.bound_symbols)
    made = dead_code_elimination(Trace(f"stage_{number}", (), body, tuple([passed.get(p.name, p) for p in handed_on])))
    read = {p.name for bound in made.bound_symbols for p in bound.inputs} | {p.name for p in made.outputs}
    held = [i for name, i in own.items() if name in read]
    names = tuple([ids.get(id(i.example), f"held.{i.proxy.name}") for i in held])
    inputs = (*[i.proxy for i in held], *given)
    return StageProgram(made.replace(inputs=inputs), names, tuple([i.example for i in held]))


def _check_shared(stages: Sequence[StageProgram]) -> None:
    first: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for name, tensor in zip(stage.names, stage.tensors, strict=True):
            if tensor.requires_grad and first.setdefault(id(tensor), number) != number:
                raise NotImplementedError(
                    f"{name} is read by stages {first[id(tensor)]} and {number}, and a parameter is on one process "
                    "alone: untie it, or cut the model such that one stage has all its readers"
                )


# Running --------------------------------------------------------------------------------------------------------------


def run_stage(program: StageProgram, *inputs: Any) -> Any:
    """Return what a stage hands on, in a compiled program."""
    raise RuntimeError("a stage of a pipeline runs compiled: call what pipeline() returned")


def _stage_meta(program: StageProgram, *inputs: Any) -> tuple[TensorProxy, ...]:
    tracked = torch.is_grad_enabled() and any([i.requires_grad for i in inputs])
    return tuple([p.like(requires_grad=p.requires_grad and tracked) for p in program.trace.output])


stage = Symbol("stage", DIST_PRIMS, meta=_stage_meta, doc="The calls of one stage, in whose place they are put.")
executor.replacements[run_stage] = stage


class Inlined(Transform):
    """Put the calls of a stage in its place, as they were acquired."""

    def transform_traces_pre_prologue(
        self, prologue_trace: Any, computation_trace: Trace, epilogue_trace: Any, **kwargs: Any
    ) -> tuple[Any, Trace, Any]:
        calls: list[BoundSymbol] = []
        for bound in computation_trace.bound_symbols:
            calls += _calls_of(bound, computation_trace) if bound.symbol is stage else [bound]
        return prologue_trace, computation_trace.replace(bound_symbols=tuple(calls)), epilogue_trace


def _calls_of(bound: BoundSymbol, trace: Trace) -> list[BoundSymbol]:
    inner: Trace = bound.args[0].trace
    names = trace.names()
    values: dict[str, Any] = {p.name: a for p, a in zip(inner.inputs, bound.args[1:], strict=True)}
    values.update({p.name: made for p, made in zip(inner.output, bound.output, strict=True)})
    for call in inner.bound_symbols:
        values.update({p.name: p.renamed(names.fresh("t")) for p in call.outputs if p.name not in values})
    return [call.substituted(values, outputs=True) for call in inner.bound_symbols]


class StageModule(torch.nn.Module):
    """A stage: its parameters and buffers, under the names that they have in the model.

    Args:
        program: what it runs.
        training: whether the model was in training mode when it was cut.
    """

    def __init__(self, program: StageProgram, training: bool) -> None:
        super().__init__()
        self.program, self.cut_in_training = program, training
        self.where: list[tuple[torch.nn.Module, str]] = []
        for name, tensor in zip(program.names, program.tensors, strict=True):
            self.where.append(_placed(self, name, tensor))
        self.train(training)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Return what the stage hands on: a tensor, or several.

        Raises:
            ValueError: the mode is not that in which the model was cut, or inputs are of other shapes.
        """
        if self.training != self.cut_in_training:
            raise ValueError(
                "a stage runs in the mode that the model was in when it was cut: cut it again in the other"
            )
        for proxy, tensor in zip(self.program.given, inputs, strict=True):
            if tuple(tensor.shape) != tuple(proxy.shape):
                raise ValueError(
                    f"a stage was cut for {proxy.type_string} and gets {list(tensor.shape)}: batches are as many "
                    "microbatches as the schedule has, of the shape of the examples"
                )
        made = run_stage(self.program, *[getattr(module, key) for module, key in self.where], *inputs)
        return made[0] if len(made) == 1 else made


def _placed(root: torch.nn.Module, name: str, tensor: torch.Tensor) -> tuple[torch.nn.Module, str]:
    """Register a tensor under a dotted name; return the module that has it, and its name there."""
    *path, last = name.split(".")
    here = root
    for step in path:
        if step not in here._modules:
            here.add_module(step, torch.nn.Module())
        here = here.get_submodule(step)
    if isinstance(tensor, torch.nn.Parameter):
        here.register_parameter(last, tensor)
    else:
        here.register_buffer(last, tensor.detach())
    return here, last


def arguments_in_order(args: tuple[Any, ...]) -> list[torch.Tensor]:
    """Return the tensors among arguments.

    Raises:
        TypeError: there is something else.
    """
    leaves = pytree.tree_leaves(args)
    if not all([isinstance(leaf, torch.Tensor) for leaf in leaves]) or len(leaves) != len(args):
        raise TypeError(
            "a model that is cut into stages takes tensors, by position: bind all else in a module around it"
        )
    return leaves


__all__ = ["Inlined", "StageModule", "StageProgram", "arguments_in_order", "cut_program", "run_stage", "stage"]
