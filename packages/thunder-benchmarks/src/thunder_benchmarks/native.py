"""What calls cost where native code makes them: beside eager, and beside the same programs as Python text.

python -m thunder_benchmarks.native                  CPU time of a call, medians; and what several threads come to
python -m thunder_benchmarks.native --inductor       with torch.compile, which takes minutes to compile
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import thunder
from thunder_benchmarks.gpt import GPT, GPTConfig

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """Something to call.

    Args:
        name: for the table.
        target: function or module.
        args: of each call.
        train: whether the sum of the result is differentiated; if not, autograd is off.
    """

    name: str
    target: Callable[..., Any]
    args: tuple[Any, ...]
    train: bool = False

    def call(self, target: Callable[..., Any]) -> Call:
        """Return one call of ``target``, which is this case's or what a compiler made of it."""
        if self.train:
            return lambda: target(*self.args).sum().backward()

        def forward() -> Any:
            with torch.no_grad():
                return target(*self.args)

        return forward


class Unrolled(nn.Module):
    """An LSTM whose steps are written out in Python."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(size, 4 * size)
        self.of_state = nn.Linear(size, 4 * size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last state, shape ``(batch, size)``, of ``x``, shape ``(steps, batch, size)``."""
        hidden = state = torch.zeros_like(x[0])
        for t in range(x.shape[0]):
            i, f, g, o = (self.of_input(x[t]) + self.of_state(hidden)).chunk(4, 1)
            state = torch.sigmoid(f) * state + torch.sigmoid(i) * torch.tanh(g)
            hidden = torch.sigmoid(o) * torch.tanh(state)
        return hidden


def two_operations(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``(a + b) * a``."""
    return (a + b) * a


def cases() -> list[Case]:
    """Return what is measured."""
    x = torch.randn(4, 4)
    linears = nn.Sequential(*[nn.Linear(4, 4) for _ in range(200)])
    unrolled, steps = Unrolled(16), torch.randn(64, 1, 16)
    gpt = GPT(GPTConfig(512, block=32, layers=12, width=64)).eval()
    return [
        Case("2 operations", two_operations, (x, x)),
        Case("400 parameters, forward", linears, (x,)),
        Case("400 parameters, training", linears, (x,), train=True),
        Case("LSTM of 64 steps, forward", unrolled, (steps,)),
        Case("LSTM of 64 steps, training", unrolled, (steps,), train=True),
        Case("GPT of 12 layers, 1 token, forward", gpt, (torch.randint(0, 512, (1, 1)),)),
    ]


def medians(calls: list[Call], rounds: int = 15, seconds: float = 0.05) -> list[float]:
    """Return the CPU time of each call, in microseconds; they take turns, so that drift hits all alike."""
    counts = []
    for call in calls:
        call()
        start = time.process_time()
        call()
        counts.append(max(1, int(seconds / max(time.process_time() - start, 1e-6))))
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, times in zip(calls, counts, found, strict=True):
            start = time.process_time()
            for _ in range(count):
                call()
            times.append((time.process_time() - start) / count * 1e6)
    return [statistics.median(times) for times in found]


def throughput(call: Call, threads: int, seconds: float = 1.0) -> float:
    """Return how many calls a second that many threads make together."""
    counts = [0] * threads
    end = time.perf_counter() + seconds

    def serve(index: int) -> None:
        while time.perf_counter() < end:
            call()
            counts[index] += 1

    workers = [threading.Thread(target=serve, args=(i,)) for i in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - start)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inductor", action="store_true", help="measure torch.compile, too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    compilers: dict[str, Callable[[Any], Any]] = {
        "eager": lambda target: target,
        "Python text": lambda target: thunder.jit(target, executors=["torch"]),
        "native": lambda target: thunder.jit(target, executors=["native"]),
        "default": thunder.jit,
    }
    if arguments.inductor:
        compilers["torch.compile"] = torch.compile
    costs = Table("CPU time of a call, µs", *compilers, *[f"{name} / eager" for name in list(compilers)[1:]])
    served = Table("calls a second", *[f"{name}, {count} threads" for name in compilers for count in (1, 8)])
    for case in cases():
        calls = [case.call(compile(case.target)) for compile in compilers.values()]
        found = medians(calls)
        costs.add_row(case.name, *[f"{t:.0f}" for t in found], *[f"{t / found[0]:.2f}" for t in found[1:]])
        if not case.train:
            served.add_row(case.name, *[f"{throughput(call, count):.0f}" for call in calls for count in (1, 8)])
    Console().print(costs, served)


if __name__ == "__main__":
    main()
