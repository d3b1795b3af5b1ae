"""Regions compiled by Inductor beside ``torch.compile``: first training steps, further ones, and what they save.

python -m thunder_benchmarks.inductor                              models and single operations
python -m thunder_benchmarks.inductor nanogpt:layers=6 softmax     targets of thunder_benchmarks.targets, with sizes
python -m thunder_benchmarks.inductor --executors torchcompile     another executor, or several: inductor+llvm
python -m thunder_benchmarks.inductor --out docs/inductor.md

Each compiler runs a target in a process of its own, with empty caches of Inductor's and one thread. First steps are
CPU seconds with those of the C++ compiler; further steps are taken in turns, in CPU time. The C library keeps memory
that is freed: whether it returns pages to the system depends on what the process allocated while it compiled.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from thunder_benchmarks.machine import cpu_seconds
from thunder_benchmarks.tables import add_rows, markdown, read_rows
from thunder_benchmarks.targets import TARGETS
from thunder_benchmarks.targets.__main__ import setting
from thunder_benchmarks.targets.measuring import call, compiler

DEFAULT = (
    "nanogpt:layers=12",
    "hf-llama:layers=16",
    "litgpt:layers=16",
    "softmax",
    "layer-norm",
    "rms-norm",
    "swiglu",
    "cross-entropy",
    "rope",
)
OTHER = "torch.compile"
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
"""Lets glibc keep memory that is freed."""


@dataclass(frozen=True)
class Took:
    """What a compiler takes for a target.

    Args:
        target: its name, with sizes.
        compiler: as :func:`thunder_benchmarks.targets.measuring.compiler` takes it.
        first: CPU seconds of the first training step, with those of child processes.
        steps: CPU seconds of a further one: of each block, in order.
        saved: bytes that autograd keeps for the backward part, but for those of a module's parameters. Inputs count: in
            a larger model they are results of others.
        difference: of the gradients from eager's, at most, as a share of the largest.
    """

    target: str
    compiler: str
    first: float
    steps: Sequence[float]
    saved: int
    difference: float

    @property
    def step(self) -> float:
        """The median of the steps."""
        return statistics.median(self.steps)


# --- in a process of its own -----------------------------------------------------------------------------------------


def leaves_of(job: Any) -> list[torch.Tensor]:
    """Return the tensors that a job differentiates with regard to."""
    given = [v for v in (*job.args, *job.kwargs.values()) if isinstance(v, torch.Tensor)]
    held = list(job.target.parameters()) if isinstance(job.target, torch.nn.Module) else []
    return [t for t in (*held, *given) if t.requires_grad]


def saved_bytes(job: Any, function: Any) -> int:
    """Return how many bytes autograd keeps of a forward, but for those of a module's parameters."""
    held = job.target.parameters() if isinstance(job.target, torch.nn.Module) else ()
    known = {parameter.untyped_storage().data_ptr() for parameter in held}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        result = function(*job.args, **job.kwargs)
    del result
    return sum([size for place, size in kept.items() if place not in known])


def gradients(job: Any, function: Any) -> list[torch.Tensor]:
    """Return the gradients of one call, of its sum of squares where it has no loss, and leave none behind."""
    result = function(*job.args, **job.kwargs)
    loss = result.square().sum() if job.loss is torch.sum else job.loss(result)
    found = torch.autograd.grad(loss, leaves_of(job), allow_unused=True)
    return [g for g in found if g is not None]


def serve(name: str, chosen: str) -> None:
    """Answer on the standard output what is asked for on the standard input: steps until told to end."""
    target, _, sizes = name.partition(":")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    job = TARGETS[target].job(**dict([setting(text) for text in sizes.split(",") if text]))
    expected = gradients(job, job.target)
    function = compiler(chosen)(job.target)
    once = call(job, function, "training")
    start = cpu_seconds()
    once()
    first = cpu_seconds() - start
    found = gradients(job, function)
    pairs = zip(found, expected, strict=True)
    difference = max([float((a - b).abs().max() / b.abs().max().clamp_min(1e-12)) for a, b in pairs])
    told = {"first": first, "saved": saved_bytes(job, function), "difference": difference}
    print(json.dumps(told), flush=True)
    for line in sys.stdin:
        end = time.process_time() + float(line)
        count, start = 0, time.process_time()
        while time.process_time() < end:
            once()
            count += 1
        print((time.process_time() - start) / count, flush=True)


# --- both, side by side ----------------------------------------------------------------------------------------------


