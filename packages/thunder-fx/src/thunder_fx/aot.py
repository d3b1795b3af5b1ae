"""Compiled ahead of the call: graphs of the forward and the backward part of a function, for compilers of FX graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import nop, ts_compile  # type: ignore[import-untyped]
from torch import nn
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from thunder_fx.errors import FXError
from thunder_fx.graphs import Runner
from thunder_fx.open_inputs import kind_of
from thunder_fx.partitions import (
    Joint,
    default_partition,
    joint_module,
    joint_of,
    min_cut_rematerialization_partition,
    partitioned,
)
from thunder_fx.to_fx import Decompositions, to_fx
from thunder_ir import TensorProxy, Trace
from thunder_torch.differentiated import keep_written_inputs
from thunder_tracing import TracedFunction, trace_function

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]


def make_fx(function: Callable[..., Any], decomposition_table: Decompositions | None = None) -> Callable[..., Any]:
    """Return a function of example inputs that returns ``function`` as a graph of ATen operations.

    The graph is called with the tensors among the arguments, then those that the function holds itself.

    Raises:
        FXError: the function writes to its arguments.

    Example:
        >>> import torch
        >>> from thunder_fx.aot import make_fx
        >>> graph = make_fx(lambda x: x.sin() + 1)(torch.zeros(2))
        >>> [node.name for node in graph.graph.nodes]
        ['a0', 'sin', 'add', 'output']
    """

    def made(*args: Any) -> GraphModule:
        traced = trace_function(function, *args)
        if traced.writes:
            raise FXError("the function writes to its arguments, for which a graph without effects has no place")
        leaves = [o.value for o in traced.outputs]
        return to_fx(
            traced.trace.replace(output=pytree.tree_unflatten(leaves, traced.out_spec)),
            decompositions=decomposition_table,
        )

    return made


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Decompositions | None = None,
    inference_compiler: Compiler | None = None,
) -> Callable[..., Any]:
    """Return a function that does what ``fn`` does by compiled graphs of its forward and its backward part.

    The graphs are made at the first call, and again for arguments of other sizes, dtypes, devices or requirements of
    gradients. They write to nothing: writes to arguments, and results that are views of them, are made around them.

    Args:
        fn: takes and returns tensors in any nesting.
        fw_compiler: gets the forward graph and values without data for its inputs, returns what runs it.
        bw_compiler: the same for the backward graph; ``fw_compiler`` if not given.
        partition_fn: cuts the joint graph, as PyTorch's partitions do.
        decompositions: of ATen operations.
        inference_compiler: gets the graph where there are no gradients; ``fw_compiler`` if not given.

    Example:
        >>> import torch
        >>> from thunder_fx.aot import aot_function, nop
        >>> x = torch.ones(3, requires_grad=True)
        >>> aot_function(lambda a: (a * a).sum(), nop)(x).backward()
        >>> x.grad
        tensor([2., 2., 2.])
    """
    made: dict[Any, tuple[TracedFunction, Callable[..., Any]]] = {}

    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = (spec, kind_of(leaves))
        if key not in made:
            traced = trace_function(fn, *args, **kwargs)
            made[key] = traced, _run(
                traced, fw_compiler, bw_compiler or fw_compiler, partition_fn, decompositions,
                inference_compiler or fw_compiler,
            )  # fmt: skip
        traced, run = made[key]
        return traced.call(run, *args, **kwargs)

    return compiled


def _run(
    traced: TracedFunction,
    fw_compiler: Compiler,
    bw_compiler: Compiler,
    partition_fn: Callable[..., Any],
    decompositions: Decompositions | None,
    inference_compiler: Compiler,
) -> Callable[..., Any]:
    """Return what runs the trace of a function, by the graphs that compilers made ready."""
    if not _differentiable(traced.trace):
        run = _compiled(to_fx(traced.trace, decompositions=decompositions), inference_compiler)

        def quiet(*inputs: Any) -> Any:
            with torch.no_grad():
                return run(inputs)

        return quiet
    joint = joint_of(_apart_from_writes(traced), traced.rules)
    forward, backward = partitioned(joint, partition_fn, decompositions)
    return _connected(joint, _compiled(forward, fw_compiler), _compiled(backward, bw_compiler))


def _differentiable(trace: Trace) -> bool:
    return any([isinstance(p, TensorProxy) and p.requires_grad for p in trace.outputs])


def _apart_from_writes(traced: TracedFunction) -> Trace:
    """Return the trace with copies of what is written to afterwards, as the derivative may read it."""
    written = [traced.inputs[w.input].proxy for w in traced.writes]
    return keep_written_inputs(written, traced.trace) if written else traced.trace


def _compiled(module: GraphModule, compiler: Compiler) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what runs a graph: a function of a list of inputs."""
    examples = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    made = compiler(module, examples)
    if getattr(made, "_boxed_call", False):
        return lambda inputs: made(list(inputs))
    return lambda inputs: made(*inputs)


