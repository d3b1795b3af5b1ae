"""An FX graph as a compiled function: traced, differentiated, given to executors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from thunder_fx.graphs import Runner
from thunder_fx.running import Ready, made_ready
from thunder_guards import Program, ordered, specialise
from thunder_ir import Builder, TensorProxy, recording
from thunder_tracing import SymbolicNumbers, trace_program


class CompiledGraph:
    """Runs an FX graph of torch functions as a program. What it reads besides its inputs, it holds.

    Args:
        module: the graph.
        example_inputs: tensors, with or without data, and numbers, nested or not.
        executors: in order of priority; ``None`` for the defaults.
        symbolic_numbers: sizes and integers that are dynamic; ``None`` for none.

    Raises:
        NodeError: a node cannot be recorded.
        AcquisitionError: the graph does something to its inputs that no program holds.
    """

    def __init__(
        self,
        module: GraphModule,
        example_inputs: Sequence[Any],
        executors: Sequence[Any] | None = None,
        symbolic_numbers: SymbolicNumbers | None = None,
    ) -> None:
        run = Runner(module).run
        leaves, spec = pytree.tree_flatten(tuple(example_inputs))
        self._nested = len(leaves) != len(example_inputs) or any(map(operator.is_not, leaves, example_inputs))
        function = _of_leaves(run, spec) if self._nested else run
        program = trace_program(function, leaves, symbolic_numbers)
        builder = Builder(program.computation.names())
        with recording(builder):
            self.ready: Ready = made_ready(program, executors)
        constraints = (*program.computation.constraints, *builder.constraints)
        program = replace(program, computation=program.computation.replace(constraints=constraints))
        self._direct = direct(program, self.ready.run)
        self._call = specialise(program, self.ready.run, returns_result=False).call

    def call(self, args: tuple[Any, ...], otherwise: Callable[..., Any]) -> Any:
        """Run the graph on arguments of the kinds that its examples are of.

        Args:
            args: its inputs.
            otherwise: what is called with inputs that share memory or have sizes for which the program is not right.
        """
        if self._nested:
            args = tuple(pytree.tree_leaves(args))
        if self._direct is not None:
            return self._direct(*args)
        return self._call(args, {}, otherwise)


def _of_leaves(function: Callable[..., Any], spec: pytree.TreeSpec) -> Callable[..., Any]:
    """Return a function that takes the leaves of the arguments of ``function``."""
    return lambda *leaves: function(*pytree.tree_unflatten(list(leaves), spec))


def direct(program: Program, run: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what a program does, if that is to return fresh tensors in a tuple, whatever its arguments share.

    That they are of the kinds that it was made for, the caller knows.

    Args:
        program: the program.
        run: runs its computation.
    """
    values = [p for p in program.computation.outputs if isinstance(p, TensorProxy)]
    result = program.result
    plain = type(result) is tuple and len(result) == len(values) and all(map(_is, result, values))
    if not plain or program.effects or program.guards or program.numbers:
        return None
    inputs = ordered(program.inputs)
    places = [None if i.source.is_held else i.source.key for i in inputs]
    if places == list(range(len(program.arguments.types))):
        return run
    held = [i.source.evaluate({}) if i.source.is_held else None for i in inputs]

    def called(*args: Any) -> Any:
        return run(*[t if p is None else args[p] for p, t in zip(places, held, strict=True)])

    return called


def _is(one: object, other: object) -> bool:
    return one is other or isinstance(one, TensorProxy) and isinstance(other, TensorProxy) and one.name == other.name


__all__ = ["CompiledGraph", "direct"]