@contextmanager
def started(name: str, chosen: str) -> Iterator[subprocess.Popen[str]]:
    """Run a target by a compiler in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        own = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"} | KEPT
        own["TMPDIR"] = cache  # below which Inductor keeps its headers, compiled, whatever directory its cache has
        command = [sys.executable, "-m", "thunder_benchmarks.inductor", "--serve", name, chosen]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env={**os.environ, **own}, **pipes) as process:
            yield process
            assert process.stdin is not None
            process.stdin.close()


def answer(process: subprocess.Popen[str]) -> Any:
    """Return the next thing that a process says."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        if line[0] in "{0123456789":
            return json.loads(line)
    raise RuntimeError(f"the process ended with status {process.wait()}")


def measured(name: str, compilers: Sequence[str], rounds: int, block: float) -> list[Took]:
    """Measure a target by several compilers: one after the other the first step, in turns the further ones."""
    with ExitStack() as stack:
        told: dict[str, dict[str, float]] = {}
        processes = {}
        for chosen in compilers:
            processes[chosen] = stack.enter_context(started(name, chosen))
            told[chosen] = answer(processes[chosen])
        steps: dict[str, list[float]] = {chosen: [] for chosen in compilers}
        for _ in range(rounds):
            for chosen, process in processes.items():
                assert process.stdin is not None
                process.stdin.write(f"{block}\n")
                process.stdin.flush()
                steps[chosen].append(float(answer(process)))
    return [Took(name, c, told[c]["first"], steps[c], int(told[c]["saved"]), told[c]["difference"]) for c in compilers]


def page(found: Sequence[Took], ours: str, rounds: int) -> str:
    """Return the page, with the command that writes it."""
    pairs = [(mine, other) for mine, other in zip(found[::2], found[1::2], strict=True)]
    ratios = [mine.step / other.step for mine, other in pairs]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    targets = tuple([mine.target for mine, _ in pairs])
    chosen = ours.partition(":")[2]
    words = [*(() if targets == DEFAULT else targets), *(() if chosen == "inductor" else ("--executors", chosen))]
    command = " ".join(["python -m thunder_benchmarks.inductor", *words, f"--rounds {rounds} --out docs/inductor.md"])
    lines = [
        "# Regions by Inductor beside torch.compile",
        "",
        "Written by",
        "",
        f"    {command}",
        "",
        f"Training steps of targets of `thunder_benchmarks.targets` by `{ours}` and by `torch.compile`, each in a",
        "process of its own with one thread and empty caches of Inductor's, so that each compiles its headers. CPU",
        f"time, with that of the C++ compiler; medians of {rounds} blocks in turns. A first step of a fraction of a",
        "second has no region: PyTorch's kernels run. The C library keeps memory that is freed: whether it returns",
        "pages to the system depends on what the process allocated while it compiled. Saved is what autograd keeps",
        "for the backward part, inputs included and a module's parameters not; different is how far gradients are",
        "from eager's, as a share of the largest.",
        "",
        f"PyTorch {torch.__version__}, load average {os.getloadavg()[0]:.1f} when this page was written. Steps take",
        f"{mean:.2f} of `torch.compile`'s time as a geometric mean, {max(ratios):.2f} at most.",
        "",
    ]
    rows = [[
        "target", "first step, s", "torch.compile, s", "ratio", "step, ms", "torch.compile, ms", "ratio", "saved, MB",
        "torch.compile, MB", "different",
    ]]  # fmt: skip
    for mine, other in pairs:
        rows.append([
            mine.target, f"{mine.first:.2f}", f"{other.first:.2f}", f"{mine.first / other.first:.2f}",
            f"{1e3 * mine.step:.3f}", f"{1e3 * other.step:.3f}", f"{mine.step / other.step:.2f}",
            f"{mine.saved / 1e6:.3f}", f"{other.saved / 1e6:.3f}", f"{mine.difference:.0e}",
        ])  # fmt: skip
    return "\n".join([*lines, markdown(rows)])


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=list(DEFAULT))
    parser.add_argument("--executors", default="inductor")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--block", type=float, default=0.3, help="CPU seconds")
    parser.add_argument("--rows", type=Path, help="a file of rows, which is added to; what it has is not run again")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--serve", nargs=2, metavar=("TARGET", "COMPILER"), help="in this process, for another one")
    options = parser.parse_args(words)
    if options.serve:
        serve(*options.serve)
        return
    ours = f"thunder:{options.executors}"
    known: list[Took] = read_rows(Took, options.rows)
    found: list[Took] = []
    for name in options.targets:
        pair = [took for took in known if took.target == name and took.compiler in (ours, OTHER)]
        if len(pair) != 2:
            pair = measured(name, [ours, OTHER], options.rounds, options.block)
            add_rows(options.rows, pair)
        found += pair
        print(*[f"{t.target} {t.compiler}: first {t.first:.2f} s, step {1e3 * t.step:.3f} ms" for t in pair], sep="\n")
    text = page(found, ours, options.rounds)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
