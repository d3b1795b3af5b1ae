"""The library on this machine: its devices, its handles, and runs of plans on tensors of PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import torch

from thunder_executors_cudnn.plans import Answer, Plans, Refused, Target
from thunder_executors_cudnn.problems import Problem

ALIGNED = 16
"""Bytes: plans read tensors that begin at a multiple of them, and refuse others when they run."""


class GraphError(RuntimeError):
    """The library makes no plan for what a program asks it for when it runs; the message says why."""


class _Handles(threading.local):
    """The library's handles of a thread, one for each device."""

    def __init__(self) -> None:
        self.of_device: dict[int, Any] = {}


class Machine:
    """The devices of this machine, and what the library plans for them."""

    types = ("cuda",)

    def __init__(self) -> None:
        self._handles = _Handles()

    @cached_property
    def plans(self) -> Plans:
        """The plans of this process; the first use imports the frontend."""
        return Plans(import_module("cudnn"))

    def target(self, device: torch.device) -> Target:
        """Return a device as plans know it."""
        return _target_of(_index_of(device))

    @contextmanager
    def handle(self, device: torch.device) -> Iterator[Any]:
        """Make a device the current one; give this thread's handle for it, which queues on PyTorch's current stream."""
        index, handles = _index_of(device), self._handles.of_device
        with torch.cuda.device(index):
            if index not in handles:
                handles[index] = self.plans.cudnn.create_handle()
            stream = torch.cuda.current_stream(index).cuda_stream
            self.plans.cudnn.set_stream(handle=handles[index], stream=stream)
            yield handles[index]

    def answer(self, problem: Problem, device: torch.device) -> Answer:
        """Return the plan of a problem on a device, or that there is none."""
        with self.handle(device) as handle:
            return self.plans.of(problem, self.target(device), handle)

    def run(self, problem: Problem, tensors: dict[str, torch.Tensor], device: torch.device) -> None:
        """Compute ``problem`` into its outputs. The workspace is PyTorch's, which reuses it in the stream's order.

        Args:
            problem: what to compute.
            tensors: inputs and outputs by name, laid out as it says; numbers of the host as tensors of the CPU.
            device: where the others are.

        Raises:
            GraphError: the library makes no plan for it.
        """
        with self.handle(device) as handle:
            found = self.plans.of(problem, self.target(device), handle)
            if isinstance(found, Refused):
                raise GraphError(f"cuDNN makes no plan for {problem}: {found.reason}")
            workspace = torch.empty(found.workspace or 0, dtype=torch.uint8, device=device)
            given = {found.tensors[name]: aligned(tensors[name]) for name in found.tensors}
            found.graph.execute(given, workspace, handle=handle)


def aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Return an input where plans read it: a copy with the same strides, if it begins amid another tensor's elements.

    Outputs are memory of their own, and so lie well.
    """
    if tensor.data_ptr() % ALIGNED == 0:
        return tensor
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _index_of(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


@cache
def _target_of(index: int) -> Target:
    found = torch.cuda.get_device_properties(index)
    return Target(found.major * 10 + found.minor, found.multi_processor_count, index)


machine = Machine()

__all__ = ["GraphError", "Machine", "aligned", "machine"]
