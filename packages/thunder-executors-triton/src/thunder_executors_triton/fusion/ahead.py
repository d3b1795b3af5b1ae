"""Compiling the kernels of a program's regions before it first runs, in threads: Triton's compiler lets them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import triton
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

from thunder_executors_triton.fusion.runner import Launch, Runner
from thunder_ir import Trace
from thunder_torch.foresee import foreseen

Jobs = dict[tuple[int, str], list[tuple[Launch, dict[str, Any]]]]


def compile_together(trace: Trace) -> None:
    """Compile what the first call of a program will launch; what fails is compiled again by its launch, which raises.

    Args:
        trace: a program, ready to run; where its regions are on GPUs, their sizes and strides are foreseen.
    """
    jobs: Jobs = {}
    for runner, inputs in foreseen(trace, Runner):
        if runner.device.type == "cuda":
            device = torch.cuda.current_device() if runner.device.index is None else runner.device.index
            for launch, values in runner.ahead(inputs):
                jobs.setdefault((device, launch.name), []).append((launch, values))
    if len(jobs) > 1:
        triton.runtime.driver.active.get_current_target()  # which makes the driver, in one thread
        with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
            # the launches of one kernel are compiled one after the other
            for done in [pool.submit(_compile, device, launches) for (device, _), launches in jobs.items()]:
                done.result()


def _compile(device: int, launches: list[tuple[Launch, dict[str, Any]]]) -> None:
    with torch.cuda.device(device):
        for launch, values in launches:
            try:
                launch.compile(values, device)
            except (CompilationError, OutOfResources, PTXASError):
                return


__all__ = ["compile_together"]
