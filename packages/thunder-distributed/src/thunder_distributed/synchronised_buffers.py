"""Buffers that training changes, such as the statistics of a batch norm: those of the first process, in all.

What a program writes to buffers is sent by the first process at its end, in the place of what the others would write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from thunder_distributed import collectives
from thunder_distributed.axes import Axis
from thunder_distributed.executor import executor
from thunder_distributed.modules import PARALLEL
from thunder_distributed.prim import AT_THE_END, DIST_PRIMS, Named
from thunder_frontend import Transform
from thunder_guards.sources import Source
from thunder_guards.traces import environment_of, source_of, tensor_writes
from thunder_ir import Builder, Symbol, TensorProxy, Trace, recording
from thunder_prims import strict

synchronise_buffers = Symbol(
    "synchronise_buffers", DIST_PRIMS, language=strict,
    meta=lambda buffers, axis, values, numbers: tuple([v.like() for v in values]),
    tags=AT_THE_END,
    doc="What the first process has of buffers: of those that the program writes as results, of others in place.",
)  # fmt: skip


@executor.implements(synchronise_buffers)
@torch.no_grad()
def buffers_of_first(
    buffers: Named, axis: Axis, values: Sequence[torch.Tensor], numbers: Sequence[int]
) -> tuple[torch.Tensor, ...]:
    """Return values as the first process of an axis has them.

    Args:
        buffers: what is sent, and the model.
        axis: over which processes.
        values: what the program writes.
        numbers: to which of the buffers. Others are sent as they are, and are written to in the other processes.
    """
    written = dict(zip(numbers, values, strict=True))
    sent = [written[i] if i in written else buffers.held.get_buffer(n) for i, n in enumerate(buffers.names)]
    found: dict[int, torch.Tensor] = {}
    for group in _alike(sent):
        flat = torch.cat([sent[i].reshape(-1) for i in group])
        parts = torch.split(collectives.broadcast(flat, axis).wait(), [sent[i].numel() for i in group])
        found.update({i: part.view(sent[i].shape) for i, part in zip(group, parts, strict=True)})
    for i in found.keys() - written.keys():
        sent[i].copy_(found[i])
    return tuple([found[i] for i in numbers])


def _alike(tensors: Sequence[torch.Tensor]) -> Iterator[list[int]]:
    """Yield the places of tensors that are sent together."""
    groups: dict[Any, list[int]] = {}
    for i, tensor in enumerate(tensors):
        groups.setdefault((tensor.dtype, tensor.device), []).append(i)
    yield from groups.values()


class SynchroniseBuffers(Transform):
    """Let programs that train end with the first process's buffers.

    Args:
        axis: over which processes.
        every: whether all buffers are sent, whichever a program writes, as processes may run different programs.
    """

    def __init__(self, axis: Axis, every: bool) -> None:
        self.axis, self.every = axis, every

    def transform_traces_pre_prologue(
        self, prologue_trace: Trace, computation_trace: Trace, epilogue_trace: Trace, **kwargs: Any
    ) -> tuple[Trace, Trace, Trace]:
        """Let the computation end with the call that sends what the epilogue writes to buffers."""
        model = _model(prologue_trace)
        trains = environment_of(prologue_trace).grad_enabled
        if model is not None and trains and model.__dict__[PARALLEL].synchronises:
            computation_trace = self._synchronised(model, prologue_trace, computation_trace, epilogue_trace)
        return prologue_trace, computation_trace, epilogue_trace

    def _synchronised(self, model: torch.nn.Module, prologue: Trace, computation: Trace, epilogue: Trace) -> Trace:
        names = {id(buffer): name for name, buffer in model.named_buffers()}
        written: dict[str, TensorProxy] = {}
        for target, value in tensor_writes(epilogue):
            source = source_of(prologue, target)
            name = None if source.is_of_the_call() else names.get(id(source.evaluate({})))
            if name is not None and not value.requires_grad:
                written[name] = value
        sent = tuple(names.values() if self.every else written)
        if not sent:
            return computation
        builder = Builder(computation.names())
        local: dict[str, Any] = {v.name: v.renamed(builder.names.fresh("t")) for v in written.values()}
        with recording(builder):
            numbers = tuple([sent.index(name) for name in written])
            values = tuple([local[v.name] for v in written.values()])
            synchronise_buffers(Named(sent, model), self.axis, values, numbers)
        (call,) = builder.bound_symbols
        calls = [bound.renamed(local) for bound in computation.bound_symbols]
        return computation.replace(bound_symbols=(*calls, call.replace(output=tuple(written.values()))))


def _model(prologue: Trace) -> torch.nn.Module | None:
    """Return the model that a program is a call of, if it is trained in parallel."""
    for proxy in prologue.outputs:
        source: Source | None = source_of(prologue, proxy)
        while source is not None and source.base is not None:
            source = source.base
        root = None if source is None or not source.is_held else source.held
        if isinstance(root, torch.nn.Module) and PARALLEL in root.__dict__:
            return root
    return None


__all__ = ["SynchroniseBuffers", "buffers_of_first", "synchronise_buffers"]
