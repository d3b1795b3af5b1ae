"""Training in parallel: Thunder beside PyTorch's own wrappers, in one launch, taking turns.

torchrun --nproc-per-node 2 -m thunder_benchmarks.parallel [--modes ddp,torch-ddp] [--json FILE]
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.machine import keep_freed_memory
from thunder_benchmarks.text import python_documentation
from thunder_distributed import Axis, FSDPBucketingStrategy, FSDPType, axis_of, ddp, fsdp
from thunder_frontend import jit


def torch_ddp(model: nn.Module, axis: Axis) -> nn.Module:
    """Wrap as PyTorch does."""
    return DistributedDataParallel(model)


def torch_ddp_compiled(model: nn.Module, axis: Axis) -> nn.Module:
    """Let PyTorch's wrapper synchronise what Thunder compiled: the same kernels."""
    return DistributedDataParallel(jit(model))


def torch_fsdp(model: nn.Module, axis: Axis) -> nn.Module:
    """Shard each block where there are some, and the rest, as PyTorch's guide does."""
    mesh = init_device_mesh("cpu", (axis.size,))
    for block in next((m for m in model.modules() if isinstance(m, nn.ModuleList)), ()):
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)  # type: ignore[return-value]


def ours_ddp(model: nn.Module, axis: Axis) -> nn.Module:
    """Replicate with Thunder."""
    return ddp(model, process_group=axis)


def plain_ddp(model: nn.Module, axis: Axis) -> nn.Module:
    """Replicate with Thunder, on the kernels that eager PyTorch runs."""
    return ours_ddp(jit(model, executors=[]), axis)


def plain_fsdp(model: nn.Module, axis: Axis) -> nn.Module:
    """Shard with Thunder, on the kernels that eager PyTorch runs."""
    return ours_fsdp(jit(model, executors=[]), axis)


def ours_fsdp(model: nn.Module, axis: Axis) -> nn.Module:
    """Shard with Thunder, gathered again for the backward pass, by blocks."""
    return fsdp(
        model,
        device_mesh=axis,
        sharding_strategy=FSDPType.ZERO3,
        bucketing_strategy=FSDPBucketingStrategy.BLOCK,
    )


MODES: dict[str, Callable[[nn.Module, Axis], nn.Module]] = {
    "torch-ddp": torch_ddp,
    "torch-ddp-of-thunder": torch_ddp_compiled,
    "ddp": ours_ddp,
    "ddp-on-torch": plain_ddp,
    "torch-fully-shard": torch_fsdp,
    "fsdp": ours_fsdp,
    "fsdp-on-torch": plain_fsdp,
}


class Run:
    """One way of training, with its losses and times.

    Args:
        name: of the mode.
        model: whole; changed.
        axis: over which it is trained.
    """

    def __init__(self, name: str, model: nn.Module, axis: Axis) -> None:
        self.name, self.axis = name, axis
        self.module = MODES[name](model, axis)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3)
        self.losses: list[float] = []
        self.times: list[float] = []

    def step(self, tokens: torch.Tensor, targets: torch.Tensor) -> None:
        """Train for one step, and note the mean loss."""
        dist.barrier()
        start = time.perf_counter()
        self.optimizer.zero_grad()
        _, loss = self.module(tokens, targets)
        loss.backward()
        self.optimizer.step()
        dist.barrier()
        self.times.append(time.perf_counter() - start)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        self.losses.append(mean.item() / self.axis.size)


def measured(options: argparse.Namespace, axis: Axis) -> dict[str, Any]:
    """Run all modes in turns, and return what was found; the models are gone afterwards."""
    text = python_documentation()
    torch.manual_seed(0)
    model = GPT(GPTConfig(len(text.characters), layers=options.layers, width=options.width))
    runs = [Run(name, copy.deepcopy(model), axis) for name in options.modes.split(",")]
    whole = sum(p.numel() * p.element_size() for p in model.parameters())
    del model
    generator = torch.Generator().manual_seed(1)
    for number in range(options.steps):
        batch = text.batch(options.batch, 64, generator)
        tokens, targets = (t.chunk(axis.size)[axis.rank].contiguous() for t in batch)
        for run in runs if number % 2 else reversed(runs):
            run.step(tokens, targets)
    return {
        run.name: {
            "losses": run.losses, "step": statistics.median(run.times[2:] or run.times), "first": run.times[0],
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "parameters": whole,
        }
        for run in runs
    }  # fmt: skip


def main() -> int:
    """Measure, and print or write what was found; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    keep_freed_memory()
    axis = axis_of(None, "processes")
    found = measured(options, axis)
    if axis.rank == 0:
        if options.json is not None:
            options.json.write_text(json.dumps(found), encoding="utf-8")
        else:
            for name, told in found.items():
                losses = told["losses"]
                print(f"{name:24} {told['step'] * 1e3:9.1f} ms a step, losses {losses[0]:.5f} {losses[-1]:.5f}")
    gc.collect()  # what DDP keeps in a cycle would end the group's threads with the process, and may wait for ever
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
