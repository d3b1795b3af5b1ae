"""Derivatives of operations that only PyTorch knows: its graph of the call is kept for the backward program.

The forward run records PyTorch's own graph, the backward run follows it. So nothing is computed twice, no random number
is drawn twice, and what is kept is what eager PyTorch keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_ir import AnyProxy, OpTags, Symbol, TensorProxy
from thunder_torch.opaque import call_of, derivative_of
from thunder_torch.specs import map_tensors


@dataclass(frozen=True, slots=True)
class Graph:
    """PyTorch's graph of one call.

    Args:
        leaves: the inputs that have a gradient.
        outputs: the tensors that came out.
    """

    leaves: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]


def run(call: Callable[..., Any], positions: tuple[int, ...], *values: Any) -> tuple[Any, Graph]:
    """Run a call and keep its graph.

    Args:
        call: takes ``values``.
        positions: which of them have a gradient.
        values: tensors, and numbers known only now.

    Returns:
        The output, without its history; and the graph.
    """
    given = list(values)
    with torch.enable_grad():
        for i in positions:
            given[i] = given[i].detach().requires_grad_()
        output = call(*given)
    outputs: list[torch.Tensor] = []

    def detached(tensor: torch.Tensor) -> torch.Tensor:
        outputs.append(tensor)
        return tensor.detach()

    return map_tensors(detached, output), Graph(tuple([given[i] for i in positions]), tuple(outputs))


def pull(graph: Graph, outputs: tuple[int, ...], *cotangents: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the gradients of a graph's leaves.

    Args:
        graph: of the call.
        outputs: which of its outputs have a cotangent.
        cotangents: theirs.
    """
    pairs = [(graph.outputs[i], c) for i, c in zip(outputs, cotangents, strict=True) if graph.outputs[i].requires_grad]
    if not pairs:
        return tuple([torch.zeros_like(leaf) for leaf in graph.leaves])
    targets, seeds = zip(*pairs, strict=True)
    # What torch.autograd.grad checks before, of sizes above all, takes as long as the gradient of a small layer.
    found = torch.autograd.Variable._execution_engine.run_backward(
        targets, seeds, True, False, graph.leaves, allow_unreachable=True, accumulate_grad=False
    )
    return tuple([torch.zeros_like(leaf) if g is None else g for leaf, g in zip(graph.leaves, found, strict=True)])


def run_meta(call: Any, positions: tuple[int, ...], *values: Any) -> tuple[Any, AnyProxy]:
    """Return the metadata of what :func:`run` returns."""
    return call.metadata(values), AnyProxy()


def rule_of(function: Callable[..., Any], runs: Symbol, pulls: Callable[[list[TensorProxy]], Symbol]) -> Any:
    """Return the derivative rule of a function of PyTorch.

    Args:
        function: what runs.
        runs: the operator that calls :func:`run`.
        pulls: makes the operator that calls :func:`pull`, which returns tensors like those given.
    """

    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call, values = call_of(function, args, kwargs)
        derivative = derivative_of(call, values, call.metadata(tuple(values)))
        leaves = [values[i] for i in derivative.inputs]
        output, graph = runs(call, derivative.inputs, *values)

        def pullback(*cotangents: Any) -> tuple[Any, ...]:
            given = derivative.pairs(cotangents)
            found: dict[str, Any] = {}
            if given and leaves:
                gradients = pulls(leaves)(graph, tuple([place for place, _ in given]), *[c for _, c in given])
                for leaf, gradient in zip(leaves, gradients, strict=True):
                    found[leaf.name] = gradient if leaf.name not in found else found[leaf.name] + gradient
            return tuple([_placed(argument, found) for argument in (*args, *kwargs.values())])

        return output, derivative.through(pullback)

    return rule


def _placed(argument: Any, found: dict[str, Any]) -> Any:
    """Return the gradient of an argument, each taken once: the sum stands for all places of a tensor."""
    if isinstance(argument, TensorProxy):
        return found.pop(argument.name, None)
    if isinstance(argument, (tuple, list)):
        return tuple([_placed(item, found) for item in argument])
    return None


KEEPS = (OpTags.DONT_RECOMPUTE,)
DRAWS = (OpTags.DONT_RECOMPUTE, OpTags.RANDOM)
