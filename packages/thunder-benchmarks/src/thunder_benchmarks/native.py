"""What calls cost where native code makes them: beside eager, and beside the same programs as Python text.

python -m thunder_benchmarks.native                  CPU time of a call, medians; what several threads come to; and how
                                                     long native code takes to be made
python -m thunder_benchmarks.native --inductor       with torch.compile, which takes minutes to compile
python -m thunder_benchmarks.native --page page.md   writes the tables between the marks of a page

Threads are told beside a digest, which C code computes without Python's lock: what the machine has room for just then.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

import thunder
from thunder_benchmarks.calls import two_operations
from thunder_benchmarks.generation import Sizes, gpt2, llama
from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.tables import markdown, marks_of, show, write_between
from thunder_benchmarks.timing import Call, in_turns
from thunder_benchmarks.transforms import CASES
from thunder_executors import calls_of
from thunder_native.executor import executor, join_calls

try:
    from transformers import StaticCache
except ImportError as error:
    raise ImportError("this needs transformers: pip install 'thunder-benchmarks[transformers]'") from error


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


PROMPT, LENGTH = 16, 64


@dataclass(frozen=True)
class Decoding(Case):
    """A model of transformers that writes a token; ``args`` are that token, its cache is allocated beforehand."""

    def call(self, target: Callable[..., Any]) -> Call:
        model: Any = self.target
        cache: Any = StaticCache(config=model.config, max_cache_len=LENGTH)
        with torch.no_grad():
            model(torch.randint(2, 256, (1, PROMPT)), past_key_values=cache, use_cache=True)
        count = itertools.count(1)

        def write() -> Any:
            if next(count) % (LENGTH - PROMPT) == 0:  # the cache is full: back to where the prompt ends
                for layer in cache.layers:
                    layer.cumulative_length.fill_(PROMPT)
            with torch.no_grad():
                return target(*self.args, past_key_values=cache, use_cache=True).logits

        return write


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


def cases() -> list[Case]:
    """Return what is measured."""
    x = torch.randn(4, 4)
    linears = nn.Sequential(*[nn.Linear(4, 4) for _ in range(200)])
    unrolled, steps = Unrolled(16), torch.randn(64, 1, 16)
    token, per_sample = torch.tensor([[5]]), CASES["per_sample_small"]
    gpt = GPT(GPTConfig(512, block=32, layers=12, width=64)).eval()
    return [
        Case("2 operations", two_operations, (x, x)),
        Case("400 parameters, forward", linears, (x,)),
        Case("400 parameters, training", linears, (x,), train=True),
        Case("LSTM of 64 steps, forward", unrolled, (steps,)),
        Case("LSTM of 64 steps, training", unrolled, (steps,), train=True),
        Case("GPT of 12 layers, 1 token, forward", gpt, (torch.randint(0, 512, (1, 1)),)),
        Decoding("GPT-2 of 12 layers, 1 token, static cache", gpt2(Sizes(positions=LENGTH)).eval(), (token,)),
        Decoding("Llama of 12 layers, 1 token, static cache", llama(Sizes(positions=LENGTH)).eval(), (token,)),
        Case("gradients per sample, 16 samples", per_sample.function, per_sample.inputs()),
    ]


def medians(calls: dict[str, Call], rounds: int = 9, seconds: float = 0.05) -> list[float]:
    """Return the CPU time of each call, in microseconds."""
    return [statistics.median(times) for times in in_turns(calls, rounds, seconds).values()]


def throughput(call: Call, threads: int, seconds: float = 0.25) -> float:
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


THREADS = 8


def gains(calls: list[Call], rounds: int = 7) -> list[float]:
    """Return how much more several threads come to than one, for each call; they take turns."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, ratios in zip(calls, found, strict=True):
            ratios.append(throughput(call, THREADS) / throughput(call, 1))
    return [statistics.median(ratios) for ratios in found]


def making(case: Case, rounds: int = 9) -> tuple[int, float]:
    """Return how many calls the program of a case makes, and the CPU time, in milliseconds, to make native code of it.

    The least of the rounds: what others do on the machine only adds to it. What walks the steps of all programs is
    compiled, or read from disk, once in a process, and not counted.
    """
    compiled = thunder.jit(case.target, executors=["torch"])
    case.call(compiled)()
    trace = thunder.last_traces(compiled)[-1]
    join_calls(trace, executor)
    times = []
    for _ in range(rounds):
        start = time.process_time()
        join_calls(trace, executor)
        times.append((time.process_time() - start) * 1e3)
    return len(calls_of(trace)), min(times)


COMPILERS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda target: target,
    "Python text": partial(thunder.jit, executors=["torch"]),
    "native": partial(thunder.jit, executors=["+native"]),
    "with kernels": partial(thunder.jit, executors=["+llvm", "+native"]),
    "default": thunder.jit,
}
WARM = 4
"""Calls before any is measured: native code is made at the third one."""


def main() -> None:
    """Print the tables, or write them to a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inductor", action="store_true", help="measure torch.compile, too")
    parser.add_argument("--page", type=Path, help="of Markdown, on which the tables stand")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    compilers = COMPILERS | ({"torch.compile": torch.compile} if arguments.inductor else {})
    costs = [["CPU time of a call", *[f"{name}, µs" for name in compilers], *[f"{n} / eager" for n in compilers][1:]]]
    served = [[f"throughput, {THREADS} threads / 1", *compilers, "a digest"]]
    makes = [["native code of the forward program", "calls", "made in, ms", "ms for 1,000 calls"]]
    data = bytes(400_000)
    for case in cases():
        torch._dynamo.reset()
        calls = {name: case.call(compile(case.target)) for name, compile in compilers.items()}
        for call in [*calls.values()] * WARM:
            call()
        found = medians(calls)
        costs.append([case.name, *[f"{t:.0f}" for t in found], *[f"{t / found[0]:.2f}" for t in found[1:]]])
        if not case.train and not isinstance(case, Decoding):  # a cache is one thread's
            ratios = gains([*calls.values(), lambda: hashlib.sha256(data).digest()])
            served.append([case.name, *[f"{ratio:.2f}" for ratio in ratios]])
        count, took = making(case)
        makes.append([case.name, str(count), f"{took:.1f}", f"{took / count * 1e3:.0f}"])
    tables = [costs, served, makes]
    if arguments.page is None:
        for table in tables:
            show(table)
    else:
        text = "\n".join([markdown(table) for table in tables])
        write_between(arguments.page, marks_of("thunder_benchmarks.native"), text)


if __name__ == "__main__":
    main()
