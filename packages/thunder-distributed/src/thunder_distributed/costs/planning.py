"""Which layout of a training step is fastest, of those that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from thunder_distributed.costs.machine import machine as known_machine
from thunder_distributed.costs.transformers import Estimate, Layout, Transformer, estimate

PER_WEIGHT = 16.0
"""Bytes of a parameter in 16 bits, its gradient, and AdamW's state with a copy in 32 bits."""

KEPT = {"none": 34.0, "attention": 34.0, "some": 22.0, "all": 2.0}
"""Bytes kept for the backward pass for each element of a layer's input, by what is computed again."""


@dataclass(frozen=True)
class Planned:
    """A layout that fits.

    Args:
        layout: of a step.
        estimate: its time.
        bytes: memory of each process.
    """

    layout: Layout
    estimate: Estimate
    bytes: float

    def __str__(self) -> str:
        at = self.layout
        return (
            f"{self.estimate.seconds:8.2f} s {self.bytes / 2**30:6.1f} GiB  tensor {at.tensor}, "
            f"pipeline {at.pipeline}, data {at.replicas}, {at.micro} at a time, again: {at.again}"
        )


def plan(
    model: Transformer,
    processes: int,
    *,
    batch: int,
    length: int,
    memory: float,
    machine: str = "h100",
    kernels: str = "compiled",
    fitted: Mapping[str, float],
) -> list[Planned]:
    """Return the layouts of a training step that fit, the fastest first.

    Args:
        model: its sizes.
        processes: how many there are; the batch is sharded over those that tensor and pipeline parallelism leave.
        batch, length: sequences in a step, and tokens in each.
        memory: bytes of each process.
        machine: its name; see :func:`known_machines`.
        kernels: which efficiency applies.
        fitted: corrections, as :func:`thunder_distributed.costs.validation.validate` finds them.

    Raises:
        ValueError: nothing fits.
    """
    found = []
    for layout in _layouts(model, processes, batch, length, kernels):
        needed = bytes_of(model, layout)
        if needed <= memory:
            found.append(Planned(layout, estimate(model, layout, *known_machine(machine), fitted), needed))
    if not found:
        raise ValueError(
            f"no layout of {model.weights / 1e9:.1f} billion parameters over {processes} processes fits into "
            f"{memory / 2**30:.0f} GiB each: take more processes, or a smaller batch"
        )
    return sorted(found, key=lambda p: p.estimate.seconds)


def bytes_of(model: Transformer, layout: Layout) -> float:
    """Return the memory of each process: its share of the state, what is gathered, and what is kept for backward."""
    share = layout.tensor * layout.pipeline
    state = PER_WEIGHT * model.weights / (share * layout.replicas)
    gathered = 2 * 2.0 * model.layer_weights / layout.tensor
    layers = model.layers / layout.pipeline
    under_way = min(layout.pipeline, layout.batch / (layout.replicas * layout.micro))
    each = layout.micro * layout.length * model.width / layout.tensor
    logits = 4.0 * 2 * layout.micro * layout.length * model.vocabulary / layout.tensor
    return state + gathered + layers * under_way * each * KEPT[layout.again] + 34.0 * each + logits


def _layouts(model: Transformer, processes: int, batch: int, length: int, kernels: str) -> Iterator[Layout]:
    for tensor in (1, 2, 4, 8):
        for pipeline in (1, 2, 4, 8, 16):
            replicas, rest = divmod(processes, tensor * pipeline)
            if rest or not replicas or model.layers % pipeline or model.kv_heads % tensor or batch % replicas:
                continue
            for micro in (1, 2, 4, 8, 16):
                if batch // replicas % micro:
                    continue
                for again in ("none", "some", "all"):
                    yield Layout(processes, tensor, pipeline, 1, batch, micro, length, again, kernels)


__all__ = ["Planned", "bytes_of", "plan"]
