"""The main job: train a small GPT on real text, compiled, and set it beside eager PyTorch.

python -m thunder_benchmarks.demo [--steps N] [--traces FOLDER]
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import thunder
from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.text import Text, python_documentation

TOLERANCE = 2e-4
"""How far, relatively, a compiled step's loss may be from eager's: float32 rounding, amplified by the steps before."""


@dataclass(frozen=True, slots=True)
class Run:
    """One training run.

    Args:
        losses: of each step.
        first_seconds: wall-clock time of the first step, compiling included.
        tokens_per_second: of the steps after the first.
    """

    losses: list[float]
    first_seconds: float
    tokens_per_second: float


def train(
    module: torch.nn.Module, text: Text, steps: int, batch: int, length: int, tick: Callable[[float], None]
) -> Run:
    """Train a model for some steps.

    Args:
        module: a :class:`GPT`, compiled or not.
        text: what to learn.
        steps: how many.
        batch, length: size of a batch in passages, and of a passage in tokens.
        tick: called with the loss after each step.
    """
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    losses: list[float] = []
    times: list[float] = []
    for _ in range(steps):
        tokens, targets = text.batch(batch, length, generator)
        start = time.perf_counter()
        optimizer.zero_grad()
        _, loss = module(tokens, targets)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
        tick(losses[-1])
    later = sorted(times[1:])
    return Run(losses, times[0], batch * length / later[len(later) // 2])


def save_traces(compiled: object, folder: Path) -> None:
    """Write every stage of the compiled program as a Python file."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {
        "prologue": thunder.last_prologue_traces(compiled),
        "forward": thunder.last_traces(compiled),
        "backward": thunder.last_backward_traces(compiled),
        "epilogue": thunder.last_epilogue_traces(compiled),
    }
    for kind, traces in kinds.items():
        for number, trace in enumerate(traces):
            (folder / f"{kind}_{number}.py").write_text(trace.python(), encoding="utf-8")


def main() -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--traces", type=Path, default=Path(tempfile.gettempdir()) / "thunder-demo-traces")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be at least 2: the first one compiles, and the others are timed")
    console = Console()
    text = python_documentation()
    config = GPTConfig(len(text.characters))
    torch.manual_seed(0)
    model = GPT(config)
    reference = copy.deepcopy(model)
    console.print(
        f"A GPT of {sum(p.numel() for p in model.parameters()):,} parameters, {len(text.data):,} characters of text, "
        f"{options.steps} steps of {options.batch} x {config.block} characters."
    )
    compiled = thunder.jit(model)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeElapsedColumn(),
    )
    runs = {}
    with Progress(*columns, console=console) as progress:
        for name, module in (("eager", reference), ("thunder", compiled)):
            task = progress.add_task(name, total=options.steps, loss=float("nan"))
            runs[name] = train(
                module, text, options.steps, options.batch, config.block,
                lambda loss, task=task: progress.update(task, advance=1, loss=loss),
            )  # fmt: skip
    return report(console, runs, compiled, options.traces)


def report(console: Console, runs: dict[str, Run], compiled: object, folder: Path) -> int:
    """Print how the runs compare, and save the traces; return the exit status."""
    ours, eager = runs["thunder"], runs["eager"]
    table = Table(title="Training")
    for column in ("", "first loss", "last loss", "tokens/s", "first step, s"):
        table.add_column(column, justify="left" if not column else "right")
    for name, run in runs.items():
        table.add_row(
            name,
            f"{run.losses[0]:.4f}",
            f"{run.losses[-1]:.4f}",
            f"{run.tokens_per_second:,.0f}",
            f"{run.first_seconds:.2f}",
        )
    console.print(table)
    steps = len(ours.losses)
    shown = sorted({0, steps // 8, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
    console.print("Loss by step: " + ", ".join(f"{i}: {ours.losses[i]:.3f}" for i in shown))
    seconds = sum(sum(p.values()) for p in thunder.compile_stats(compiled).phases)
    console.print(
        f"Speed against eager: {ours.tokens_per_second / eager.tokens_per_second:.2f}x. "
        f"Compiling took {seconds:.2f} s of CPU time."
    )
    save_traces(compiled, folder)
    console.print(f"The traces were written to {folder}", soft_wrap=True)
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours.losses, eager.losses, strict=True))
    console.print(
        f"Largest difference from eager's loss, step by step: {worst:.1e} (relative; {TOLERANCE:.0e} is allowed)"
    )
    if worst > TOLERANCE:
        console.print("[bold red]The compiled model does not train as eager does.")
        return 1
    if ours.losses[-1] >= ours.losses[0]:
        console.print("[bold red]The loss did not fall.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
