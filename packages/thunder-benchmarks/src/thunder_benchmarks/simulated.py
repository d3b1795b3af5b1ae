"""Training steps of real processes beside what the simulator says of them, from what this machine was measured to do.

torchrun --nproc-per-node 2 -m thunder_benchmarks.simulated [--ways ddp fsdp-zero3] [--set layers=8 width=256]

Measured are for how long each call of a program needs a core; how long collectives of the sizes that occur take while
nothing is computed, and while all processes compute; and what a step takes around its programs where nothing is
communicated, which is added. All processes measure at once, as they share the cores. The optimizer is left out.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from thunder_benchmarks.tables import markdown
from thunder_benchmarks.targets import TARGETS, Job
from thunder_benchmarks.targets.__main__ import setting
from thunder_distributed import Axis, FSDPBucketingStrategy, FSDPType, axis_of, ddp, fsdp
from thunder_distributed.costs import Machine, Timeline, measure_network, measure_operations, simulate, sizes_in
from thunder_frontend import jit, last_backward_traces, last_traces
from thunder_ir import Trace


def sharded(strategy: FSDPType) -> Callable[[nn.Module, Axis], nn.Module]:
    """Return what shards a module by blocks."""
    return lambda model, axis: fsdp(
        model, device_mesh=axis, sharding_strategy=strategy, bucketing_strategy=FSDPBucketingStrategy.BLOCK
    )


WAYS: dict[str, Callable[[nn.Module, Axis], nn.Module]] = {
    "ddp": lambda model, axis: ddp(model, process_group=axis),
    "fsdp-zero2": sharded(FSDPType.ZERO2),
    "fsdp-zero3": sharded(FSDPType.ZERO3),
}


class Steps:
    """Forward and backward passes of a compiled module.

    Args:
        job: what is called; its module is replaced.
        module: in its place.
    """

    def __init__(self, job: Job, module: Any) -> None:
        self.job, self.module = job, module
        self.times: list[float] = []

    def step(self) -> None:
        """Make one, begun by all processes at once and over when the last has ended, and note its time."""
        dist.barrier()
        start = time.perf_counter()
        torch.autograd.backward(self.job.loss(self.module(*self.job.args, **self.job.kwargs)))
        dist.barrier()
        self.times.append(time.perf_counter() - start)
        self.module.zero_grad()

    def seconds(self) -> float:
        """The median of the steps but for the first three, in which all is compiled."""
        return statistics.median(self.times[3:])

    def programs(self) -> tuple[Trace, Trace]:
        """The forward and the backward program."""
        return last_traces(self.module)[-1], last_backward_traces(self.module)[-1]


def predicted(steps: Steps, axis: Axis, device: Machine, seconds: float) -> Timeline:
    """Return the timeline of a step, from measurements of its parts, for so long each; all processes call it."""
    programs = steps.programs()
    dist.barrier()
    costs = measure_operations(programs, communicates=True)
    sizes = {kind: sorted(found) for kind, found in sizes_in(programs).items()}
    network = measure_network(axis, sizes, device.pace(), seconds)
    return simulate(programs, device, network, lambda bound: costs.get(id(bound), 0.0))


def measured(
    ways: Sequence[str], sizes: dict[str, Any], rounds: int, axis: Axis, seconds: float = 0.7
) -> list[dict[str, Any]]:
    """Return, for each way, seconds of a step as it is and as it is simulated.

    Args:
        ways: of training, by their names.
        sizes: of the model.
        rounds: how many steps are timed.
        axis: over which processes.
        seconds: for how long each collective is measured.
    """
    torch.manual_seed(0)
    job = TARGETS["nanogpt"].job(**sizes)
    alone = Steps(job, jit(copy.deepcopy(job.target), executors=["torch"]))
    runs = {way: Steps(job, WAYS[way](jit(copy.deepcopy(job.target), executors=["torch"]), axis)) for way in ways}
    for _ in range(rounds + 3):
        for steps in (alone, *runs.values()):
            steps.step()
    device = Machine("here", {"default": 1.0}, 1.0, 0.0, cores=len(os.sched_getaffinity(0)) / axis.size)
    around = alone.seconds() - predicted(alone, axis, device, seconds).seconds
    rows = []
    for way, steps in runs.items():
        timeline = predicted(steps, axis, device, seconds)
        rows.append({
            "way": way, "seconds": steps.seconds(), "simulated": timeline.seconds + around,
            "computing": timeline.spent("compute"), "communicating": timeline.spent("communicate"),
            "exposed": timeline.exposed, "around": around,
        })  # fmt: skip
    return rows


def table(rows: Sequence[dict[str, Any]], processes: int) -> str:
    """Return what was found, as Markdown."""
    lines = [[
        "processes", "way", "step, ms", "simulated, ms", "off by", "computing, ms", "communicating, ms", "exposed, ms",
    ]]  # fmt: skip
    for row in rows:
        off = row["simulated"] / row["seconds"] - 1
        both = [f"{row[name] * 1e3:.1f}" for name in ("seconds", "simulated")]
        parts = [f"{row[name] * 1e3:.1f}" for name in ("computing", "communicating", "exposed")]
        lines.append([str(processes), row["way"], *both, f"{off:+.0%}", *parts])
    return markdown(lines)


def main() -> int:
    """Measure, and print or write what was found; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--set", nargs="+", type=setting, default=[("layers", 8), ("width", 256), ("heads", 8)])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.7, help="for which each collective is measured")
    parser.add_argument("--json", type=Path, help="where rows are written, too")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    axis = axis_of(None, "processes")
    rows = measured(options.ways, dict(options.set), options.rounds, axis, options.seconds)
    if axis.rank == 0:
        print(table(rows, axis.size), end="")
        if options.json is not None:
            options.json.write_text(json.dumps(rows), encoding="utf-8")
    gc.collect()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
