"""A model that branches on its data in one place, which splits torch.compile's graph: first calls and steps, CPU time.

python -m thunder_benchmarks.branches                          each compiler in a fresh process
python -m thunder_benchmarks.branches --layers 4 --rounds 50 --compilers thunder "torch.compile, aot_eager"
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import thunder

COMPILERS: dict[str, Callable[[nn.Module], Any]] = {
    "eager": lambda model: model,
    "thunder": thunder.jit,
    "torch.compile": torch.compile,
    "torch.compile, aot_eager": lambda model: torch.compile(model, backend="aot_eager"),
}
ROWS, WIDTH = 32, 64


class Block(nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows, and what the layer adds to them."""
        added: torch.Tensor = torch.nn.functional.gelu(self.linear(x))
        return x + added


class Checked(nn.Module):
    """Layers, after half of which values that are not finite are replaced if there are any.

    Args:
        layers: how many.
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.before = nn.Sequential(*[Block() for _ in range(layers // 2)])
        self.after = nn.Sequential(*[Block() for _ in range(layers - layers // 2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what comes out of the layers; no loop holds the branch, or torch.compile would run all in Python."""
        x = self.before(x)
        if not torch.isfinite(x).all():
            x = torch.nan_to_num(x)
        found: torch.Tensor = self.after(x)
        return found


def measured(compiler: str, layers: int, rounds: int) -> dict[str, float]:
    """Return the CPU seconds of the first step of a fresh process, and the median of those of further steps."""
    torch.manual_seed(0)
    model, x = Checked(layers), torch.randn(ROWS, WIDTH)
    model(x).square().mean().backward()  # what PyTorch does once in a process
    compiled = COMPILERS[compiler](model)
    steps = []
    for _ in range(rounds + 1):
        begin = time.process_time()
        compiled(x).square().mean().backward()
        steps.append(time.process_time() - begin)
    return {"first": steps[0], "step": statistics.median(steps[1:])}


def in_a_process_of_its_own(compiler: str, layers: int, rounds: int) -> dict[str, float]:
    """Return the same, measured in a process of its own."""
    command = [sys.executable, "-m", "thunder_benchmarks.branches", "--one", compiler]
    command += ["--layers", str(layers), "--rounds", str(rounds)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(answer.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--compilers", nargs="+", choices=COMPILERS, default=list(COMPILERS))
    parser.add_argument("--one", choices=COMPILERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.one:
        print(json.dumps(measured(arguments.one, arguments.layers, arguments.rounds)))
        return
    table = Table("compiler", "first step, s", "further ones, ms")
    for compiler in arguments.compilers:
        found = in_a_process_of_its_own(compiler, arguments.layers, arguments.rounds)
        table.add_row(compiler, f"{found['first']:.2f}", f"{found['step'] * 1e3:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
