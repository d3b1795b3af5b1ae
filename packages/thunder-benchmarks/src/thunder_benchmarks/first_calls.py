"""What the first call of a compiled model costs: CPU seconds of a fresh process each, kernels warmed up by eager.

python -m thunder_benchmarks.first_calls                     a GPT of 4 and of 16 layers
python -m thunder_benchmarks.first_calls --layers 2 6 --rounds 5
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

import thunder
from thunder_benchmarks.gpt import GPT, GPTConfig

COMPILERS: dict[str, Callable[[Any], Any]] = {
    "thunder": thunder.jit,
    "torch.compile, eager": lambda model: torch.compile(model, backend="eager"),
    "torch.compile, aot_eager": lambda model: torch.compile(model, backend="aot_eager"),
}
WORK = ("forward", "step")


def seconds(compiler: str, work: str, layers: int) -> float:
    """Return the CPU seconds of a first call in this process.

    Args:
        compiler: one of :data:`COMPILERS`.
        work: ``"forward"``, without gradients, or ``"step"``, forward and backward.
        layers: of a GPT of width 128.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = GPT(GPTConfig(256, block=64, layers=layers, heads=4, width=128))
    tokens = torch.randint(256, (2, 64))

    def run(target: Callable[..., Any]) -> None:
        loss = target(tokens, tokens)[1]
        if work == "step":
            loss.backward()

    with torch.set_grad_enabled(work == "step"):
        run(model)
        model.zero_grad()
        compiled = COMPILERS[compiler](model)
        start = time.process_time()
        run(compiled)
        return time.process_time() - start


def in_a_process_of_its_own(compiler: str, work: str, layers: int) -> float:
    """Return what :func:`seconds` finds in a fresh process."""
    command = [sys.executable, "-m", "thunder_benchmarks.first_calls", "--one", compiler, work, str(layers)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=3, metavar=("COMPILER", "WORK", "LAYERS"), help="measure in this process")
    options = parser.parse_args()
    if options.one:
        compiler, work, layers = options.one
        print(seconds(compiler, work, int(layers)))
        return
    measured = [(c, w, n) for c in COMPILERS for w in WORK for n in options.layers]
    took = {m: min(in_a_process_of_its_own(*m) for _ in range(options.rounds)) for m in track(measured, transient=True)}
    table = Table("CPU s", *[f"{work}, {n} layers" for work in WORK for n in options.layers])
    for compiler in COMPILERS:
        table.add_row(compiler, *[f"{took[compiler, work, n]:.3f}" for work in WORK for n in options.layers])
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
