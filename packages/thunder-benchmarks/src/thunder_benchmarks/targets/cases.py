"""What is measured: single operations and models, each with sizes that may be set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_benchmarks.gpt import GPT, Attention, GPTConfig

Sizes = Mapping[str, Any]


class NotInstalledError(RuntimeError):
    """A target needs a library that is not there."""


@dataclass(frozen=True)
class Job:
    """Something to call.

    Args:
        target: function or module.
        args, kwargs: of each call.
        loss: what of a call's result is differentiated in training; the sum of the result, if left out.
    """

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], torch.Tensor] = torch.sum


@dataclass(frozen=True)
class Target:
    """A case that can be measured.

    Args:
        name: on the command line.
        sizes: that may be set, with what they are if not.
        make: makes the job, of sizes.

    Example:
        >>> from thunder_benchmarks.targets import TARGETS
        >>> job = TARGETS["softmax"].job(rows=2, columns=3)
        >>> job.target(*job.args).shape
        torch.Size([2, 3])
    """

    name: str
    sizes: Sizes
    make: Callable[..., Job]

    def job(self, **sizes: Any) -> Job:
        """Return what is called, with these sizes.

        Raises:
            ValueError: there is no such size.
        """
        unknown = sizes.keys() - self.sizes.keys()
        if unknown:
            raise ValueError(f"{self.name} has no {', '.join(sorted(unknown))}; it has {', '.join(self.sizes)}")
        return self.make(**{**self.sizes, **sizes})


TARGETS: dict[str, Target] = {}
"""All targets by name."""


def target(name: str, **sizes: Any) -> Callable[[Callable[..., Job]], Callable[..., Job]]:
    """File the decorated function as what makes the jobs of a target."""

    def file(make: Callable[..., Job]) -> Callable[..., Job]:
        if name in TARGETS:
            raise ValueError(f"there is a target {name!r} already")
        TARGETS[name] = Target(name, sizes, make)
        return make

    return file


def tensor(*shape: int, grad: bool = True) -> torch.Tensor:
    """Return normal random numbers."""
    return torch.randn(shape, requires_grad=grad)


MATRIX = {"rows": 512, "columns": 1024}


@target("gelu", **MATRIX)
def gelu(rows: int, columns: int) -> Job:
    return Job(F.gelu, (tensor(rows, columns),))


@target("softmax", **MATRIX)
def softmax(rows: int, columns: int) -> Job:
    return Job(F.softmax, (tensor(rows, columns),), {"dim": -1})


@target("layer-norm", **MATRIX)
def layer_norm(rows: int, columns: int) -> Job:
    return Job(F.layer_norm, (tensor(rows, columns), (columns,), tensor(columns), tensor(columns)))


@target("batch-norm", batch=16, channels=128, length=768)
def batch_norm(batch: int, channels: int, length: int) -> Job:
    return Job(torch.nn.BatchNorm1d(channels), (tensor(batch, channels, length),))


@target("rms-norm", **MATRIX)
def rms_norm(rows: int, columns: int) -> Job:
    def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight

    return Job(run, (tensor(rows, columns), tensor(columns)))


@target("cross-entropy", rows=512, classes=4096)
def cross_entropy(rows: int, classes: int) -> Job:
    return Job(F.cross_entropy, (tensor(rows, classes), torch.randint(classes, (rows,))))


@target("swiglu", rows=256, columns=256, hidden=768)
def swiglu(rows: int, columns: int, hidden: int) -> Job:
    def run(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        return (F.silu(x @ gate) * (x @ up)) @ down

    return Job(run, (tensor(rows, columns), tensor(columns, hidden), tensor(columns, hidden), tensor(hidden, columns)))


@target("rope", batch=4, heads=8, length=128, width=64)
def rope(batch: int, heads: int, length: int, width: int) -> Job:
    def run(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-right, left), dim=-1) * sin

    return Job(run, (tensor(batch, heads, length, width), *(tensor(length, width, grad=False) for _ in range(2))))


@target("attention", batch=2, heads=4, length=128, width=64)
def attention(batch: int, heads: int, length: int, width: int) -> Job:
    parts = tuple([tensor(batch, heads, length, width) for _ in range(3)])
    return Job(F.scaled_dot_product_attention, parts, {"is_causal": True})


@target("self-attention", batch=2, heads=4, length=128, width=256)
def self_attention(batch: int, heads: int, length: int, width: int) -> Job:
    return Job(Attention(GPTConfig(1, block=length, heads=heads, width=width)), (tensor(batch, length, width),))


@target("einsum", batch=8, rows=64, inner=64, columns=64)
def einsum(batch: int, rows: int, inner: int, columns: int) -> Job:
    return Job(torch.einsum, ("bij,bjk->bik", tensor(batch, rows, inner), tensor(batch, inner, columns)))


@target("nanogpt", batch=4, length=64, layers=4, heads=4, width=128, vocabulary=512)
def nanogpt(batch: int, length: int, layers: int, heads: int, width: int, vocabulary: int) -> Job:
    model = GPT(GPTConfig(vocabulary, block=length, layers=layers, heads=heads, width=width))
    tokens = torch.randint(vocabulary, (batch, length))
    return Job(model, (tokens, tokens), loss=lambda result: result[1])