def _connected(joint: Joint, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs both graphs as one operation of autograd."""
    count, differentiable = joint.outputs, joint.differentiable
    seen = [i for i, flows in enumerate(differentiable) if flows]

    class Compiled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            results = list(forward(inputs))
            outputs, saved = results[:count], results[count:]
            ctx.places = [i for i, s in enumerate(saved) if isinstance(s, torch.Tensor)]
            ctx.others = [None if isinstance(s, torch.Tensor) else s for s in saved]
            ctx.save_for_backward(*[saved[i] for i in ctx.places])
            given = {id(i) for i in inputs}
            outputs = [o.view_as(o) if id(o) in given else o for o in outputs]
            ctx.mark_non_differentiable(*[o for o, d in zip(outputs, differentiable, strict=True) if not d])
            return tuple(outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved = list(ctx.others)
            for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
                saved[place] = tensor
            return tuple(backward([*saved, *[cotangents[i] for i in seen]]))

    return Compiled.apply


def aot_module(mod: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """Return a module that does what ``mod`` does by compiled graphs, on the same parameters and buffers.

    Args:
        mod: the module.
        args, kwargs: of :func:`aot_function`.
    """
    return AOTModule(mod, *args, **kwargs)


class AOTModule(nn.Module):
    """What :func:`aot_module` returns.

    Args:
        module: whose parameters and buffers are inputs of the graphs.
        args, kwargs: of :func:`aot_function`.
    """

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.orig_module = module

        def call(state: dict[str, torch.Tensor], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return torch.func.functional_call(module, state, given, named)

        self._compiled = aot_function(call, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module."""
        module = self.orig_module
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return self._compiled(state, args, kwargs)


def aot_module_simplified(
    mod: nn.Module,
    args: Sequence[Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Decompositions | None = None,
    inference_compiler: Compiler | None = None,
) -> Callable[..., Any]:
    """Return a function of flat arguments like ``args`` that runs a module or a graph, for backends of dynamo.

    Args:
        mod: the module; its parameters are held.
        args: examples.
        (others): see :func:`aot_function`.
    """
    function = Runner(mod).run if isinstance(mod, GraphModule) else mod
    return aot_function(function, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler)


def aot_export_joint_simple(
    func: Callable[..., Any],
    args: Sequence[Any],
    *,
    trace_joint: bool,
    decompositions: Decompositions | None = None,
) -> GraphModule:
    """Return a function of flat tensors as a graph of ATen operations, with its derivative if asked for.

    Args:
        func: takes and returns tensors, and writes to none.
        args: examples.
        trace_joint: whether the graph takes tangents, too, and returns gradients behind the outputs.
        decompositions: of ATen operations.

    Raises:
        FXError: the function writes to its arguments, or there is no derivative to trace.
    """
    traced = trace_function(func, *args)
    if traced.writes:
        raise FXError("the function writes to its arguments, for which an exported graph has no place")
    if not trace_joint:
        return to_fx(traced.trace, decompositions=decompositions)
    if not _differentiable(traced.trace):
        raise FXError("no result of the function has a derivative: no argument that it depends on requires grad")
    return joint_module(joint_of(traced.trace, traced.rules), decompositions)


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """Compile a function or a module by TorchScript, with what is cheap computed again in the backward part.

    Args:
        fn: what is compiled.
        kwargs: of :func:`aot_function`, in place of the compilers and the partition.
    """
    options = {"fw_compiler": ts_compile, "partition_fn": min_cut_rematerialization_partition, **kwargs}
    return (aot_module if isinstance(fn, nn.Module) else aot_function)(fn, **options)


__all__ = [
    "AOTModule", "aot_export_joint_simple", "aot_function", "aot_module", "aot_module_simplified",
    "default_partition", "make_fx", "memory_efficient_fusion", "min_cut_rematerialization_partition", "nop",
    "ts_compile",
]  # fmt: skip
