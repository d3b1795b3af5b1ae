"""What compiled function transforms take: gradients per sample, ensembles, Jacobians, Hessians, and an inner step.

python -m thunder_benchmarks.transforms                              CPU time of a call, one thread
python -m thunder_benchmarks.transforms --threads 2 --clock wall --cases jacobian hessian
python -m thunder_benchmarks.transforms --compilers eager thunder    without torch.compile, which takes a minute
python -m thunder_benchmarks.transforms --page page.md               writes the table between the marks of a page

Calls take turns, block by block; the times are medians. What a compiler computes is first compared with eager PyTorch.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.func import grad, hessian, jacrev, jvp, vmap

import thunder
from thunder_benchmarks.machine import circumstances
from thunder_benchmarks.tables import markdown, marks_of, show, write_between
from thunder_benchmarks.timing import CLOCKS, Call, in_turns

Weights = list[torch.Tensor]


@dataclass(frozen=True)
class Case:
    """A transformed function and what it is called with.

    Args:
        function: of tensors and lists of them.
        inputs: makes them.

    """

    function: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]


def layers(*sizes: int, copies: tuple[int, ...] = ()) -> Weights:
    """Return weights and biases of linear layers from each size to the next."""
    pairs = zip(sizes, sizes[1:], strict=False)
    return [t for n, m in pairs for t in (torch.randn(*copies, m, n) / n**0.5, torch.randn(*copies, m) * 0.1)]


def mlp(weights: Weights, x: torch.Tensor) -> torch.Tensor:
    """Return what linear layers with tanh between them make of ``x``."""
    for i in range(0, len(weights), 2):
        x = F.linear(x if i == 0 else torch.tanh(x), weights[i], weights[i + 1])
    return x


def squared_error(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the squared error of an MLP."""
    return ((mlp(weights, x) - y) ** 2).sum()


