"""What fused kernels save: eager PyTorch, torch.compile and Thunder's kernels, by turns in one process.

python -m thunder_benchmarks.fusion                              a table, one thread
python -m thunder_benchmarks.fusion --threads 2 --clock wall --rounds 15 --cases softmax layer_norm_gelu
python -m thunder_benchmarks.fusion --rows rows.jsonl            ... that thunder_benchmarks.fusion_page makes a page of

Steps are milliseconds, taken in turns; memory that is freed stays with the process. First calls are CPU seconds, with
those of the C++ compiler; caches on disk are empty, and each compiler has compiled an addition before. `--rows` names a
file of rows, which is added to; what it has is not measured again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import thunder
from thunder_benchmarks.fusion_cases import CASES, Case, Function
from thunder_benchmarks.machine import circumstances, cpu_seconds, keep_freed_memory
from thunder_benchmarks.tables import add_rows, read_rows
from thunder_benchmarks.timing import CLOCKS, in_turns


def forward(function: Function, inputs: list[torch.Tensor]) -> Callable[[], Any]:
    """Return a call without gradients."""

    def run() -> Any:
        with torch.no_grad():
            return function(*inputs)

    return run


def training(function: Function, inputs: list[torch.Tensor]) -> Callable[[], Any]:
    """Return a call with gradients of all inputs."""
    leaves = [t.detach().requires_grad_() if t.is_floating_point() else t for t in inputs]
    weight = torch.rand_like(inputs[0])

    def run() -> torch.Tensor:
        for leaf in leaves:
            leaf.grad = None
        result: torch.Tensor = function(*leaves)
        cotangent = weight if weight.shape == result.shape else torch.ones(()).expand(result.shape)
        torch.autograd.backward(result, cotangent.to(result.dtype))
        return result

    return run


MODES: dict[str, Callable[..., Callable[[], Any]]] = {"forward": forward, "training": training}

COMPILERS: dict[str, Callable[[Function], Function]] = {
    "eager": lambda f: f,
    "torch.compile": lambda f: torch.compile(f, dynamic=False),
    "thunder": thunder.jit,
    "llvm": lambda f: thunder.jit(f, executors=["llvm"]),
}
"""Who is compared: ``thunder`` takes what pays, ``llvm`` all that can be in kernels."""

ADDITION = Case(torch.add, ((512, 512), (512, 512)))
"""What every compiler compiles before, so that what it imports is not part of a case's first call."""


@dataclass(frozen=True)
class Timed:
    """What a compiler takes for a case.

    Args:
        case: its name.
        mode: one of :data:`MODES`.
        compiler: one of :data:`COMPILERS`.
        median: milliseconds of a step.
        least: milliseconds of the fastest one.
        first: CPU seconds of the first call.
        where: the machine, versions and the date.
    """

    case: str
    mode: str
    compiler: str
    median: float
    least: float
    first: float
    where: Sequence[str]


def first_call(case: Case, mode: str, name: str) -> tuple[Callable[[], Any], float]:
    """Return a compiled call, and the CPU seconds of its first run."""
    run = MODES[mode](COMPILERS[name](case.function), case.inputs())
    start = cpu_seconds()
    run()
    return run, cpu_seconds() - start


def measured(name: str, mode: str, rounds: int, compilers: Sequence[str], clock: Callable[[], float]) -> list[Timed]:
    """Measure a case by several compilers: one after the other the first call, in turns the further ones."""
    torch.compiler.reset()
    runs, firsts = {}, {}
    for compiler in compilers:
        first_call(ADDITION, mode, compiler)
        torch.manual_seed(0)
        runs[compiler], firsts[compiler] = first_call(CASES[name], mode, compiler)
    took = in_turns(runs, rounds, 0.0, clock)
    times = {compiler: [each / 1e3 for each in those] for compiler, those in took.items()}
    where = circumstances()
    return [Timed(name, mode, c, sorted(t)[len(t) // 2], min(t), firsts[c], where) for c, t in times.items()]


def compared(options: argparse.Namespace) -> list[Timed]:
    """Measure what is asked for and not known yet, print it, and return all of it."""
    known: list[Timed] = read_rows(Timed, options.rows)
    found: list[Timed] = []
    asked = [
        (name, mode) for name in options.cases for mode in options.modes if mode == "forward" or CASES[name].trains
    ]
    for name, mode in asked:
        rows = [t for t in known if (t.case, t.mode) == (name, mode) and t.compiler in options.compilers]
        if len(rows) < len(options.compilers):
            with tempfile.TemporaryDirectory() as cache:
                os.environ.update({"TORCHINDUCTOR_CACHE_DIR": cache, "THUNDER_LLVM_CACHE": cache})
                rows = measured(name, mode, options.rounds, options.compilers, CLOCKS[options.clock])
            add_rows(options.rows, rows)
        found += rows
        print(
            f"{name}, {mode}:", *[f"{t.compiler} {t.median:.2f} ms, first {t.first:.2f} s;" for t in rows], flush=True
        )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--compilers", nargs="*", choices=list(COMPILERS), default=list(COMPILERS))
    parser.add_argument("--modes", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--clock", choices=list(CLOCKS), default="cpu")
    parser.add_argument("--rows", type=Path, help="a file of what was measured, which is added to")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    keep_freed_memory()
    compared(options)


if __name__ == "__main__":
    main()
