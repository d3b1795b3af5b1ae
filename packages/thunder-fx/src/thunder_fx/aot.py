"""Compiled ahead of the call: graphs of the forward and the backward part of a function, for compilers of FX graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import (  # type: ignore[import-untyped]
    config,
    debug_compile,
    default_decompositions,
    draw_graph,
    draw_graph_compile,
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    make_boxed_compiler,
    make_boxed_func,
    minifier,
    nnc_jit,
    nop,
    print_compile,
    pythonkey_decompose,
    ts_compile,
)
from torch import nn
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from thunder_fx.aot_export import aot_export_joint_simple, aot_export_module
from thunder_fx.aot_programs import Programs
from thunder_fx.aot_running import Compiler, Compilers
from thunder_fx.graphs import Runner
from thunder_fx.make_fx import make_fx
from thunder_fx.partitions import default_partition, min_cut_rematerialization_partition
from thunder_fx.to_fx import Decompositions


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Decompositions | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None,
    *,
    dynamic: bool = False,
) -> Callable[..., Any]:
    """Return a function that does what ``fn`` does by compiled graphs of its forward and its backward part.

    The graphs are made at the first call, and again for arguments that the earlier ones are not right for: of other
    sizes, strides, dtypes, devices or requirements of gradients, or sharing memory in another way. They write to
    nothing: what the function writes, and results that are views of arguments, are made around them. The backward
    graph is compiled when it first runs.

    Args:
        fn: takes and returns tensors in any nesting.
        fw_compiler: gets the forward graph and fake values for its inputs, returns what runs it.
        bw_compiler: the same for the backward graph; ``fw_compiler`` if not given.
        partition_fn: cuts the joint graph, as PyTorch's partitions do.
        decompositions: of ATen operations.
        num_params_buffers, keep_inference_input_mutations: make no difference here: which tensors are parameters, and
            that writes are not part of graphs.
        inference_compiler: gets the graph where there are no gradients; ``fw_compiler`` if not given.
        dynamic: whether sizes of contiguous arguments are dynamic, apart from 0 and 1.

    Example:
        >>> import torch
        >>> from thunder_fx.aot import aot_function, nop
        >>> x = torch.ones(3, requires_grad=True)
        >>> aot_function(lambda a: (a * a).sum(), nop)(x).backward()
        >>> x.grad
        tensor([2., 2., 2.])
    """
    compilers = Compilers(
        fw_compiler, bw_compiler or fw_compiler, inference_compiler or fw_compiler, partition_fn, decompositions
    )
    made: dict[Any, Programs] = {}

    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec not in made:
            made[spec] = Programs(_of_leaves(fn, spec), compilers, dynamic)
        return made[spec](tuple(leaves))

    return compiled


def _of_leaves(function: Callable[..., Any], spec: pytree.TreeSpec) -> Callable[..., Any]:
    """Return a function that takes the leaves of the arguments of ``function``."""

    def called(*leaves: Any) -> Any:
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return function(*args, **kwargs)

    return called


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
    keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None,
) -> Callable[..., Any]:
    """Return a function of flat arguments like ``args`` that runs a module or a graph, for backends of dynamo.

    Args:
        mod: the module; its parameters are held.
        args: examples.
        (others): see :func:`aot_function`.
    """
    function = Runner(mod).run if isinstance(mod, GraphModule) else mod
    return aot_function(
        function, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler=inference_compiler
    )


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """Compile a function or a module by TorchScript, with what is cheap computed again in the backward part.

    Args:
        fn: what is compiled.
        kwargs: of :func:`aot_function`, in place of the compilers and the partition.
    """
    options = {"fw_compiler": ts_compile, "partition_fn": min_cut_rematerialization_partition, **kwargs}
    return (aot_module if isinstance(fn, nn.Module) else aot_function)(fn, **options)


compiled_function = aot_function
compiled_module = aot_module
"""The names that these had first."""

__all__ = [
    "AOTModule", "aot_export_joint_simple", "aot_export_module", "aot_function", "aot_module",
    "aot_module_simplified", "compiled_function", "compiled_module", "config", "debug_compile",
    "default_decompositions", "default_partition", "draw_graph", "draw_graph_compile", "get_aot_compilation_context",
    "get_aot_graph_name", "get_graph_being_compiled", "make_boxed_compiler", "make_boxed_func", "make_fx",
    "memory_efficient_fusion", "min_cut_rematerialization_partition", "minifier", "nnc_jit", "nop", "print_compile",
    "pythonkey_decompose", "ts_compile",
]  # fmt: skip
