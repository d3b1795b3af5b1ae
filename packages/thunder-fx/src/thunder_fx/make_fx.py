"""A function as a graph that is called as the function is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch.fx import GraphModule, Interpreter
from torch.fx.experimental import proxy_tensor
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree

from thunder_fx.constraints import demand
from thunder_fx.symbolic_inputs import SymbolicInputs
from thunder_fx.to_fx import Decompositions, to_fx
from thunder_tracing import TracedFunction, trace_function, trace_function_symbolic

MODES = ("real", "fake", "symbolic")


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Decompositions | None = None,
    tracing_mode: Literal["real", "fake", "symbolic"] = "real",
) -> Callable[..., GraphModule]:
    """Return a function of example arguments that returns ``f`` as a graph of ATen operations, called as ``f`` is.

    What ``f`` writes to its arguments, the graph writes to them at its end; tensors that ``f`` holds are attributes of
    the graph.

    Args:
        f: takes and returns tensors in any nesting. Arguments that are no tensors are part of the graph.
        decomposition_table: of ATen operations.
        tracing_mode: ``"symbolic"`` makes the sizes of contiguous arguments symbolic, apart from 0 and 1, and those
            that Python itself needs. ``"real"`` and ``"fake"`` are the same: nothing is computed while the graph is
            made.

    Raises:
        ValueError: there is no such mode.
        AcquisitionError: ``f`` does what no graph can hold; the message says where.

    Example:
        >>> import torch
        >>> from thunder_fx.aot import make_fx
        >>> graph = make_fx(lambda x: x.sin() + 1)(torch.zeros(2))
        >>> [node.name for node in graph.graph.nodes]
        ['x_1', 'sin', 'add', 'output']
        >>> graph(torch.zeros(2))
        tensor([1., 1.])
    """
    if tracing_mode not in MODES:
        raise ValueError(f"tracing_mode is one of {', '.join(MODES)}, not {tracing_mode!r}")
    is_symbolic = tracing_mode == "symbolic"

    def made(*args: Any) -> GraphModule:
        called = _named_like(f, _calling(_traced(f, args, is_symbolic)), len(args))
        mode: Literal["fake", "symbolic"] = "symbolic" if is_symbolic else "fake"
        with preserve_node_meta(), torch.no_grad():
            table = dict(decomposition_table or {})
            return proxy_tensor.make_fx(called, table, mode, _allow_non_fake_inputs=True)(*args)

    return made


def _named_like(function: Callable[..., Any], called: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return ``called``, of whose arguments FX reads the names off a function that takes as many."""
    code = getattr(function, "__code__", None)
    return functools.wraps(function)(called) if getattr(code, "co_argcount", None) == count else called


def _traced(function: Callable[..., Any], args: tuple[Any, ...], is_symbolic: bool) -> TracedFunction:
    if is_symbolic:
        leaves = pytree.tree_leaves(args)
        numbers = SymbolicInputs.of_tensors(leaves).numbers(leaves)
        if numbers is not None:
            return trace_function_symbolic(function, args, numbers)
    return trace_function(function, *args)


def _calling(traced: TracedFunction) -> Callable[..., Any]:
    """Return what does as the function does, by its graph."""
    graph = to_fx(traced.trace)
    names = [p.name for p in traced.trace.inputs]

    def run(*given: Any) -> Any:
        numbers = {n: v for n, v in zip(names, given, strict=True) if not isinstance(v, torch.Tensor)}
        demand(traced.trace.constraints, numbers)
        return Interpreter(graph).run(*given)

    return lambda *args: traced.call(run, *args)


__all__ = ["make_fx"]
