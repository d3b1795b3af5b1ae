"""The main job: train a small GPT on real text, compiled, and set it beside eager PyTorch.

python -m thunder_benchmarks.demo [--steps N] [--traces FOLDER] [--distributed N]
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import thunder
from thunder_benchmarks.distributed import start
from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.text import Text, python_documentation

TOLERANCE = 2e-4
"""How far, relatively, a compiled step's loss may be from eager's: float32 rounding, amplified by the steps before."""


class Training:
    """One of the trainings that are set beside each other.

    Args:
        module: a :class:`GPT`, compiled or not.
        text: what to learn.
        batch, length: size of a batch in passages, and of a passage in tokens.

    ``losses`` and ``times``, in seconds of wall clock, are those of each step; the first one compiles.
    """

    def __init__(self, module: torch.nn.Module, text: Text, batch: int, length: int) -> None:
        self._module, self._text, self._size = module, text, (batch, length)
        self._generator = torch.Generator().manual_seed(1)
        self._optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        self.losses: list[float] = []
        self.times: list[float] = []

    def step(self) -> None:
        """Train for one step."""
        tokens, targets = self._text.batch(*self._size, self._generator)
        start = time.perf_counter()
        self._optimizer.zero_grad()
        _, loss = self._module(tokens, targets)
        loss.backward()
        self._optimizer.step()
        self.times.append(time.perf_counter() - start)
        self.losses.append(loss.item())

    @property
    def tokens_per_second(self) -> float:
        """Of the median step after the first."""
        batch, length = self._size
        return batch * length / statistics.median(self.times[1:])


def train_in_turn(trainings: Sequence[Training], steps: int, tick: Callable[[Training], None]) -> None:
    """Train all for some steps, taking turns, so that the machine's moods meet all alike.

    Args:
        trainings: what takes turns; who goes first changes from step to step.
        steps: how many each.
        tick: called after each step of each.
    """
    for number in range(steps):
        for training in trainings if number % 2 else reversed(trainings):
            training.step()
            tick(training)


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
    parser.add_argument("--distributed", type=int, metavar="N", help="train sharded over N processes instead")
    parser.add_argument("--traces", type=Path, default=Path(tempfile.gettempdir()) / "thunder-demo-traces")
    options = parser.parse_args()
    if options.distributed is not None:
        return start(options.distributed, ["--steps", str(options.steps), "--batch", str(options.batch)])
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
    modules = {"eager": reference, "thunder": compiled}
    runs = {name: Training(module, text, options.batch, config.block) for name, module in modules.items()}
    with Progress(*columns, console=console) as progress:
        bars = {id(run): progress.add_task(name, total=options.steps, loss=float("nan")) for name, run in runs.items()}
        train_in_turn(
            list(runs.values()),
            options.steps,
            lambda run: progress.update(bars[id(run)], advance=1, loss=run.losses[-1]),
        )
    return report(console, runs, compiled, options.traces)


def report(console: Console, runs: dict[str, Training], compiled: object, folder: Path) -> int:
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
            f"{run.times[0]:.2f}",
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
