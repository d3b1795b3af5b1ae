"""The time of a training step of a transformer, from its sizes and how it is laid out: formulas, no trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thunder_distributed.costs.machine import Machine, Network


@dataclass(frozen=True)
class Transformer:
    """Sizes of a model.

    Args:
        layers, width, heads, kv_heads, vocabulary: as usual.
        inner: width of the network of each layer.
        matrices: how many that network has: 2, or 3 if it is gated.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    matrices: int
    vocabulary: int

    @property
    def layer_weights(self) -> int:
        """Elements of the matrices of a layer."""
        head = self.width // self.heads
        attention = self.width * (2 * self.width + 2 * self.kv_heads * head)
        return attention + self.matrices * self.width * self.inner

    @property
    def weights(self) -> int:
        """Elements of all matrices, an embedding and an output matrix included."""
        return self.layers * self.layer_weights + 2 * self.vocabulary * self.width


@dataclass(frozen=True)
class Layout:
    """How a step is laid out over processes.

    Args:
        processes: all of them.
        tensor, pipeline, context: how many share a layer, the layers, a sequence. The others share the batch.
        chunks: how many pieces of the model each process of a pipeline has, for interleaved schedules.
        batch, micro: sequences in a step, and in one pass of one process.
        length: of a sequence, in tokens.
        again: what of the forward pass is computed again: ``"none"``, ``"attention"``, ``"some"`` (the attention and
            half of the products) or ``"all"``.
        kernels: which fitted efficiency applies.
        asynchronous: whether what a layer's processes send each other runs beside its products.
    """

    processes: int
    tensor: int
    pipeline: int
    chunks: int
    batch: int
    micro: int
    length: int
    again: str
    kernels: str
    context: int = 1
    asynchronous: bool = False

    @property
    def replicas(self) -> int:
        """How many share the batch."""
        return self.processes // (self.tensor * self.pipeline * self.context)


@dataclass(frozen=True)
class Estimate:
    """Seconds of a step, and of what they are made.

    Args:
        computing: products and what surrounds them.
        tensor: waiting within layers.
        sharding: waiting for parameters and gradients.
        bubble: waiting within the pipeline.
    """

    computing: float
    tensor: float
    sharding: float
    bubble: float

    @property
    def seconds(self) -> float:
        """All together."""
        return self.computing + self.tensor + self.sharding + self.bubble


def operations(model: Transformer, layout: Layout) -> tuple[float, float]:
    """Return the floating-point operations of a step in products with weights, and in causal attention."""
    tokens = layout.batch * layout.length
    weighted = 2.0 * tokens * (model.weights - model.vocabulary * model.width)
    attention = 2.0 * tokens * layout.length * model.width * model.layers  # half of the pairs count
    passes = {"none": (3.0, 3.0), "attention": (3.0, 4.0), "some": (3.5, 4.0), "all": (4.0, 4.0)}
    by_weights, by_attention = passes[layout.again]
    return by_weights * weighted, by_attention * attention


def touched(model: Transformer, layout: Layout) -> float:
    """Return the bytes of activations of one forward pass of a step that are more than products of matrices.

    Source:
        V. Korthikanti et al., Reducing activation recomputation in large transformer models (2022), equation 1: 34
        bytes for each element of a layer's input, and 5 for each attention score where these are kept in memory.
    """
    tokens = layout.batch * layout.length
    scores = 5.0 * model.heads * layout.length / model.width if layout.kernels in WITH_SCORES else 0.0
    return tokens * model.width * model.layers * (34.0 + scores)


AGAIN = {"none": 1.0, "attention": 1.15, "some": 1.2, "all": 4 / 3}
"""How many times the traffic of a forward and backward pass there is, with what is computed again."""

WITH_SCORES = ("megatron",)
"""Kernels that write attention scores to memory."""


def estimate(
    model: Transformer, layout: Layout, machine: Machine, network: Network, fitted: Mapping[str, float]
) -> Estimate:
    """Return how long a step takes.

    Args:
        model: its sizes.
        layout: how it is laid out.
        machine, network: cited constants.
        fitted: corrections: under the name of the kernels the fraction of the peak that they reach; ``"traffic"``,
            how often activations are read or written in a forward and backward pass; ``"exposed"``, which part of
            what a layer's processes send each other is waited for.
    """
    eight_bit = layout.kernels in ("float8", "fused8")
    peak = machine.flops["bfloat16"]
    weighted, attention = operations(model, layout)
    each = layout.processes * peak * fitted[layout.kernels]
    computing = (weighted + attention * (2.0 if eight_bit else 1.0)) / each
    computing += (
        fitted["traffic"] * touched(model, layout) * AGAIN[layout.again] / (layout.processes * machine.bandwidth)
    )
    layers = model.layers / layout.pipeline
    passes = layout.batch / (layout.replicas * layout.micro)
    activations = 2.0 * layout.micro * layout.length / layout.context * model.width
    rounds = 6 if layout.again == "all" else 4
    inside = rounds * network.seconds("all_reduce", activations, layout.tensor)
    exposed = fitted["exposed"] * (0.5 if layout.asynchronous else 1.0)
    tensor = layers * passes * inside * exposed
    gathered = 2.0 * model.weights / (layout.tensor * layout.pipeline)
    sharded = network.seconds("all_gather", gathered, layout.replicas) * 2
    sharded += network.seconds("reduce_scatter", gathered, layout.replicas)
    hidden = 0.9 * (computing + tensor)
    sharding = max(0.0, sharded - hidden) + sharded / max(layers, 1.0)
    bubble = (layout.pipeline - 1) / (passes * layout.chunks) * (computing + tensor)
    return Estimate(computing, tensor, sharding, bubble)


def transformer(entry: Mapping[str, Any]) -> Transformer:
    """Return the model that a table describes."""
    return Transformer(**entry)


__all__ = ["Estimate", "Layout", "Transformer", "estimate", "operations", "transformer"]
