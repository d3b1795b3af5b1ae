"""The demo on several processes: the same GPT, sharded, beside one process that has the whole batch.

torchrun --nproc-per-node 2 -m thunder_benchmarks.distributed [--steps N]
python -m thunder_benchmarks.demo --distributed 2
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table

from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.text import Text, python_documentation
from thunder_distributed import Axis, FSDPBucketingStrategy, FSDPType, axis_of, fsdp
from thunder_frontend import jit

TOLERANCE = 2e-4
"""How far, relatively, a loss may be from that of one process: float32 rounding, amplified by the steps before."""


def start(processes: int, words: Iterable[str]) -> int:
    """Run this module on several processes of this machine, and return the exit status.

    Args:
        processes: how many.
        words: its command line.
    """
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return subprocess.call([*torchrun, "-m", "thunder_benchmarks.distributed", *words], env=environment)


def losses_of_one_process(model: torch.nn.Module, text: Text, steps: int, batch: int, length: int) -> list[float]:
    """Train on whole batches in this process, and return the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        tokens, targets = text.batch(batch, length, generator)
        optimizer.zero_grad()
        _, loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class ShardedTraining:
    """Training of one process's share of each batch; ``losses`` are the means over all processes.

    Args:
        model: what ``fsdp`` returned.
        axis: over which it is sharded.
        text: what to learn.
        batch, length: size of a whole batch in passages, and of a passage in tokens.
    """

    def __init__(self, model: torch.nn.Module, axis: Axis, text: Text, batch: int, length: int) -> None:
        self.model, self.axis, self.text, self.size = model, axis, text, (batch, length)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.generator = torch.Generator().manual_seed(1)
        self.losses: list[float] = []
        self.times: list[float] = []
        self.exposed: list[float] = []
        self.sent: list[float] = []
        self.collectives = 0

    def step(self) -> None:
        """Train for one step."""
        tokens, targets = (t.chunk(self.axis.size)[self.axis.rank] for t in self.text.batch(*self.size, self.generator))
        ledger = self.axis.ledger
        start, waited, sent, calls = time.perf_counter(), ledger.waited, ledger.sent, ledger.calls
        self.optimizer.zero_grad()
        _, loss = self.model(tokens, targets)
        loss.backward()
        self.optimizer.step()
        self.times.append(time.perf_counter() - start)
        self.exposed.append(ledger.waited - waited)
        self.sent.append(ledger.sent - sent)
        self.collectives = ledger.calls - calls
        mean = loss.detach()
        dist.all_reduce(mean)
        self.losses.append(mean.item() / self.axis.size)

    def kept(self) -> int:
        """Return the bytes of parameters, gradients and optimizer state in this process."""
        found: list[torch.Tensor] = list(self.model.parameters())
        found += [p.grad for p in self.model.parameters() if p.grad is not None]
        found += [v for state in self.optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        return sum(t.numel() * t.element_size() for t in found)


def main() -> int:
    """Run the demonstration in one of several processes; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    try:
        return train(options.steps, options.batch)
    finally:
        dist.destroy_process_group()


def train(steps: int, batch: int) -> int:
    """Train sharded, and in the first process whole as well; print how they compare, and return the exit status."""
    torch.set_num_threads(1)
    axis = axis_of(None, "shard")
    if batch % axis.size:
        raise SystemExit(f"--batch {batch} is no multiple of the {axis.size} processes")
    text = python_documentation()
    config = GPTConfig(len(text.characters))
    torch.manual_seed(0)
    model = GPT(config)
    whole = sum(p.numel() * p.element_size() for p in model.parameters())
    expected = [0.0] * steps
    if axis.rank == 0:
        expected = losses_of_one_process(copy.deepcopy(model), text, steps, batch, config.block)
    dist.barrier()
    sharded = fsdp(
        jit(model),
        device_mesh=axis,
        sharding_strategy=FSDPType.ZERO3,
        bucketing_strategy=FSDPBucketingStrategy.BLOCK,
    )
    training = ShardedTraining(sharded, axis, text, batch, config.block)
    for _ in range(steps):
        training.step()
    kept: list[int] = [0] * axis.size
    dist.all_gather_object(kept, training.kept())
    worst = max(abs(a - b) / abs(b) for a, b in zip(training.losses, expected, strict=True)) if axis.rank == 0 else 0.0
    if axis.rank == 0:
        report(Console(), training, expected, kept, whole, worst)
    verdict = torch.tensor(float(worst > TOLERANCE or training.losses[-1] >= training.losses[0]))
    dist.broadcast(verdict, 0)
    return int(verdict.item())


def report(
    console: Console, training: ShardedTraining, expected: list[float], kept: list[int], whole: int, worst: float
) -> None:
    """Print the losses of both, memory, and what was communicated."""
    steps = len(expected)
    table = Table(title=f"A GPT sharded over {training.axis.size} processes")
    for column in ("step", "one process", "sharded"):
        table.add_column(column, justify="right")
    for i in sorted({0, 1, steps // 4, steps // 2, 3 * steps // 4, steps - 1} & set(range(steps))):
        table.add_row(str(i), f"{expected[i]:.5f}", f"{training.losses[i]:.5f}")
    console.print(table)
    console.print(f"Largest difference, step by step: {worst:.1e} (relative; {TOLERANCE:.0e} is allowed)")
    console.print(
        "Parameters, gradients and optimizer state per process: "
        + ", ".join(f"{n / 1e6:.2f} MB" for n in kept)
        + f"; one process keeps {4 * whole / 1e6:.2f} MB"
    )
    size = training.axis.size
    least = 3 * (size - 1) / size * whole
    step, exposed = statistics.median(training.times[1:] or training.times), statistics.median(training.exposed)
    console.print(
        f"Step: {step * 1e3:.1f} ms, of which {exposed * 1e3:.1f} ms is waiting for others; {training.collectives} "
        f"collectives send {training.sent[-1] / 1e6:.2f} MB from each process (3 (N-1)/N of the parameters: "
        f"{least / 1e6:.2f} MB)"
    )


if __name__ == "__main__":
    sys.exit(main())
