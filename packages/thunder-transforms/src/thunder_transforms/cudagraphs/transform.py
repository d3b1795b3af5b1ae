"""The transform: which calls of a finished program become graphs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from thunder_executors import FusionExecutor, Region, calls_of, free_after_last_use, join_runs
from thunder_frontend import Transform
from thunder_ir import BoundSymbol, NumberProxy, OpTags, TensorProxy, Trace, flat_proxies
from thunder_ir.passes import has_effect, leading_to, trace_pass
from thunder_transforms.cudagraphs.memory import Loans
from thunder_transforms.cudagraphs.recorder import CudaRecorder, Recorder
from thunder_transforms.cudagraphs.run import GraphRun

FROM_THE_HOST = (torch.tensor, torch.as_tensor)
WAITS = frozenset({OpTags.DEVICE_SYNC, OpTags.COLLECTIVE})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A call that is in no graph.

    Args:
        operation: its name.
        reason: why.
        location: where in the user's program it came from, if known.
    """

    operation: str
    reason: str
    location: Any = None


class CUDAGraphTransform(Transform):
    """Run the longest runs of calls that can be recorded as CUDA graphs, in forward and backward programs.

    A run is recorded after some calls with inputs of one kind, and replayed from then on. Inputs that come at the same
    address each time, as parameters do, are read where they are; others are copied. What a program returns is copied
    out; what its later runs and its backward part read stays where it is, until these have read it: if the program is
    called again before, it runs without graphs.

    Args:
        warm_ups: calls of one kind of inputs before a run is recorded.
        most: graphs of one run that are kept at a time, as many kinds of inputs as there may be.
        smallest: number of calls below which a run is left as it is.
        recorder: what records; graphs of CUDA if not given.

    ``left_out`` says which calls of the programs are in no graph, and why; ``runs`` are the others.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import CUDAGraphTransform
        >>> graphs = CUDAGraphTransform()
        >>> _ = jit(lambda x: (x @ x).tanh(), executors=["torch"], transforms=[graphs])(torch.ones(2, 2))
        >>> graphs.left_out[0].operation, graphs.left_out[0].reason
        ('matmul', 'a tensor is on cpu, and graphs are of cuda')
    """

    def __init__(self, warm_ups: int = 2, most: int = 16, smallest: int = 2, recorder: Recorder | None = None) -> None:
        self.warm_ups = warm_ups
        self.most = most
        self.smallest = smallest
        self.recorder: Recorder = CudaRecorder() if recorder is None else recorder
        self.left_out: list[LeftOut] = []
        self.runs: list[GraphRun] = []
        self.loans = Loans()

    def transform_trace_post_optimization(self, computation_trace: Trace, **kwargs: Any) -> Trace:
        return record_runs(computation_trace, self)

    def joined(self, region: Region, number: int, kept: Container[str] = ()) -> BoundSymbol:
        """Return the call that runs a region as a graph; ``kept`` names what the caller of the program may have."""
        name = f"cuda_graph_{number}"
        function = free_after_last_use(region.trace(name)).python_callable()
        lends = [i for i, p in enumerate(region.outputs) if p.name not in kept]
        run = GraphRun(function, self.recorder, self.warm_ups, self.most, lends, self.loans)
        self.runs.append(run)
        return _EXECUTOR.fused(region, name, run)


_EXECUTOR = FusionExecutor("cudagraphs", default=False, checks=False)


@trace_pass
def record_runs(trace: Trace, transform: CUDAGraphTransform) -> Trace:
    """Let the longest runs of calls that can be recorded be graphs.

    Args:
        trace: a program ready to run.
        transform: which says how, and keeps what is made.
    """
    calls = calls_of(trace)
    reasons = [why_not_captured(b, transform.recorder.device_type) for b in calls]
    transform.left_out += [
        LeftOut(b.symbol.name, reason, b.location) for b, reason in zip(calls, reasons, strict=True) if reason
    ]
    others = [b for b, reason in zip(calls, reasons, strict=True) if reason]
    kept = leading_to(others, [p.name for p in flat_proxies(_returned(trace))])[1]
    counts = [int(not reason) for reason in reasons]
    return join_runs(trace, calls, counts, transform.smallest, partial(transform.joined, kept=kept))


def _returned(trace: Trace) -> Any:
    """Return what the caller of a program gets: of a forward program not what is saved for the backward one."""
    return trace.output[0] if trace.name.endswith("_forward") else trace.output


def why_not_captured(bound: BoundSymbol, device_type: str = "cuda") -> str:
    """Return why a call of a finished program cannot be in a graph; ``""`` if it can.

    Args:
        bound: the call.
        device_type: of the device whose graphs these are.
    """
    symbol = bound.symbol
    if symbol.implementation is None:
        return "it is no call of an executor"
    if not WAITS.isdisjoint(symbol.tags | bound.tags):
        return "it waits for the device, or for other processes"
    if bound.has_tag(OpTags.HOST_STATE):  # kernels read it where a run that is recorded leaves it, or where others do
        return "it hands on the state of its random numbers, which a graph leaves elsewhere than a call without one"
    if has_effect(bound) or "out" in bound.kwargs:
        return "it writes to memory that is not its own"
    if not bound.outputs or not all([isinstance(p, TensorProxy) for p in bound.outputs]):
        return "its results are no tensors"
    for p in (*bound.inputs, *bound.outputs):
        if isinstance(p, TensorProxy):
            if p.device.type != device_type:
                return f"a tensor is on {p.device}, and graphs are of {device_type}"
            if any([getattr(d, "unknown", None) is not None for d in p.shape]):
                return "a size is known only when the program runs"
        elif not isinstance(p, NumberProxy) or p.unknown is not None:
            return f"{p.name} is neither a tensor nor a number that is known before"
    return "it copies from the host" if symbol.implementation in FROM_THE_HOST else ""


__all__ = ["CUDAGraphTransform", "LeftOut", "record_runs", "why_not_captured"]
