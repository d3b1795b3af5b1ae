"""What fused kernels save: eager PyTorch, torch.compile and Thunder's kernels, by turns in one process.

python -m thunder_benchmarks.fusion                              a table, one thread
python -m thunder_benchmarks.fusion --threads 2 --rounds 15 --cases softmax layer_norm_gelu
python -m thunder_benchmarks.fusion --compilers eager thunder --out docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import thunder
from thunder_benchmarks.fusion_cases import CASES, Case, Function


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
    "inductor": lambda f: torch.compile(f, dynamic=False),
    "thunder": thunder.jit,
    "llvm": lambda f: thunder.jit(f, executors=["llvm"]),
}
"""Who is compared: ``thunder`` takes what pays, ``llvm`` all that can be in kernels."""


CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
"""Of all threads together, the processor's."""


def measured(
    case: Case, mode: Callable[..., Any], rounds: int, names: Sequence[str], clock: Callable[[], float]
) -> dict[str, tuple[float, float, float]]:
    """Return, by name, milliseconds: the median and the least of interleaved rounds, and of the first call."""
    torch.manual_seed(0)
    inputs = case.inputs()
    runs, firsts = {}, {}
    for name in names:
        torch.compiler.reset()
        runs[name] = mode(COMPILERS[name](case.function), [t.clone() for t in inputs])
        start = time.perf_counter()
        runs[name]()
        firsts[name] = 1e3 * (time.perf_counter() - start)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = clock()
            run()
            times[name].append(1e3 * (clock() - start))
    return {name: (sorted(t)[len(t) // 2], min(t), firsts[name]) for name, t in times.items()}


def processor() -> str:
    """Return what the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def page(rows: list[str], names: list[str], options: argparse.Namespace) -> str:
    """Return the page: where, what, and the table."""
    heads = [f"{n}, {what}" for what in ("median", "least", "first call") for n in names]
    load = f", load average {os.getloadavg()[0]:.1f} when it ended" if hasattr(os, "getloadavg") else ""
    where = f"{processor()}, {os.cpu_count()} cores, {options.threads} threads"
    versions = f"PyTorch {torch.__version__}, Python {platform.python_version()}"
    command = f"python -m thunder_benchmarks.fusion --clock {options.clock} --threads {options.threads}"
    command += f" --rounds {options.rounds} --compilers {' '.join(names)} --out docs/benchmarks.md"
    return f"""# Fused kernels on CPUs

Written by `{command}`.
Milliseconds by the {options.clock} clock, first calls by the wall clock.

{datetime.date.today()}; {where}; {versions}; {options.rounds} interleaved rounds{load}.
Where others use the machine at the same time, `--clock cpu` and one thread say more than the wall clock.

`thunder` is `thunder.jit(f)`, whose default executors take what pays;
`llvm` is `thunder.jit(f, executors=["llvm"])`, which takes all that can be in kernels.

| case | {" | ".join(heads)} |
|---|{"---|" * len(heads)}
{chr(10).join(rows)}
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--compilers", nargs="*", choices=list(COMPILERS), default=list(COMPILERS))
    parser.add_argument("--modes", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = options.compilers
    rows = []
    for name in options.cases:
        for mode in options.modes:
            if mode == "training" and not CASES[name].trains:
                continue
            found = measured(CASES[name], MODES[mode], options.rounds, names, CLOCKS[options.clock])
            columns = [f"{found[n][which]:.2f}" for which in range(3) for n in names]
            rows.append(f"| {name}, {mode} | {' | '.join(columns)} |")
            print(rows[-1], flush=True)
    text = page(rows, names, options)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
