"""Programs run by graphs of their forward and their backward part, which compilers of FX graphs made ready."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch._functorch._aot_autograd.logging_utils import track_graph_compiling
from torch.fx import GraphModule

from thunder_fx.errors import FXError
from thunder_fx.guards import fits_of
from thunder_fx.partitions import Joint, fake_mode_of, joint_of, partitioned
from thunder_fx.running import computation_of
from thunder_fx.to_fx import Decompositions, to_fx
from thunder_guards import Program, Specialisation, specialise
from thunder_guards.program import written_inputs
from thunder_ir import Builder, TensorProxy, Trace, recording
from thunder_torch.differentiated import keep_written_inputs
from thunder_torch.grad_modes import with_gradients

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]
Boxed = Callable[[Sequence[Any]], Sequence[Any]]
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Compilers:
    """What makes graphs ready to run.

    Args:
        forward, backward: of a program with derivatives: get the graph and fake values for its inputs.
        inference: of one without.
        partition: cuts the joint graph.
        decompositions: of ATen operations.
    """

    forward: Compiler
    backward: Compiler
    inference: Compiler
    partition: Callable[..., tuple[GraphModule, GraphModule]]
    decompositions: Decompositions | None


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A program that graphs run.

    Args:
        specialisation: checks that the program is right for a call, runs it, and does what it does to its arguments.
        fits: whether the graphs are right for the symbolic numbers of a call.
    """

    specialisation: Specialisation
    fits: Callable[..., bool]

    def __call__(self, leaves: tuple[Any, ...], otherwise: Callable[..., Any]) -> Any:
        """Run the program on the arguments of a call; return what ``otherwise`` returns if it is not right for them."""
        numbers = self.specialisation.program.numbers
        if numbers:
            try:
                given = [n.source.evaluate({"args": leaves, "kwargs": {}}) for n in numbers]
            except (AttributeError, IndexError):
                return otherwise(leaves, {})
            if not self.fits(*given):
                return otherwise(leaves, {})
        return self.specialisation.call(leaves, {}, otherwise)


def compiled_program(program: Program, compilers: Compilers) -> Compiled:
    """Return a program such that graphs run it.

    Raises:
        FXError: an operation has no graph.
    """
    builder = Builder(program.computation.names())
    with recording(builder):
        run, fits = _run(program, computation_of(program), compilers)
    constraints = (*program.computation.constraints, *builder.constraints)
    program = replace(program, computation=program.computation.replace(constraints=constraints))
    return Compiled(specialise(program, run, returns_result=False), fits)


def joint_of_program(program: Program, trace: Trace) -> Joint:
    """Return a computation with its derivative, which reads copies of what the program writes to afterwards."""
    written = list(written_inputs(program).values())
    return joint_of(keep_written_inputs(written, trace) if written else trace, program.rules)


def is_differentiable(trace: Trace) -> bool:
    """Whether a trace returns anything that has a derivative."""
    return any([isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs])


def _run(program: Program, trace: Trace, compilers: Compilers) -> tuple[Callable[..., Any], Callable[..., bool]]:
    """Return what runs a computation, and whether that is right for given numbers."""
    number = next(_numbers)
    grown = bool(program.numbers)
    if not is_differentiable(trace):
        module = to_fx(trace, decompositions=compilers.decompositions)
        run = _made_ready(module, compilers.inference, f"{number}_inference")
        return _quiet(run), fits_of(_examples(module))
    joint = joint_of_program(program, trace)
    forward, backward = partitioned(joint, compilers.partition, compilers.decompositions)
    run_forward = _made_ready(forward, compilers.forward, f"{number}_forward")
    run_backward = _Later(lambda: _made_ready(backward, compilers.backward, f"{number}_backward"))
    if grown:  # as the compiler may ask for more of the sizes
        run_backward.get()
    fits = _fits_both(trace, forward, backward) if grown else fits_of(())
    run = _connected(joint, run_forward, run_backward, _examples(backward)[-joint.tangents :] if joint.tangents else [])
    if not program.environment.environment.grad_enabled:  # the program switches gradients on for a part of it
        return with_gradients(run), fits
    return run, fits


