"""A model that branches on its data in one place, which splits torch.compile's graph: first calls and steps, CPU time.

python -m thunder_benchmarks.branches
python -m thunder_benchmarks.branches --layers 4 --activations relu --compilers thunder "torch.compile, aot_eager"

First steps are those of a fresh process each, with caches on disk that are empty; further ones are made in turns, in
one process. Compilers that other processes run, such as that of C++, are not in the CPU seconds of a first step.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import thunder
from thunder_benchmarks.machine import in_a_fresh_process
from thunder_benchmarks.tables import show
from thunder_benchmarks.timing import microseconds

COMPILERS: dict[str, Callable[[nn.Module], Any]] = {
    "eager": lambda model: model,
    "thunder": thunder.jit,
    "thunder, small tensors fused": lambda model: thunder.jit(model, executors=["+llvm", "+native"]),
    "torch.compile": torch.compile,
    "torch.compile, aot_eager": lambda model: torch.compile(model, backend="aot_eager"),
}
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "silu": nn.SiLU, "gelu": nn.GELU}
ROWS, WIDTH = 32, 64
PEER = "torch.compile"
WARM = 12
"""Steps before others are measured: by then, all that is compiled later is compiled."""
BLOCK = 0.02
"""Seconds of the steps that a compiler makes in its turn."""


class Block(nn.Module):
    """One layer.

    Args:
        activation: the function in it, one of :data:`ACTIVATIONS`.
    """

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows, and what the layer adds to them."""
        added: torch.Tensor = self.activation(self.linear(x))
        return x + added


class Checked(nn.Module):
    """Layers, after half of which values that are not finite are replaced if there are any.

    Args:
        layers: how many.
        activation: the function in them.
    """

    def __init__(self, layers: int, activation: str) -> None:
        super().__init__()
        self.before = nn.Sequential(*[Block(activation) for _ in range(layers // 2)])
        self.after = nn.Sequential(*[Block(activation) for _ in range(layers - layers // 2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what comes out of the layers; no loop holds the branch, or torch.compile would run all in Python."""
        x = self.before(x)
        if not torch.isfinite(x).all():
            x = torch.nan_to_num(x)
        found: torch.Tensor = self.after(x)
        return found


def step_of(model: nn.Module, compiler: str) -> Callable[[], None]:
    """Return a training step of a copy of a model, compiled."""
    compiled, x = COMPILERS[compiler](copy.deepcopy(model)), torch.randn(ROWS, WIDTH)

    def step() -> None:
        compiled(x).square().mean().backward()

    return step


def first(compiler: str, layers: int, activation: str) -> float:
    """Return the CPU seconds of the first step of this process."""
    torch.manual_seed(0)
    model = Checked(layers, activation)
    step_of(model, "eager")()  # what PyTorch does once in a process
    step = step_of(model, compiler)
    begin = time.process_time()
    step()
    return time.process_time() - begin


def first_of_a_process(compiler: str, layers: int, activation: str) -> float:
    """Return the same, measured in a process of its own, with nothing on disk yet."""
    words = ["-m", "thunder_benchmarks.branches", "--one", compiler, "--layers", str(layers)]
    with tempfile.TemporaryDirectory() as cache:
        settings = {"TORCHINDUCTOR_CACHE_DIR": cache, "THUNDER_LLVM_CACHE": cache}
        found: float = in_a_fresh_process(*words, "--activations", activation, **settings)
    return found


def measured(compilers: list[str], layers: int, activation: str, rounds: int) -> list[tuple[str, ...]]:
    """Return the table's rows for one activation."""
    torch.manual_seed(0)
    model = Checked(layers, activation)
    steps = {compiler: step_of(model, compiler) for compiler in compilers}
    for step in steps.values():
        for _ in range(WARM):
            step()
    took = microseconds(steps, rounds, BLOCK)
    rows: list[tuple[str, ...]] = []
    for compiler in compilers:
        seconds = first_of_a_process(compiler, layers, activation)
        ratio = f"{took[compiler] / took[PEER]:.2f}" if PEER in took else ""
        rows.append((activation, compiler, f"{seconds:.2f}", f"{took[compiler] / 1e3:.3f}", ratio))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--activations", nargs="+", choices=ACTIVATIONS, default=list(ACTIVATIONS))
    parser.add_argument("--compilers", nargs="+", choices=COMPILERS, default=list(COMPILERS))
    parser.add_argument("--one", choices=COMPILERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if arguments.one:
        print(json.dumps(first(arguments.one, arguments.layers, arguments.activations[0])))
        return
    rows: list[tuple[str, ...]] = [("activation", "compiler", "first step, s", "further ones, ms", f"of {PEER}'s")]
    for activation in arguments.activations:
        rows += measured(arguments.compilers, arguments.layers, activation, arguments.rounds)
    show(rows, width=100)


if __name__ == "__main__":
    main()
