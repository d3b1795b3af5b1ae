"""Joint graphs, and where they are cut into a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.fx import GraphModule

from thunder_autograd import grad_transform_on_trace, split_into_forward_and_backward
from thunder_autograd.programs import TakesCotangents
from thunder_executors import grad_rule, resolve_executors
from thunder_fx.errors import FXError
from thunder_fx.from_fx import from_fx
from thunder_fx.to_fx import Decompositions, to_fx
from thunder_ir import BoundSymbol, Names, Symbol, TensorProxy, Trace
from thunder_ir.passes.renaming import renamed
from thunder_prims import tidy
from thunder_torch.opaque import OpaqueSymbol

Modules = tuple[GraphModule, GraphModule]


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """A program with its derivative.

    Args:
        trace: from inputs and tangents to ``(outputs, gradients)``.
        primals: how many inputs the program has.
        outputs: how many outputs.
        differentiable: for each output, whether it has a tangent.
    """

    trace: Trace
    primals: int
    outputs: int
    differentiable: tuple[bool, ...]

    @property
    def tangents(self) -> int:
        """How many outputs have a tangent."""
        return sum(self.differentiable)


def joint_of(trace: Trace, rules: Mapping[Symbol, Any]) -> Joint:
    """Return a program, whose output is a flat tuple, with its derivative; inputs are named as PyTorch names them."""
    executors = resolve_executors(["torch"])

    def rule_of(bound: BoundSymbol) -> Any:
        own = rules.get(bound.symbol)
        if own is not None or isinstance(bound.symbol, OpaqueSymbol):
            return own  # an executor would keep autograd's graph of the call, which no graph of operations can hand on
        return grad_rule(bound, executors)

    made = grad_transform_on_trace(trace, rule_of=rule_of)
    count = len(trace.inputs)
    names = Names([p.name for b in made.bound_symbols for p in b.outputs] + [p.name for p in made.inputs])
    wanted = [f"primals_{i + 1}" for i in range(count)]
    wanted += [f"tangents_{i + 1}" for i in range(len(made.inputs) - count)]
    pairs = zip(made.inputs, wanted, strict=True)  # symbolic sizes keep their names, which are in shapes, too
    made = renamed(made, {p.name: p.renamed(names.take(n)) for p, n in pairs if isinstance(p, TensorProxy)})
    (tag,) = [t for t in made.tags if isinstance(t, TakesCotangents)]
    return Joint(made, count, len(trace.output), tag.flags)


def joint_module(joint: Joint, decompositions: Decompositions | None) -> GraphModule:
    """Return the graph from primals and tangents to outputs and gradients, in one flat list."""
    outputs, gradients = joint.trace.output
    return to_fx(joint.trace.replace(output=(*outputs, *gradients)), decompositions=decompositions)


def cut(joint: Joint, partition: Literal["fused", "save-all"], decompositions: Decompositions | None) -> Modules:
    """Return the forward and the backward graph of a joint program, cut by Thunder's own partition."""
    split = split_into_forward_and_backward(joint.trace, partition=partition)
    outputs, saved = split.forward.output
    forward = to_fx(split.forward.replace(output=(*outputs, *saved)), decompositions=decompositions)
    return forward, to_fx(tidy(split.backward), decompositions=decompositions)


def _cut_module(module: GraphModule, outputs: int, partition: Literal["fused", "save-all"]) -> Modules:
    trace = from_fx(module)
    tangents = len([p for p in trace.inputs if p.name.startswith("tangents")])
    primals = len(trace.inputs) - tangents
    values = tuple(trace.output)
    if len(values) != outputs + primals:
        raise FXError(
            f"a joint graph of {primals} primals and {outputs} outputs returns a gradient for each primal after them, "
            f"and this returns {len(values)} values"
        )
    flags = tuple([i < tangents for i in range(outputs)])
    tagged = trace.replace(output=(values[:outputs], values[outputs:]), tags=frozenset({TakesCotangents(flags)}))
    return cut(Joint(tagged, primals, outputs, flags), partition, None)


def default_partition(module: GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, **options: Any) -> Modules:
    """Cut a joint graph such that all that the derivative reads is saved.

    Args:
        module: with placeholders ``primals_1`` ... and ``tangents_1`` ...; returns outputs, then a gradient per primal.
        inputs: examples; the fake values of the graph are taken.
        num_fwd_outputs: how many of the results are outputs.
        options: of PyTorch's partitions, which make no difference here.

    Returns:
        The forward graph, which returns outputs and what is saved; the backward graph, which takes that and tangents.
    """
    return _cut_module(module, num_fwd_outputs, "save-all")


def min_cut_rematerialization_partition(
    module: GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, **options: Any
) -> Modules:
    """Cut a joint graph where least is saved, for compilers that fuse what is computed again with its readers.

    See :func:`default_partition`.
    """
    return _cut_module(module, num_fwd_outputs, "fused")


OWN: dict[Callable[..., Modules], Literal["fused", "save-all"]] = {
    default_partition: "save-all",
    min_cut_rematerialization_partition: "fused",
}
"""Partitions that need no graph of the joint program."""


def partitioned(joint: Joint, partition_fn: Callable[..., Modules], decompositions: Decompositions | None) -> Modules:
    """Return forward and backward graph as a partition cuts them: ours, or one of PyTorch's interface."""
    if partition_fn in OWN:
        return cut(joint, OWN[partition_fn], decompositions)
    module = joint_module(joint, decompositions)
    examples = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    inputs = (examples[: joint.primals], examples[joint.primals :])
    with torch._guards.tracing(torch._guards.TracingContext(fake_mode_of(examples))):
        return partition_fn(module, inputs, num_fwd_outputs=joint.outputs)


def fake_mode_of(values: Sequence[Any]) -> Any:
    """Return the mode of fake values."""
    return next((v.fake_mode for v in values if isinstance(v, torch._subclasses.FakeTensor)), None)


__all__ = [
    "Joint", "cut", "default_partition", "fake_mode_of", "joint_module", "joint_of",
    "min_cut_rematerialization_partition", "partitioned",
]  # fmt: skip
