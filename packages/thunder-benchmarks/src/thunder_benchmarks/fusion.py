"""What fused kernels save: eager PyTorch, torch.compile and Thunder's LLVM executor, by turns in one process.

python -m thunder_benchmarks.fusion                              a table, one thread
python -m thunder_benchmarks.fusion --threads 2 --rounds 15 --cases softmax layer_norm_gelu
python -m thunder_benchmarks.fusion --no-inductor --out docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import thunder

Function = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Case:
    """A function and what it is called with.

    Args:
        function: of tensors, to one.
        shapes: of these.
        dtype: of these.
    """

    function: Function
    shapes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype = torch.float32


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Twenty pointwise operations."""
    z = torch.tanh(x * 1.1 + y) * x
    z = torch.relu(torch.sigmoid(z) + y) - 0.5 * x
    z = torch.exp(-z * z) * y + x
    z = torch.sin(z) * torch.cos(z)
    return torch.sqrt(z * z + 1.0)


def gelu_bias_residual(x: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    """Bias, gelu and residual."""
    return F.gelu(x + b) + r


def layer_norm_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Layer normalisation and gelu."""
    return F.gelu(F.layer_norm(x, (x.shape[-1],), w, b))


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Root-mean-square normalisation, written out."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def softmax(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Scale, bias and softmax, written out."""
    s = x * 0.125 + bias
    e = torch.exp(s - torch.amax(s, -1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def swiglu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gate of an MLP."""
    return F.silu(x) * y


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Scale and log-softmax."""
    return F.log_softmax(x * 0.5, -1)


ROWS = (2048, 1024)
CASES = {
    "chain": Case(chain, (ROWS, ROWS)),
    "chain, bfloat16": Case(chain, (ROWS, ROWS), torch.bfloat16),
    "gelu_bias_residual": Case(gelu_bias_residual, (ROWS, (1024,), ROWS)),
    "layer_norm_gelu": Case(layer_norm_gelu, (ROWS, (1024,), (1024,))),
    "rms_norm": Case(rms_norm, (ROWS, (1024,))),
    "softmax": Case(softmax, (ROWS, (1024,))),
    "log_softmax, 32000": Case(log_softmax, ((128, 32000),)),
    "swiglu": Case(swiglu, (ROWS, ROWS)),
}


def forward(function: Function, inputs: list[torch.Tensor]) -> Callable[[], Any]:
    """Return a call without gradients."""

    def run() -> torch.Tensor:
        with torch.no_grad():
            return function(*inputs)

    return run


def training(function: Function, inputs: list[torch.Tensor]) -> Callable[[], Any]:
    """Return a call with gradients of all inputs."""
    leaves = [t.detach().requires_grad_() for t in inputs]
    weight = torch.rand_like(inputs[0])

    def run() -> torch.Tensor:
        for leaf in leaves:
            leaf.grad = None
        result = function(*leaves)
        torch.autograd.backward(result, weight.to(result.dtype).expand(result.shape))
        return result

    return run


def compilers(inductor: bool) -> dict[str, Callable[[Function], Function]]:
    """Return who is compared, by name."""
    found: dict[str, Callable[[Function], Function]] = {"eager": lambda f: f}
    if inductor:
        found["inductor"] = lambda f: torch.compile(f, dynamic=False)
    found["llvm"] = lambda f: thunder.jit(f, executors=["llvm"])
    return found


def measured(
    case: Case, mode: Callable[..., Any], rounds: int, inductor: bool
) -> dict[str, tuple[float, float, float]]:
    """Return, by name, milliseconds: the median and the least of interleaved rounds, and of the first call."""
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(case.dtype) for shape in case.shapes]
    runs, firsts = {}, {}
    for name, compiler in compilers(inductor).items():
        runs[name] = mode(compiler(case.function), inputs)
        start = time.perf_counter()
        runs[name]()
        firsts[name] = 1e3 * (time.perf_counter() - start)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: (sorted(t)[len(t) // 2], min(t), firsts[name]) for name, t in times.items()}


def processor() -> str:
    """Return what the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def page(rows: list[str], names: list[str], threads: int, rounds: int) -> str:
    """Return the page: where, what, and the table."""
    heads = [f"{n}, {what}" for what in ("median", "least", "first call") for n in names]
    load = f", load average {os.getloadavg()[0]:.1f} when it ended" if hasattr(os, "getloadavg") else ""
    where = f"{processor()}, {os.cpu_count()} cores, {threads} threads"
    versions = f"PyTorch {torch.__version__}, Python {platform.python_version()}"
    return f"""# Fused kernels on CPUs

Written by `python -m thunder_benchmarks.fusion --out docs/benchmarks.md`. Milliseconds of wall clock.

{datetime.date.today()}; {where}; {versions}; {rounds} interleaved rounds{load}.
On a machine that others use at the same time medians say little; the least of the rounds says more.

`llvm` is `thunder.jit(f, executors=["llvm"])`. The executor does not take part by itself:
it is not yet shown to be never slower than eager.

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
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = list(compilers(not options.no_inductor))
    rows = []
    for name in options.cases:
        for mode in (forward, training):
            found = measured(CASES[name], mode, options.rounds, not options.no_inductor)
            columns = [f"{found[n][which]:.2f}" for which in range(3) for n in names]
            rows.append(f"| {name}, {mode.__name__} | {' | '.join(columns)} |")
            print(rows[-1], flush=True)
    text = page(rows, names, options.threads, options.rounds)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
