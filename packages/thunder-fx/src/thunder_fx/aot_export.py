"""Functions and modules as single graphs: of what they compute, or of that with its derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch._functorch._aot_autograd.schemas import BackwardSignature, GraphSignature
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from thunder_fx.aot_running import is_differentiable
from thunder_fx.errors import FXError
from thunder_fx.partitions import Joint, joint_module, joint_of
from thunder_fx.to_fx import Decompositions, to_fx
from thunder_ir import Builder, TensorProxy, Trace, recording, substitute
from thunder_torch import call, to_torch_device, to_torch_dtype, torch_language
from thunder_tracing import TracedFunction, trace_function


def aot_export_joint_simple(
    func: Callable[..., Any],
    args: Sequence[Any],
    *,
    trace_joint: bool,
    num_params_buffers: int = 0,
    decompositions: Decompositions | None = None,
) -> GraphModule:
    """Return a function of flat tensors as a graph of ATen operations, with its derivative if asked for.

    Args:
        func: takes and returns tensors, and writes to none.
        args: examples.
        trace_joint: whether the graph takes tangents, too, and returns gradients behind the outputs.
        num_params_buffers: makes no difference here.
        decompositions: of ATen operations.

    Raises:
        FXError: the function writes to its arguments, or there is no derivative to trace.
    """
    traced = trace_function(func, *args)
    if traced.writes:
        raise FXError("the function writes to its arguments, for which an exported graph has no place")
    if not trace_joint:
        return to_fx(traced.trace, decompositions=decompositions)
    if not is_differentiable(traced.trace):
        raise FXError("no result of the function has a derivative: no argument that it depends on requires grad")
    return joint_module(joint_of(traced.trace, traced.rules), decompositions)


def aot_export_module(
    mod: nn.Module,
    args: Iterable[Any],
    *,
    decompositions: Decompositions | None = None,
    trace_joint: bool,
    output_loss_index: int | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> tuple[GraphModule, GraphSignature]:
    """Return a module as a graph of ATen operations without effects, and what its inputs and outputs are.

    The graph takes parameters, buffers and the leaves of the arguments; it returns new values of what the module writes
    to, the leaves of the result, and, with ``trace_joint``, the gradients of all inputs that require grad.

    Args:
        mod: the module.
        args, kwargs: examples of its arguments.
        decompositions: of ATen operations.
        trace_joint: whether gradients are wanted: of one result, the loss.
        output_loss_index: which result that is; no other one may require grad.

    Returns:
        The graph, and PyTorch's ``GraphSignature`` of it.

    Raises:
        FXError: there is no such loss, another result requires grad, or an input that requires grad is written to.

    Example:
        >>> import torch
        >>> from thunder_fx.aot import aot_export_module
        >>> graph, signature = aot_export_module(torch.nn.Linear(3, 2), [torch.ones(4, 3)], trace_joint=False)
        >>> signature.parameters, signature.user_inputs, len(signature.user_outputs)
        (['weight', 'bias'], ['a2'], 1)
    """
    parameters = dict(mod.named_parameters(remove_duplicate=False))
    buffers = dict(mod.named_buffers(remove_duplicate=False))
    names = [*parameters, *buffers]
    given, in_spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))

    def called(*leaves: Any) -> Any:
        state = dict(zip(names, leaves[: len(names)], strict=True))
        inner, named = pytree.tree_unflatten(list(leaves[len(names) :]), in_spec)
        return torch.func.functional_call(mod, state, inner, named)

    with torch.set_grad_enabled(trace_joint):
        traced = trace_function(called, *parameters.values(), *buffers.values(), *given)
    if any([i.argument is None for i in traced.inputs]) or len(traced.inputs) != len(names) + len(given):
        raise FXError(
            "an exported module takes tensors, each of its parameters and arguments once, and holds no others"
        )
    outputs = [o.value for o in traced.outputs]
    written = [w.value for w in traced.writes]
    values = [*written, *outputs]
    if not trace_joint:
        module = to_fx(traced.trace.replace(output=tuple(values)), decompositions=decompositions)
        return module, _signature(module, traced, (list(parameters), list(buffers)), in_spec, None)
    _check_loss(traced, output_loss_index)
    assert output_loss_index is not None
    loss = len(written) + output_loss_index
    joint = joint_of(traced.trace.replace(output=tuple(values)), traced.rules)
    gradients = [i.proxy.requires_grad for i in traced.inputs]
    module = to_fx(_without_tangents(joint, values[loss], gradients), decompositions=decompositions)
    return module, _signature(module, traced, (list(parameters), list(buffers)), in_spec, loss)


def _check_loss(traced: TracedFunction, index: int | None) -> None:
    """Refuse what has not one loss and nothing else that requires grad.

    Raises:
        FXError: see :func:`aot_export_module`.
    """
    if index is None or not 0 <= index < len(traced.outputs):
        raise FXError(f"a joint graph is of a loss: output_loss_index says which result it is, got {index}")
    loss = traced.outputs[index].value
    if not isinstance(loss, TensorProxy) or not loss.requires_grad or loss.numel != 1:
        told = loss.type_string if isinstance(loss, TensorProxy) else type(loss).__name__
        raise FXError(f"result {index}, the loss, is not one number that requires grad: {told}")
    for i, output in enumerate(traced.outputs):
        if i != index and isinstance(output.value, TensorProxy) and output.value.requires_grad:
            raise FXError(f"result {i} requires grad and is not the loss, which is result {index}: detach() it")
    for write in traced.writes:
        if write.value.requires_grad or traced.inputs[write.input].proxy.requires_grad:
            name = traced.inputs[write.input].proxy.name
            raise FXError(f"the module writes what requires grad to its input {name}, for which a loss has no gradient")


def _without_tangents(joint: Joint, loss: Any, wanted: Sequence[bool]) -> Trace:
    """Return a joint program whose one tangent is a one, with no gradients but those wanted."""
    (tangent,) = joint.trace.inputs[joint.primals :]
    builder = Builder(joint.trace.names(), torch_language)
    device = to_torch_device(loss.device)
    with recording(builder):
        one = call(torch.ones, (tuple(loss.shape),), {"dtype": to_torch_dtype(loss.dtype), "device": device})
    known = {tangent.name: one}
    outputs, gradients = substitute(joint.trace.output, known)
    kept = [g for g, is_wanted in zip(gradients, wanted, strict=True) if is_wanted]
    return joint.trace.replace(
        inputs=joint.trace.inputs[: joint.primals],
        bound_symbols=(*builder.bound_symbols, *[b.substituted(known) for b in joint.trace.bound_symbols]),
        output=(*outputs, *kept),
        tags=frozenset(),
    )


def _signature(
    module: GraphModule,
    traced: TracedFunction,
    state: tuple[list[str], list[str]],
    in_spec: pytree.TreeSpec,
    loss: int | None,
) -> GraphSignature:
    """Return what the inputs and outputs of an exported graph are.

    Args:
        module: the graph.
        traced: the module as a function.
        state: names of parameters, and of buffers.
        in_spec: how the arguments are nested.
        loss: which output of the graph is the loss; ``None`` without a derivative.
    """
    parameters, buffers = state
    inputs: list[Any] = [node.name for node in module.graph.find_nodes(op="placeholder")]
    returned: Any = module.graph.output_node().args[0]
    outputs: list[Any] = [getattr(value, "name", value) for value in returned]
    held = [*parameters, *buffers]
    count = len(traced.writes)
    mutated = {outputs[k]: w.input for k, w in enumerate(traced.writes)}
    results = outputs[count : count + len(traced.outputs)]
    backward = None
    names: Any = held  # which PyTorch's types tell apart by what they are names of
    if loss is not None:
        places = [i for i, source in enumerate(traced.inputs) if source.proxy.requires_grad]
        gradients = dict(zip(outputs[count + len(results) :], places, strict=True))
        backward = BackwardSignature(
            {name: held[i] for name, i in gradients.items() if i < len(held)},
            {name: inputs[i] for name, i in gradients.items() if i >= len(held)},
            outputs[loss],
        )
    return GraphSignature(
        parameters=names[: len(parameters)],
        buffers=names[len(parameters) :],
        user_inputs=inputs[len(held) :],
        user_outputs=results,
        inputs_to_parameters=dict(zip(inputs, names[: len(parameters)], strict=False)),
        inputs_to_buffers=dict(zip(inputs[len(parameters) :], names[len(parameters) :], strict=False)),
        buffers_to_mutate={o: names[i] for o, i in mutated.items() if len(parameters) <= i < len(held)},
        parameters_to_mutate={o: names[i] for o, i in mutated.items() if i < len(parameters)},
        user_inputs_to_mutate={o: inputs[i] for o, i in mutated.items() if i >= len(held)},
        in_spec=in_spec,
        out_spec=traced.out_spec,
        backward_signature=backward,
        input_tokens=[],
        output_tokens=[],
    )


__all__ = ["aot_export_joint_simple", "aot_export_module"]
