"""Models by Thunder beside eager and ``torch.compile``, and which part of eager's step is kernels of libraries.

python -m thunder_benchmarks.models                                  all models that are installed
python -m thunder_benchmarks.models nanogpt:layers=6 hf:kind=bert    targets of thunder_benchmarks.targets, with sizes
python -m thunder_benchmarks.models --rows rows.jsonl --out docs/model-steps.md

Products of matrices, convolutions and attention are computed by libraries whoever compiles a model. What they take of
eager's step is timed by PyTorch's profiler; Thunder asks another library where that is faster, see
thunder-executors-onednn. Each model runs in a process of its own, with one thread; calls take turns, in CPU time. Freed
memory stays with the process.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from thunder_benchmarks.machine import keep_freed_memory
from thunder_benchmarks.tables import add_rows, markdown, read_rows
from thunder_benchmarks.targets import TARGETS
from thunder_benchmarks.targets.__main__ import setting
from thunder_benchmarks.targets.measuring import MODES, call, compiler
from thunder_benchmarks.timing import in_turns
from thunder_executors_onednn import is_faster_here

WIDE = "batch=4,length=128,width=256"
DEFAULT = (
    f"nanogpt:{WIDE},layers=6",
    "litgpt:layers=4,length=128",
    "litgpt:layers=16,length=128",
    f"hf-gpt2:{WIDE}",
    f"hf-llama:{WIDE}",
    "resnet50:batch=4",
    *[f"hf:kind={kind},{WIDE}" for kind in ("bert", "roberta", "electra", "mistral", "qwen2", "gemma", "olmo2", "phi")],
)
COMPILERS = ("eager", "torch.compile", "thunder")
OF_LIBRARIES = (
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mkldnn_convolution", "aten::convolution_backward",
    "aten::mkldnn_convolution_backward", "aten::_slow_conv2d_forward", "aten::_slow_conv2d_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
)  # fmt: skip
"""Operators whose kernels are those of a library for products, or PyTorch's for attention."""


@dataclass(frozen=True)
class Step:
    """What a call of a model takes, in milliseconds of CPU time.

    Args:
        target: its name, with sizes.
        mode: ``"forward"``, without gradients, or ``"training"``: forward and backward.
        eager, compiled, thunder: medians; ``compiled`` is by ``torch.compile``.
        libraries: what kernels of libraries take of eager's.
    """

    target: str
    mode: str
    eager: float
    compiled: float
    thunder: float
    libraries: float


def share_of_libraries(once: Callable[[], Any], count: int = 5) -> float:
    """Return which share of a call is kernels of libraries.

    Args:
        once: the call.
        count: of calls that are timed together.
    """
    once()
    with profile(activities=[ProfilerActivity.CPU]) as told:
        start = time.perf_counter()
        for _ in range(count):
            once()
        whole = 1e6 * (time.perf_counter() - start)
    return float(sum([e.self_cpu_time_total for e in told.key_averages() if e.key in OF_LIBRARIES])) / whole


def measured(name: str, mode: str, rounds: int, block: float) -> Step:
    """Measure a target in this process."""
    target, _, sizes = name.partition(":")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    keep_freed_memory()
    job = TARGETS[target].job(**dict([setting(text) for text in sizes.split(",") if text]))
    calls = {chosen: call(job, compiler(chosen)(job.target), mode) for chosen in COMPILERS}
    took = {chosen: statistics.median(blocks) / 1e3 for chosen, blocks in in_turns(calls, rounds, block).items()}
    of_libraries = took["eager"] * share_of_libraries(calls["eager"])
    return Step(name, mode, took["eager"], took["torch.compile"], took["thunder"], of_libraries)


def apart(name: str, mode: str, rounds: int, block: float) -> Step:
    """Measure a target in a process of its own."""
    command = [sys.executable, "-m", "thunder_benchmarks.models", name, "--mode", mode, "--here"]
    command += ["--rounds", str(rounds), "--block", str(block)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Step(**json.loads(done.stdout.splitlines()[-1]))


def page(found: Sequence[Step]) -> str:
    """Return the page, with the command that writes it."""

    def mean(part: Callable[[Step], float]) -> str:
        return f"{math.exp(statistics.fmean([math.log(part(step)) for step in found])):.2f}"

    slower = [f"{s.target}, {s.mode}" for s in found if s.thunder > 1.02 * s.eager]
    lines = [
        "# Steps of models",
        "",
        "Written by",
        "",
        "    python -m thunder_benchmarks.models --rows rows.jsonl --out docs/model-steps.md",
        "",
        "Targets of `thunder_benchmarks.targets` by eager PyTorch, `torch.compile` and `thunder.jit`, with one thread;",
        "medians of blocks in turns, in milliseconds of CPU time. *Libraries* is what products of matrices,",
        "convolutions and attention take of eager's step. `torch.compile` runs the same; `thunder.jit` multiplies",
        f"by oneDNN where that is faster, as it {'was' if is_faster_here() else 'was not'} on this machine.",
        "",
        f"PyTorch {torch.__version__}, load average {os.getloadavg()[0]:.1f} when this page was written. As geometric",
        f"means, `thunder` takes {mean(lambda s: s.thunder / s.eager)} of eager's time and "
        f"{mean(lambda s: s.thunder / s.compiled)} of `torch.compile`'s; libraries",
        f"take {mean(lambda s: s.libraries / s.eager)} of eager's. More than 2% slower than eager: "
        f"{'; '.join(slower) or 'none'}.",
        "",
    ]
    rows = [["target", "mode", "eager", "torch.compile", "thunder", "libraries", "/ eager", "/ torch.compile"]]
    for s in found:
        times = [f"{ms:.2f}" for ms in (s.eager, s.compiled, s.thunder, s.libraries)]
        rows.append([s.target, s.mode, *times, f"{s.thunder / s.eager:.2f}", f"{s.thunder / s.compiled:.2f}"])
    return "\n".join([*lines, markdown(rows)])


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=list(DEFAULT))
    parser.add_argument("--mode", choices=MODES, action="append", help="both, if not given")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--block", type=float, default=0.3, help="CPU seconds")
    parser.add_argument("--rows", type=Path, help="a file of rows, which is added to; what it has is not run again")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--here", action="store_true", help="in this process, for another one: one target and mode")
    options = parser.parse_args(words)
    modes = options.mode or list(MODES)
    if options.here:
        print(json.dumps(asdict(measured(options.targets[0], modes[0], options.rounds, options.block))))
        return
    known = {(step.target, step.mode): step for step in read_rows(Step, options.rows)}
    found = []
    for name in options.targets:
        for mode in modes:
            step = known.get((name, mode))
            if step is None:
                step = apart(name, mode, options.rounds, options.block)
                add_rows(options.rows, [step])
            print(
                f"{name} {mode}: eager {step.eager:.2f}, torch.compile {step.compiled:.2f}, thunder {step.thunder:.2f}"
            )
            found.append(step)
    text = page(found)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
