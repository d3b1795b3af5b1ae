"""A trace as an FX graph of ATen operations."""

from __future__ import annotations

import linecache
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta, set_stack_trace

from thunder_executors import Executor, claim, resolve_executors
from thunder_fx.constraints import demand
from thunder_fx.errors import FXError
from thunder_fx.fakes import fake_inputs, new_fake_mode
from thunder_ir import BoundSymbol, OpTags, Trace, substitute
from thunder_ir.passes import pair_outputs
from thunder_torch import sized
from thunder_torch.fake_modes import QuickMode

Decompositions = Mapping[Any, Callable[..., Any]]


def to_fx(
    trace: Trace,
    *,
    core_aten: bool = False,
    decompositions: Decompositions | None = None,
    executors: Sequence[Executor | str] = ("torch",),
    fake_mode: FakeTensorMode | None = None,
) -> GraphModule:
    """Return a trace as an FX graph of ATen operations, which writes to none of its inputs.

    Each node has a fake value in ``meta["val"]`` and the user's line in ``meta["stack_trace"]``. Sizes that
    are inputs of the trace are symbols, and what the trace demands of them is among the guards of their ``ShapeEnv``.

    Args:
        trace: a program, forward, backward or joint; its inputs are tensors and numbers.
        core_aten: whether only operations of core ATen are wanted.
        decompositions: further ones, as ``torch.fx.experimental.proxy_tensor.make_fx`` takes them.
        executors: who says which functions of PyTorch run the program's operations.
        fake_mode: what the fake values belong to; a new one if not given.

    Returns:
        A module that is called with the inputs of the trace, in order, and returns what it returns.

    Raises:
        FXError: an input is neither tensor nor number, or an operation cannot run without data; the message names the
            operation and the user's line.

    Example:
        >>> import torch
        >>> from thunder_fx import to_fx
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_torch import torch_language
        >>> trace = trace_of(lambda x: (x * 2).sin(), Tensor((3,)), language=torch_language)
        >>> module = to_fx(trace)
        >>> [node.name for node in module.graph.nodes]
        ['x', 'mul', 'sin', 'output']
        >>> module(torch.zeros(3))
        tensor([0., 0., 0.])
    """
    mode = new_fake_mode() if fake_mode is None else fake_mode
    table = dict(core_aten_decompositions()) if core_aten else {}
    table |= decompositions or {}
    claimed = claim(trace, resolve_executors(list(executors)))
    inputs = fake_inputs(trace.inputs, mode)
    numbers = {p.name: v for p, v in zip(trace.inputs, inputs, strict=True) if not isinstance(v, torch.Tensor)}
    demand(trace.constraints, numbers)
    run = _running(claimed)
    module = _traced(run, inputs, table, mode)
    if _writes(module):
        module = _traced(dispatch_functionalize(run), inputs, table, mode)
    placeholders = module.graph.find_nodes(op="placeholder")
    for node, proxy, value in zip(placeholders, trace.inputs, inputs, strict=True):
        node._rename(proxy.name)
        node.target = node.name
        node.meta.setdefault("val", value)  # which a size that nothing reads has not
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def fake_results(trace: Trace, executors: Sequence[Executor | str] = ("torch",)) -> Any:
    """Return fake tensors that lie in memory as the results of a trace do, where no operation is decomposed.

    Args:
        trace: a program, as for :func:`to_fx`.
        executors: who says which functions of PyTorch run the program's operations.

    Raises:
        FXError: as for :func:`to_fx`.

    Example:
        >>> import torch
        >>> from thunder_fx.to_fx import fake_results
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_torch import torch_language
        >>> trace = trace_of(lambda x: x.transpose(0, 1) * 2, Tensor((3, 5)), language=torch_language)
        >>> fake_results(trace).stride()
        (1, 5)
    """
    run = _running(claim(trace, resolve_executors(list(executors))))
    mode = QuickMode(new_fake_mode().shape_env)
    inputs = fake_inputs(trace.inputs, mode)
    with torch.no_grad(), enable_python_dispatcher(), mode:
        return run(*inputs)


def _traced(run: Callable[..., Any], inputs: Sequence[Any], table: Decompositions, mode: FakeTensorMode) -> GraphModule:
    traced = make_fx(run, decomposition_table=dict(table), _allow_non_fake_inputs=True)
    with ExitStack() as stack:
        stack.enter_context(preserve_node_meta())
        stack.enter_context(torch.no_grad())
        if mode.shape_env is not None:
            stack.enter_context(enable_python_dispatcher())
        stack.enter_context(mode)
        return traced(*inputs)


def _writes(module: GraphModule) -> bool:
    """Whether a graph writes to memory: some functions of PyTorch are their in-place forms on copies."""
    schemas = [getattr(node.target, "_schema", None) for node in module.graph.nodes]
    return any([schema is not None and schema.is_mutable for schema in schemas])


def _running(trace: Trace) -> Callable[..., Any]:
    """Return what runs a claimed program call by call, and says where in the user's program each is from."""
    calls = [bound for bound in trace.bound_symbols if OpTags.FREES not in bound.symbol.tags]

    def run(*values: Any) -> Any:
        known = {p.name: v for p, v in zip(trace.inputs, values, strict=True)}
        for bound in calls:
            set_stack_trace(stack_trace(bound.location))
            try:
                args, kwargs = substitute((bound.args, bound.kwargs), known)
                pair_outputs(bound.output, _implementation(bound)(*args, **kwargs), known)
            except Exception as error:
                place = f" at {bound.location}" if bound.location is not None else ""
                raise FXError(
                    f"{bound.symbol.id}{place} cannot be an FX graph: {type(error).__name__}: {error}"
                ) from error
        set_stack_trace([])
        return substitute(trace.output, known)

    return run


def _implementation(bound: BoundSymbol) -> Callable[..., Any]:
    if bound.symbol.origin is sized.origin or bound.symbol.implementation is sized.origin:
        return _sized
    implementation = bound.symbol.implementation
    if implementation is None:
        raise FXError(f"no executor runs {bound.symbol.id}")
    return implementation


def _sized(tensor: torch.Tensor, claimed: tuple[Any, ...]) -> tuple[Any, ...]:
    """Do what reads the sizes of a result do, such that the claims become checks of the graph."""
    for claim_, size in zip(claimed, tensor.shape, strict=True):
        if claim_ is not None:
            torch._check(operator.eq(size, claim_))  # type: ignore[no-untyped-call]
    return (tensor, *[n for c, n in zip(claimed, tensor.shape, strict=True) if c is None])


def stack_trace(location: Any) -> list[str]:
    """Return a location as the lines of a traceback."""
    if location is None:
        return []
    name = getattr(location, "function", "") or "<unknown>"
    text = linecache.getline(location.filename, location.line).strip()
    return [f'  File "{location.filename}", line {location.line}, in {name}\n', f"    {text}\n"]


__all__ = ["Decompositions", "fake_results", "stack_trace", "to_fx"]
