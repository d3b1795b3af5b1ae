"""An FX graph as a compiled function: traced, differentiated, given to executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from thunder_fx._torch_versions import children_of
from thunder_fx.graphs import Runner
from thunder_fx.running import Ready, made_ready
from thunder_guards.symbolic import ConstraintsGuard
from thunder_ir import TensorProxy
from thunder_tracing import OpenNumbers, TracedFunction, trace_function, trace_function_open


class CompiledGraph:
    """Runs an FX graph of torch functions as a program. What it reads besides its inputs, it holds.

    Args:
        module: the graph.
        example_inputs: tensors, with or without data, and numbers.
        executors: in order of priority; ``None`` for the defaults.
        opened: sizes and integers that are left open; ``None`` for none.

    Raises:
        NodeError: a node cannot be recorded.
    """

    def __init__(
        self,
        module: GraphModule,
        example_inputs: Sequence[Any],
        executors: Sequence[Any] | None = None,
        opened: OpenNumbers | None = None,
    ) -> None:
        run = Runner(module).run
        self.traced: TracedFunction = (
            trace_function(run, *example_inputs)
            if opened is None
            else trace_function_open(run, list(example_inputs), opened)
        )
        self.ready: Ready = made_ready(self.traced, executors)
        self._constraints = ConstraintsGuard(self.traced.numbers, self.ready.traces[0].constraints)
        self._direct = direct(self.traced, self.ready.run)

    def serves(self, args: Sequence[Any]) -> bool:
        """Whether the program is right for the open numbers of these arguments, which are like its examples else."""
        return self._constraints.failure({"args": args}) is None

    def __call__(self, *args: Any) -> Any:
        """Run the graph."""
        if self._direct is not None:
            return self._direct(*args)
        return self.traced.call(self.ready.run, *args)


def direct(traced: TracedFunction, run: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what a function does, if that is to return fresh tensors in a tuple and nothing else."""
    plain = all([o.input is None and isinstance(o.value, TensorProxy) for o in traced.outputs])
    flat = traced.out_spec.type is tuple and all([c.is_leaf() for c in children_of(traced.out_spec)])
    if not plain or not flat or traced.writes:
        return None
    arguments = children_of(children_of(traced.in_spec)[0])
    if not all([a.is_leaf() for a in arguments]):
        return None
    if traced.numbers:
        return lambda *args: run(*traced.given(args))
    places = [i.argument for i in traced.inputs]
    held = [i.tensor for i in traced.inputs]
    if places == list(range(len(arguments))):
        return run

    def called(*args: Any) -> Any:
        return run(*[t if p is None else args[p] for p, t in zip(places, held, strict=True)])

    return called


__all__ = ["CompiledGraph", "direct"]
