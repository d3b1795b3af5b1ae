"""What records graphs: of CUDA, or, in tests, a stand-in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch


class CaptureError(RuntimeError):
    """A run cannot be recorded: it waits for the device, or does what a graph does not hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """What was recorded.

    Args:
        replay: computes the outputs again, from the memory of the inputs into that of the outputs.
        outputs: of the run; their memory is the graph's, and each replay writes to it.
    """

    replay: Callable[[], None]
    outputs: tuple[torch.Tensor, ...]


class Recorder(Protocol):
    """Records runs of calls as graphs.

    Graphs of one queue share memory: what one of them computed lasts until another one is replayed. So whoever replays
    holds ``lock`` until the results are copied out.
    """

    device_type: str
    lock: threading.Lock

    def queue(self) -> Hashable:
        """Return what the calls of this thread are queued on; a graph is replayed on the one that it was made for."""

    def warm_up(self, function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[Any]) -> Sequence[torch.Tensor]:
        """Run ``function`` as it is to be run before it is recorded; return what it returns."""

    def record(self, function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[Any]) -> Recording:
        """Record ``function``, which reads the very memory of ``inputs`` whenever that is replayed.

        Raises:
            CaptureError: it does what cannot be recorded.
        """


class CudaRecorder:
    """Records graphs of CUDA.

    Those of one stream have one pool of memory, which PyTorch's allocator gives, and gets back with them: there, one
    graph follows the other. Those of different streams may run at the same time, and share none.
    """

    device_type = "cuda"

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._pools: dict[Hashable, Any] = {}

    def queue(self) -> Hashable:
        stream = torch.cuda.current_stream()
        return (stream.device_index, stream.cuda_stream)

    def warm_up(self, function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[Any]) -> Sequence[torch.Tensor]:
        """Run on a stream of its own, as libraries make their handles and workspaces for the one that records."""
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with torch.cuda.stream(side):
            outputs = function(*inputs)
        current.wait_stream(side)
        for tensor in outputs:
            if tensor.is_cuda:  # attention leaves the state of its random numbers on the CPU where nothing is recorded
                tensor.record_stream(current)
        return outputs

    def record(self, function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[Any]) -> Recording:
        queue = self.queue()
        if queue not in self._pools:
            self._pools[queue] = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        try:
            # only this thread is kept from what cannot be recorded: others may go on allocating
            with torch.cuda.graph(graph, pool=self._pools[queue], capture_error_mode="thread_local"):
                outputs = tuple(function(*inputs))
        except RuntimeError as error:
            raise CaptureError(str(error)) from error
        return Recording(graph.replay, outputs)


__all__ = ["CaptureError", "CudaRecorder", "Recorder", "Recording"]
