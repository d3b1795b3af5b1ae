"""The device that the parts of `tools/gpu.py` run on: a GPU, or the CPU in its place where they are rehearsed."""

from __future__ import annotations

import gc
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from thunder_executors import get_all_executors
from thunder_transforms import CUDAGraphTransform

FOR_GPUS = ("cudnn", "nvfuser", "apex", "triton", "triton_fusion", "transformer_engine", "inductor")
RECORDER = Path(__file__).resolve().parent.parent / "packages" / "thunder-transforms" / "tests" / "graph_recorder.py"


@dataclass(frozen=True)
class Check:
    """One line of a report.

    Args:
        name: of it.
        run: does it; returns what was found, raises an ``AssertionError`` if it is wrong, ``NotHere`` if it needs
            what is not installed.
        limit: seconds that it may take.
    """

    name: str
    run: Callable[[], str]
    limit: float = 120.0


class NotHere(Exception):
    """What a check needs is not installed; the message says what."""


class Machine:
    """A GPU."""

    rehearsed = False
    patience = 1.0  # how many times as long as its limit a check may take

    def __init__(self) -> None:
        self.device = torch.device("cuda", 0)

    def able(self) -> list[str]:
        """Return the names of executors for GPUs that can run here; PyTorch's is first."""
        names = [e.name for e in get_all_executors() if e.name in FOR_GPUS and e.missing() is None]
        return ["torch", *names]

    def graphs(self) -> CUDAGraphTransform:
        """Return the transform that records programs as graphs."""
        return CUDAGraphTransform()

    def compiled(self, model: Any, mode: str) -> Any:
        """Return a model by ``torch.compile``."""
        return torch.compile(model, mode=mode)

    def clean(self) -> None:
        """Free what earlier checks left."""
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def seconds(self, step: Callable[[], Any]) -> float:
        """Return how long a step takes, until the device has done it."""
        torch.cuda.synchronize()
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        return time.perf_counter() - began

    def held(self) -> str:
        """Return the most memory that was held since it was cleaned."""
        return f"{torch.cuda.max_memory_allocated() >> 20} MiB"

    def kernels(self, step: Callable[[], Any]) -> str:
        """Return how long the kernels of a step run: what is left of its time, the device waits for Python."""
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            step()
            torch.cuda.synchronize()
        rows = [e for e in found.key_averages() if e.device_type is DeviceType.CUDA and not e.is_user_annotation]
        return f"kernels {sum(e.self_device_time_total for e in rows) / 1e3:.3f} ms"


class Rehearsal(Machine):
    """The CPU, asked for all that a GPU is asked for: graphs are recorded by the tests' stand-in for them."""

    rehearsed = True
    patience = 10.0  # as it shares its cores with whoever else is there

    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def able(self) -> list[str]:
        return [name for name in super().able() if name != "inductor"]  # which would call a C++ compiler for long

    def graphs(self) -> CUDAGraphTransform:
        spec = importlib.util.spec_from_file_location("graph_recorder", RECORDER)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return CUDAGraphTransform(recorder=module.StandInRecorder())

    def compiled(self, model: Any, mode: str) -> Any:
        return torch.compile(model, backend="eager")

    def clean(self) -> None:
        torch._dynamo.reset()
        gc.collect()

    def seconds(self, step: Callable[[], Any]) -> float:
        began = time.perf_counter()
        step()
        return time.perf_counter() - began

    def held(self) -> str:
        return "rehearsed"

    def kernels(self, step: Callable[[], Any]) -> str:
        step()
        return "rehearsed"