def image_loss(weights: Weights, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of one image by a network of two convolutions."""
    x = F.max_pool2d(torch.relu(F.conv2d(image[None], weights[0], weights[1], padding=1)), 2)
    x = F.max_pool2d(torch.relu(F.conv2d(x, weights[2], weights[3], padding=1)), 2)
    return F.cross_entropy(F.linear(x.flatten(1), weights[4], weights[5]), label[None])


def convnet() -> Weights:
    """Return the weights of :func:`image_loss`, for images of 28 by 28."""
    shapes = ((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (10, 784), (10,))
    return [torch.randn(shape) * 0.1 for shape in shapes]


def two_products(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the squared error of two products with tanh between them."""
    first, second = weights
    return ((torch.tanh(x @ first) @ second - y) ** 2).sum()


def ensemble(weights: Weights, x: torch.Tensor) -> torch.Tensor:
    """Return the predictions of all members for the same inputs."""
    found: torch.Tensor = vmap(mlp, (0, None))(weights, x)
    return found


def ensemble_gradients(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> Weights:
    """Return the gradients of all members."""
    found: Weights = vmap(grad(squared_error), (0, None, None))(weights, x, y)
    return found


def hessian_vector(weights: Weights, directions: Weights, x: torch.Tensor, y: torch.Tensor) -> Weights:
    """Return the product of the Hessian of the loss with a direction, forward over reverse."""

    def gradients(w: Weights) -> Weights:
        made: Weights = grad(squared_error)(w, x, y)
        return made

    found: Weights = jvp(gradients, (weights,), (directions,))[1]
    return found


def adapted_loss(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the loss after an inner step of each task."""

    def of_task(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        gradients = grad(squared_error)(weights, x, y)
        return squared_error([w - 0.01 * g for w, g in zip(weights, gradients, strict=True)], x, y)

    return vmap(of_task)(x, y).mean()


def maml(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> Weights:
    """Return the gradients of the loss after the inner steps."""
    found: Weights = grad(adapted_loss)(weights, x, y)
    return found


def _two(samples: int, sizes: tuple[int, int, int]) -> tuple[Any, ...]:
    n, k, m = sizes
    return [torch.randn(n, k), torch.randn(k, m)], torch.randn(samples, n), torch.randn(samples, m)


def _mlp_data(sizes: Sequence[int], *batch: int, copies: tuple[int, ...] = ()) -> tuple[Any, ...]:
    return layers(*sizes, copies=copies), torch.randn(*batch, sizes[0]), torch.randn(*batch, sizes[-1])


def _directed(sizes: Sequence[int], *batch: int) -> tuple[Any, ...]:
    weights, x, y = _mlp_data(sizes, *batch)
    return weights, [torch.randn_like(w) for w in weights], x, y


per_sample = vmap(grad(squared_error), (None, 0, 0))

CASES = {
    "per_sample_small": Case(vmap(grad(two_products), (None, 0, 0)), partial(_two, 16, (32, 64, 8))),
    "per_sample_mlp": Case(per_sample, partial(_mlp_data, (256, 256, 10), 64)),
    "per_sample_convnet": Case(
        vmap(grad(image_loss), (None, 0, 0)),
        lambda: (convnet(), torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))),
    ),
    "ensemble": Case(ensemble, lambda: _mlp_data((128, 256, 10), 128, copies=(8,))[:2]),
    "ensemble_gradients": Case(ensemble_gradients, lambda: _mlp_data((128, 256, 10), 128, copies=(8,))),
    "jacobian": Case(vmap(jacrev(mlp, 1), (None, 0)), lambda: _mlp_data((64, 128, 32), 16)[:2]),
    "hessian": Case(hessian(squared_error, 1), partial(_mlp_data, (64, 128, 128, 1))),
    "hessian_small": Case(hessian(squared_error, 1), partial(_mlp_data, (8, 16, 1))),
    "hessian_vector": Case(hessian_vector, partial(_directed, (128, 256, 10), 64)),
    "maml": Case(maml, partial(_mlp_data, (1, 40, 40, 1), 8, 10)),
}

COMPILERS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "torch.compile": lambda f: torch.compile(f, dynamic=False),
    "thunder": thunder.jit,
    "thunder, kernels": partial(thunder.jit, executors=["+llvm", "+native"]),
}
PEER = "torch.compile"
WARM = 5
"""Calls before any is measured."""


def compared(name: str, compilers: Sequence[str], rounds: int, block: float, clock: Callable[[], float]) -> list[float]:
    """Return the time of a call by each compiler, in microseconds."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    case = CASES[name]
    args = case.inputs()
    truth = case.function(*args)
    calls: dict[str, Call] = {}
    for compiler in compilers:
        call = partial(COMPILERS[compiler](case.function), *args)
        for _ in range(WARM):
            found = call()
        torch.testing.assert_close(found, truth, rtol=1e-3, atol=1e-3)
        calls[compiler] = call
    return [statistics.median(times) for times in in_turns(calls, rounds, block, clock).values()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=0.02, help="seconds that one compiler's calls take in a turn")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--compilers", nargs="*", choices=list(COMPILERS), default=list(COMPILERS))
    parser.add_argument("--clock", choices=list(CLOCKS), default="cpu")
    parser.add_argument("--page", type=Path, help="of Markdown, on which the table stands")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    names = options.compilers
    ratios = [n for n in names if n.startswith("thunder")] if PEER in names else []
    rows = [["case", *[f"{n}, µs" for n in names], *[f"{n} / {PEER}" for n in ratios]]]
    for case in options.cases:
        times = compared(case, names, options.rounds, options.block, CLOCKS[options.clock])
        took = dict(zip(names, times, strict=True))
        rows.append([case, *[f"{t:.0f}" for t in times], *[f"{took[n] / took[PEER]:.2f}" for n in ratios]])
        print(*rows[-1], flush=True)
    if options.page is not None:
        text = "\n".join([*[f"- {line}" for line in circumstances()], "", markdown(rows)])
        write_between(options.page, marks_of("thunder_benchmarks.transforms"), text)
    else:
        show(rows, width=140)
        print(*circumstances(), sep="\n")


if __name__ == "__main__":
    main()
