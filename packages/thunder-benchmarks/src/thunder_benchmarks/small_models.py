"""Training steps of models so small that calls take longer than what they compute: beside eager, and torch.compile.

python -m thunder_benchmarks.small_models
python -m thunder_benchmarks.small_models --models "MLP of 3 layers" VAE --compilers eager thunder --rounds 50

A step clears the gradients, calls the compiled model, and computes its loss and the gradients; no optimizer is part of
it. Steps take turns, on one thread, in CPU time, and freed memory stays with the process; of what blocks took, and of
their ratios to eager's of the same round, the table has medians.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import thunder
from thunder_benchmarks.machine import keep_freed_memory
from thunder_benchmarks.tables import show
from thunder_benchmarks.timing import Call, in_turns

COMPILERS: dict[str, Callable[[nn.Module], Any]] = {
    "eager": lambda model: model,
    "thunder": thunder.jit,
    "torch.compile": torch.compile,
}
ROWS, WIDTH, CLASSES = 16, 32, 10
WARM = 20
"""Steps before any is measured: by then, all that is compiled later is compiled."""


@dataclass(frozen=True)
class Job:
    """A model to train.

    Args:
        model: takes ``x``.
        x: one batch.
        loss: of what the model returns.
    """

    model: nn.Module
    x: Tensor
    loss: Callable[[Any], Tensor]

    def step(self, compile: Callable[[nn.Module], Any]) -> Call:
        """Return a step of a copy of the model, compiled."""
        model = copy.deepcopy(self.model)
        compiled = compile(model)

        def step() -> None:
            model.zero_grad(set_to_none=True)
            loss: Any = self.loss(compiled(self.x))
            loss.backward()

        return step


class Autoencoder(nn.Module):
    """A variational one of two layers to either side; its result is the loss of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.mean, self.log_variance = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8)
        self.outer, self.pixels = nn.Linear(8, WIDTH), nn.Linear(WIDTH, 64)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the reconstruction of ``x`` loses, and how far the code is from a normal distribution."""
        hidden = torch.relu(self.inner(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        deviation = torch.exp(0.5 * log_variance)
        code = mean + torch.randn_like(deviation) * deviation
        made = torch.sigmoid(self.pixels(torch.relu(self.outer(code))))
        lost = functional.binary_cross_entropy(made, x, reduction="sum")
        return lost - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())


def perceptron(layers: int, normalised: bool = False) -> nn.Module:
    """Return linear layers with ``relu`` between them, after batch normalisation if asked for."""
    parts: list[nn.Module] = []
    for _ in range(layers - 1):
        norm = [nn.BatchNorm1d(WIDTH)] if normalised else []
        parts += [nn.Linear(WIDTH, WIDTH), *norm, nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(WIDTH, CLASSES))


def convolutional(normalised: bool = False) -> nn.Module:
    """Return two convolutions, with batch normalisation if asked for, and a linear layer, for images of 16 by 16."""
    norms = [[nn.BatchNorm2d(channels)] if normalised else [] for channels in (8, 16)]
    first = [nn.Conv2d(1, 8, 3), *norms[0], nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, nn.Conv2d(8, 16, 3), *norms[1], nn.ReLU(), nn.Flatten(), nn.Linear(400, CLASSES))


def jobs() -> dict[str, Job]:
    """Return what is measured."""
    rows, images = torch.randn(ROWS, WIDTH), torch.randn(ROWS, 1, 16, 16)
    classes = torch.randint(0, CLASSES, (ROWS,))

    def entropy(made: Tensor) -> Tensor:
        return functional.cross_entropy(made, classes)

    return {
        "MLP of 3 layers": Job(perceptron(3), rows, lambda made: made.square().mean()),
        "MLP of 12 layers": Job(perceptron(12), rows, lambda made: made.square().mean()),
        "VAE": Job(Autoencoder(), torch.rand(ROWS, 64), lambda loss: loss),
        "convolutional": Job(convolutional(), images, entropy),
        "MLP of 4 layers, normalised": Job(perceptron(4, normalised=True), rows, entropy),
        "convolutional, normalised": Job(convolutional(normalised=True), images, entropy),
    }


def measured(job: Job, compilers: list[str], rounds: int, block: float) -> dict[str, tuple[float, float]]:
    """Return what a step takes by each compiler, in microseconds, and that by eager's; the first one is eager."""
    steps = {name: job.step(COMPILERS[name]) for name in compilers}
    for step in [*steps.values()] * WARM:
        step()
    took = in_turns(steps, rounds, block)
    found = {}
    for name, times in took.items():
        ratios = [time / eager for time, eager in zip(times, took[compilers[0]], strict=True)]
        found[name] = statistics.median(times), statistics.median(ratios)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(jobs()), default=list(jobs()))
    parser.add_argument("--compilers", nargs="+", choices=COMPILERS, default=list(COMPILERS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=0.05, help="CPU seconds of a compiler's turn")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    torch.manual_seed(0)
    compilers = ["eager", *[name for name in arguments.compilers if name != "eager"]]
    rows = [["model", *[f"{name}, µs" for name in compilers], *[f"{name} / eager" for name in compilers[1:]]]]
    found = jobs()
    for name in arguments.models:
        took = measured(found[name], compilers, arguments.rounds, arguments.block)
        times = [f"{time:.0f}" for time, _ in took.values()]
        rows.append([name, *times, *[f"{ratio:.2f}" for _, ratio in [*took.values()][1:]]])
    show(rows)


if __name__ == "__main__":
    main()
