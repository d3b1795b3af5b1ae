"""Trains models eagerly and compiled, side by side, and tells whether ten steps of an optimizer end in the same place.

python tools/training_sweep.py                            all models below, in both ways
python tools/training_sweep.py gpt resnet18 llama         some of them, or any type of transformers
python tools/training_sweep.py --way step --dropout 0.1   whole steps only, with dropout
python tools/training_sweep.py --table docs/training.md

There are two ways: the *model* is compiled, and backward and optimizer run as ever; or the whole *step* is: zero_grad,
forward, loss, backward and optimizer in one program. Right is, in float32: gradients within 1e-4 of the largest one,
losses and parameters within 1e-4 of their largest value, after ten steps.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers_sweep
from compare_models import (
    DAMPING,
    RATE,
    STEPS,
    TRAINED,
    Difference,
    compare_gradients,
    compare_parameters,
    difference,
    loss_of,
    train_both,
)

import thunder
from thunder_benchmarks import GPT, GPTConfig
from thunder_testing import sweeps

LIBRARY = ("llama", "bert", "gpt2", "t5", "mixtral", "whisper", "vit", "gemma2", "qwen2", "distilbert")
WAYS = ("model", "step")
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": lambda parameters, eps: torch.optim.AdamW(parameters, lr=RATE, eps=eps),
    "adamw-lists": lambda parameters, eps: torch.optim.AdamW(parameters, lr=RATE, eps=eps, foreach=True),
    "sgd": lambda parameters, eps: torch.optim.SGD(parameters, lr=RATE, momentum=0.9, weight_decay=0.01),
}

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Row:
    """What became of one model.

    Args:
        model, way, optimizer: what was trained, and how.
        outcome: ``right``, or what went wrong.
        programs: how many were compiled.
        first_seconds: CPU seconds of the first step, compiling included.
    """

    model: str
    way: str
    optimizer: str
    outcome: str = ""
    programs: int = 0
    first_seconds: float = 0.0


# --- models ----------------------------------------------------------------------------------------------------------


def gpt(dropout: float) -> tuple[torch.nn.Module, Inputs]:
    """A GPT as in nanoGPT, with its loss."""
    model = GPT(GPTConfig(vocabulary=65, block=32, layers=3, width=48, dropout=dropout))
    return model, ((torch.randint(65, (2, 32)), torch.randint(65, (2, 32))), {})


def litgpt_llama(dropout: float) -> tuple[torch.nn.Module, Inputs]:
    """A Llama of litgpt."""
    model = importlib.import_module("litgpt.model").GPT(
        importlib.import_module("litgpt.config").Config(
            block_size=32, vocab_size=65, padded_vocab_size=65, n_layer=3, n_head=4, n_embd=32, n_query_groups=2,
            rotary_percentage=1.0, parallel_residual=False, bias=False, norm_class_name="RMSNorm",
            mlp_class_name="LLaMAMLP", intermediate_size=64,
        )
    )  # fmt: skip
    for parameter in model.parameters():  # the package leaves this to its trainer
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    return model, ((torch.randint(65, (2, 32)),), {})


class Block(torch.nn.Module):
    """Two convolutions with a connection around them."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.second = torch.nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.first_norm, self.second_norm = torch.nn.BatchNorm2d(channels_out), torch.nn.BatchNorm2d(channels_out)
        self.around: torch.nn.Module = torch.nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.around = torch.nn.Sequential(
                torch.nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), torch.nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``float[batch, channels_in, height, width]`` to ``float[batch, channels_out, ...]``."""
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.around(x))


def resnet18(dropout: float) -> tuple[torch.nn.Module, Inputs]:
    """ResNet-18, narrow."""
    width = 8
    sizes = [(width, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 2), (4 * width, 8 * width, 2)]
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, width, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
        torch.nn.MaxPool2d(3, 2, 1),
        *[block for i, o, s in sizes for block in (Block(i, o, s), Block(o, o, 1))],
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8 * width, 10),
    )  # fmt: skip
    return model, ((torch.randn(2, 3, 64, 64),), {})


OWN: dict[str, Callable[[float], tuple[torch.nn.Module, Inputs]]] = {"gpt": gpt, "resnet18": resnet18}
if importlib.util.find_spec("litgpt") is not None:
    OWN["litgpt-llama"] = litgpt_llama


def build(name: str, dropout: float) -> tuple[torch.nn.Module, Inputs]:
    """Return a model in training mode, and its inputs."""
    torch.manual_seed(0)
    if name in OWN:
        model, inputs = OWN[name](dropout)
    else:
        sweep = transformers_sweep.Sweep(transformers_sweep.parsed(["--labels"]))
        model, named = sweep.build(name, "plain", dropout)
        inputs = ((), named)
    return model.train(), inputs


def loss(output: Any) -> torch.Tensor:
    """Return the loss in an output: what has none is made to have one."""
    if isinstance(output, tuple) and len(output) == 2 and isinstance(output[1], torch.Tensor) and not output[1].ndim:
        return output[1]
    return loss_of(output)


# --- training --------------------------------------------------------------------------------------------------------


def train(row: Row, dropout: float) -> str:
    """Train one model both eagerly and compiled; return ``right``."""
    eager, (args, kwargs) = build(row.model, dropout)
    ours = copy.deepcopy(eager)
    if row.way == "model":
        compiled = thunder.jit(ours)
        start = time.process_time()
        train_both(eager, ours, (eager, compiled), lambda: copy.deepcopy((args, kwargs)), loss)
        row.first_seconds, row.programs = time.process_time() - start, thunder.cache_misses(compiled)
        return "right"
    eps = DAMPING * _largest_gradient(copy.deepcopy(eager), args, kwargs)
    make = OPTIMIZERS[row.optimizer]
    eager_step = step_of(eager, make(eager.parameters(), eps))
    our_step = thunder.jit(step_of(ours, make(ours.parameters(), eps)))
    for number in range(STEPS):
        losses = []
        for run in (eager_step, our_step):
            torch.manual_seed(number)
            start = time.process_time()
            losses.append(run(*copy.deepcopy(args), **copy.deepcopy(kwargs)).detach())
        if number == 0:
            row.first_seconds = time.process_time() - start
            compare_gradients(ours, eager, 1e-4)
        error = difference(losses[1], losses[0])
        if not error <= TRAINED[torch.float32]:
            raise Difference(f"loss of step {number} differs by {error:.1e}")
    compare_parameters(ours, eager, TRAINED[torch.float32])
    row.programs = thunder.cache_misses(our_step)
    return "right"


def step_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Callable[..., torch.Tensor]:
    """Return a whole step of training as users write it."""

    def step(*args: Any, **kwargs: Any) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        value = loss(model(*args, **kwargs))
        value.backward()
        optimizer.step()
        return value

    return step


def _largest_gradient(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    loss(model(*copy.deepcopy(args), **copy.deepcopy(kwargs))).backward()
    return max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)


def row_of(name: str, way: str, optimizer: str, dropout: float, verbose: bool = False) -> Row:
    """Train one model in one way, and say what became of it."""
    row = Row(name, way, optimizer)
    try:
        row.outcome = train(row, dropout)
    except Difference as error:
        row.outcome = str(error)
    except Exception as error:
        if verbose:
            traceback.print_exc()
        row.outcome = f"{type(error).__name__}: {error}".strip().split("\n")[0][:200]
    return row


def table(rows: list[Row], command: str) -> str:
    """Return the rows as a page."""
    lines = [
        "# Training compared with eager",
        "",
        f"Results of `{command}` on PyTorch {torch.__version__.partition('+')[0]}: small models with random weights,",
        f"trained for {STEPS} steps, eager and compiled. Either the *model* is compiled, or the whole",
        "*step*: `zero_grad`, forward, loss, `backward()` and optimizer in one program. Right means that gradients,",
        "losses and the final parameters match eager (float32: within "
        f"{TRAINED[torch.float32]:g} of the largest value).",
        f"{sum(r.outcome == 'right' for r in rows)} of {len(rows)} are right.",
        "",
        *sweeps.table(
            ["model", "compiled", "optimizer", "outcome", "programs"],
            [(r.model, r.way, r.optimizer, sweeps.cell(r.outcome), r.programs) for r in rows],
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"of {', '.join([*OWN, *LIBRARY])}, or any type of transformers")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), action="append", help="of whole steps")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--verbose", action="store_true", help="print tracebacks")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    for name in options.models or [*OWN, *LIBRARY]:
        for way in options.way or WAYS:
            for optimizer in (options.optimizer or ["adamw", "sgd"]) if way == "step" else ["adamw"]:
                rows.append(row_of(name, way, optimizer, options.dropout, options.verbose))
                row = rows[-1]
                print(f"{name:14} {way:6} {optimizer:12} {row.first_seconds:6.2f} s  {row.outcome}", flush=True)
    print(f"{sum(r.outcome == 'right' for r in rows)} of {len(rows)} right")
    if options.table:
        told = sweeps.command("tools/training_sweep.py", arguments, ("--table", options.table))
        options.table.write_text(table(rows, told), encoding="utf-8")
    return 0 if all(r.outcome == "right" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