def _fits_both(trace: Trace, forward: GraphModule, backward: GraphModule) -> Callable[..., bool]:
    """Return whether both graphs are right for given numbers of the program, in order.

    Raises:
        FXError: the backward graph asks for more of a number that is not one of the program's.
    """
    names = [n.name for n in forward.graph.find_nodes(op="placeholder") if isinstance(n.meta["val"], torch.SymInt)]
    first, second = fits_of(_examples(forward)), fits_of(_examples(backward))
    held = [n.name for n in backward.graph.find_nodes(op="placeholder") if isinstance(n.meta["val"], torch.SymInt)]
    places = [names.index(name) if name in names else None for name in held]
    if None in places and any([_asks(value) for value in _examples(backward)]):
        raise FXError("the backward graph is right for some sizes alone, and these are not sizes of the arguments")
    if None in places:
        return first
    return lambda *numbers: first(*numbers) and second(*[numbers[p] for p in places if p is not None])


def _asks(value: Any) -> bool:
    return isinstance(value, torch.SymInt) and bool(value.node.shape_env.guards)


def _examples(module: GraphModule) -> list[Any]:
    return [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]


def _made_ready(module: GraphModule, compiler: Compiler, name: str) -> Boxed:
    """Return what runs a graph: a function of a list of inputs.

    Args:
        module: the graph.
        compiler: gets it, and fake values for its inputs.
        name: what ``functorch.compile.get_aot_graph_name`` tells the compiler.
    """
    examples = _examples(module)
    number, _, kind = name.partition("_")
    with ExitStack() as stack:
        stack.enter_context(torch._guards.tracing(torch._guards.TracingContext(fake_mode_of(examples))))
        stack.enter_context(track_graph_compiling(SimpleNamespace(aot_id=int(number)), kind))  # type: ignore[arg-type]
        made = compiler(module, examples)
    boxed = bool(getattr(made, "_boxed_call", False))

    def run(inputs: Sequence[Any]) -> Any:
        with torch._C._DisableAutocast():  # casts are calls of the graph
            return made(list(inputs)) if boxed else made(*inputs)

    return run


class _Later:
    """A graph that is made ready when it first runs: many a backward part never does.

    Args:
        make: makes it ready.
    """

    def __init__(self, make: Callable[[], Boxed]) -> None:
        self._make = make
        self._made: Boxed | None = None

    def get(self) -> Boxed:
        """Return what runs the graph."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Run the graph."""
        return self.get()(inputs)


def _quiet(run: Boxed) -> Callable[..., Any]:
    """Return what runs a graph such that autograd records nothing of it."""

    def quiet(*inputs: Any) -> Any:
        with torch.no_grad():
            return run(inputs)

    return quiet


def _connected(joint: Joint, forward: Boxed, backward: Boxed, tangents: Sequence[Any]) -> Callable[..., Any]:
    """Return what runs both graphs as one operation of autograd.

    Args:
        joint: the program with its derivative.
        forward, backward: run its parts.
        tangents: fake values, which are laid out as the backward part expects.
    """
    count, differentiable = joint.outputs, joint.differentiable
    seen = [i for i, flows in enumerate(differentiable) if flows]

    class Connected(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            results = list(forward(inputs))
            outputs, saved = results[:count], results[count:]
            ctx.places = [i for i, s in enumerate(saved) if isinstance(s, torch.Tensor)]
            ctx.others = [None if isinstance(s, torch.Tensor) else s for s in saved]
            ctx.save_for_backward(*[saved[i] for i in ctx.places])
            outputs = _apart(outputs, inputs)
            quiet = [o for o, flows in zip(outputs, differentiable, strict=True) if not flows]
            ctx.mark_non_differentiable(*[o for o in quiet if isinstance(o, torch.Tensor)])
            return tuple(outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved = list(ctx.others)
            for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
                saved[place] = tensor
            given = [_laid_out(cotangents[i], like) for i, like in zip(seen, tangents, strict=True)]
            return tuple(backward([*saved, *given]))

    return Connected.apply


def _apart(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return results such that each tensor is one of its own: a graph may return an input, or one value twice."""
    known = {id(i) for i in inputs}
    apart = []
    for output in outputs:
        again = isinstance(output, torch.Tensor) and id(output) in known
        apart.append(output.view_as(output) if again else output)
        known.add(id(output))
    return apart


def _laid_out(tangent: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a tangent with the strides that the backward part was made for."""
    if any([isinstance(s, torch.SymInt) for s in (*like.shape, *like.stride())]):
        return tangent.contiguous()
    if tangent.stride() == like.stride() or tangent.layout is not torch.strided:
        return tangent
    return torch.empty_strided(like.shape, like.stride(), dtype=tangent.dtype, device=tangent.device).copy_(tangent)


__all__ = ["Compiled", "Compiler", "Compilers", "compiled_program", "is_differentiable"]
