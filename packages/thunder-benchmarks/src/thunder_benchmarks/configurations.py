"""Check that models trained in parallel train as in one process: a table of models and ways.

torchrun --nproc-per-node 2 -m thunder_benchmarks.configurations [--steps N] [--only WORDS] [--write FILE]
"""

from __future__ import annotations

import argparse
import copy
import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from thunder_distributed import (
    Colwise,
    FSDPBucketingStrategy,
    FSDPType,
    Rowwise,
    clip_grad_norm_,
    context_parallel,
    ddp,
    fsdp,
    get_model_state_dict,
    parallelize,
    sequence_part,
)
from thunder_frontend import jit

VOCABULARY, LENGTH, WIDTH = 19, 8, 16


class Block(nn.Module):
    """Causal attention and a network."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> Any:
        """Return the next representation of ``x``, shape ``(batch, length, width)``."""
        y = self.first(x)
        q, k, v = (f(y).unflatten(-1, (-1, 4)).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.drop(self.out(y))
        return x + self.drop(self.down(F.gelu(self.up(self.second(x)))))


class Transformer(nn.Module):
    """A small GPT that takes tokens and their positions.

    Args:
        dropout: probability.
        tied: whether the embedding is the head, too.
    """

    def __init__(self, dropout: float = 0.0, tied: bool = False) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        """Return logits, shape ``(batch, length, vocabulary)``."""
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Network(nn.Module):
    """Layers on embedded tokens, with or without normalisation by the statistics of batches."""

    def __init__(self, normalised: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(LENGTH) if normalised else nn.Identity()
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        """Return logits, shape ``(batch, length, vocabulary)``."""
        return self.head(self.norm(self.down(torch.tanh(self.up(self.tokens(tokens))))))


class Adapted(nn.Module):
    """A linear layer that stays, with a product of two small matrices added that is trained."""

    def __init__(self, layer: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, layer.in_features) / 4)
        self.b = nn.Parameter(torch.randn(layer.out_features, rank) / 8)

    def forward(self, x: torch.Tensor) -> Any:
        """Return the layer's result, and what is added to it."""
        return self.layer(x) + F.linear(F.linear(x, self.a), self.b)


def frozen() -> nn.Module:
    """Return a transformer whose first block is not trained."""
    model = Transformer()
    model.blocks[0].requires_grad_(False)
    return model


def adapted() -> nn.Module:
    """Return a transformer of which only low-rank additions to attention are trained."""
    model = Transformer().requires_grad_(False)
    for block in model.blocks:
        block.query, block.value = Adapted(block.query), Adapted(block.value)  # type: ignore[arg-type]
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "transformer": Transformer, "tied": lambda: Transformer(tied=True), "dropout": lambda: Transformer(0.1),
    "frozen": frozen, "LoRA": adapted, "network": Network, "batch norm": lambda: Network(normalised=True),
}  # fmt: skip


PLAN: dict[str, Colwise | Rowwise] = {
    "tokens": Rowwise(), "blocks.*.query": Colwise(), "blocks.*.key": Colwise(), "blocks.*.value": Colwise(),
    "blocks.*.out": Rowwise(), "up": Colwise(), "blocks.*.up": Colwise(), "down": Rowwise(),
    "blocks.*.down": Rowwise(),
}  # fmt: skip


def _by_plan(model: nn.Module) -> nn.Module:
    names = [name for name, _ in model.named_modules()]
    return parallelize(model, None, {k: v for k, v in PLAN.items() if any(fnmatchcase(n, k) for n in names)})


def _zero3(model: nn.Module) -> nn.Module:
    return fsdp(model, sharding_strategy=FSDPType.ZERO3, bucketing_strategy=FSDPBucketingStrategy.BLOCK)


def _mixed(model: nn.Module) -> nn.Module:
    return fsdp(model, param_dtype=torch.bfloat16, reduce_dtype=torch.float32, sharding_strategy=FSDPType.ZERO3)


WAYS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "ddp": ddp, "fsdp ZERO2": fsdp, "fsdp ZERO3, BLOCK": _zero3, "fsdp, bfloat16": _mixed, "tensor": _by_plan,
    "context, ddp": lambda m: ddp(context_parallel(m)), "context, ZERO3": lambda m: _zero3(context_parallel(m)),
}  # fmt: skip


@dataclass(frozen=True)
class Configuration:
    """One way of training one model.

    Args:
        model, way: names of them.
        accumulate: batches for each step of the optimizer.
        clip: the largest norm of gradients; ``None`` for any.
        optimizer: ``"AdamW"`` or ``"SGD"``.
    """

    model: str
    way: str
    accumulate: int = 1
    clip: float | None = None
    optimizer: str = "AdamW"

    def __str__(self) -> str:
        more = [f"{self.accumulate} batches a step"] * (self.accumulate > 1)
        more += [] if self.clip is None else [f"clipped to {self.clip}"]
        return f"| {self.model} | {self.way} | {', '.join([self.optimizer, *more])} |"


def configurations() -> Iterator[Configuration]:
    """Yield all that are checked."""
    sharded = ("ddp", "fsdp ZERO2", "fsdp ZERO3, BLOCK")
    for model, way in itertools.product(MODELS, sharded):
        yield Configuration(model, way)
        if model not in ("dropout", "batch norm"):
            yield Configuration(model, way, accumulate=2, clip=0.5)
    for model in ("transformer", "tied", "frozen", "LoRA", "network"):
        yield Configuration(model, "fsdp, bfloat16", optimizer="SGD")
    for model in ("transformer", "network"):
        yield Configuration(model, "tensor")
        yield Configuration(model, "tensor", accumulate=2, clip=0.5)
        yield Configuration(model, "tensor", optimizer="SGD")
    for model, way in itertools.product(("transformer", "tied", "frozen", "LoRA"), ("context, ddp", "context, ZERO3")):
        yield Configuration(model, way)
        yield Configuration(model, way, accumulate=2, clip=0.5, optimizer="SGD")


@dataclass
class Found:
    """How far training in parallel is from one process.

    Args:
        losses: the largest relative difference of losses.
        parameters: the largest difference of parameters, relative to the largest of a tensor.
    """

    losses: float = 0.0
    parameters: float = 0.0


def compared(at: Configuration, steps: int, rank: int, size: int) -> Found:
    """Train both ways, and compare."""
    torch.manual_seed(7)
    model = MODELS[at.model]()
    theirs = copy.deepcopy(model)
    ours = WAYS[at.way](model)
    local = at.model in ("dropout", "batch norm")  # what each process draws, or counts, is its own, as in PyTorch
    beside: nn.Module = DistributedDataParallel(theirs) if local else theirs
    if local:
        beside = DistributedDataParallel(jit(theirs)) if at.model == "dropout" else beside
    optimizers = [_optimizer(at, m) for m in (ours, theirs)]
    generator = torch.Generator().manual_seed(11)
    found = Found()
    for i in range(steps):
        batches = [torch.randint(VOCABULARY, (2 * size, LENGTH), generator=generator) for _ in range(at.accumulate)]
        torch.manual_seed(100 * i + rank)
        mine = _step(at, ours, batches, optimizers[0], lambda t: _share(at.way, t, rank, size))
        torch.manual_seed(100 * i + rank)
        expected = _step(at, beside, batches, optimizers[1], lambda t: t.chunk(size)[rank] if local else t)
        losses = [mine, expected]
        for j, shared in enumerate((at.way != "tensor", local)):
            if shared:
                dist.all_reduce(losses[j])
                losses[j] /= size
        found.losses = max(found.losses, (abs(losses[0] - losses[1]) / losses[1]).item())
    whole = get_model_state_dict(ours, full=True)
    for name, value in theirs.named_parameters():
        difference = (whole[name] - value.detach()).abs().amax() / value.detach().abs().amax().clamp_min(1e-6)
        found.parameters = max(found.parameters, difference.item())
    return found


def _share(way: str, t: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    if way == "tensor":
        return t
    return sequence_part(t) if way.startswith("context") else t.chunk(size)[rank]


def _optimizer(at: Configuration, model: nn.Module) -> torch.optim.Optimizer:
    trained = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.SGD(trained, lr=0.05) if at.optimizer == "SGD" else torch.optim.AdamW(trained, lr=1e-3, eps=1e-4)


def _step(
    at: Configuration, model: nn.Module, batches: list[torch.Tensor], optimizer: torch.optim.Optimizer, share: Any
) -> torch.Tensor:
    total = torch.zeros(())
    for i, tokens in enumerate(batches):
        positions = torch.arange(LENGTH).expand(len(tokens), -1)
        x, where, y = (share(t) for t in (tokens, positions, tokens.roll(1, 1)))
        adds_up = i + 1 < len(batches) and hasattr(model, "no_sync")
        with model.no_sync() if adds_up else nullcontext():  # type: ignore[operator]
            loss = F.cross_entropy(model(x, where).float().flatten(0, 1), y.flatten()) / len(batches)
            loss.backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    if at.clip is not None:
        (nn.utils.clip_grad_norm_ if not _parallel(model) else clip_grad_norm_)(model_parameters(model), at.clip)
    optimizer.step()
    optimizer.zero_grad()
    return total


def _parallel(model: nn.Module) -> bool:
    return "thunder" in type(model).__mro__[1].__module__


def model_parameters(model: nn.Module) -> Any:
    """Return what gradients are clipped of: the model itself if it is trained in parallel, else its parameters."""
    return model if _parallel(model) else model.parameters()


HEAD = "| model | way | optimizer | losses apart by | parameters apart by | the same |"
TOLERANCES = {"fsdp, bfloat16": (2e-2, 5e-2)}
"""How far losses and parameters may be away; float32 rounding, unless parameters are gathered in fewer bits."""


def main() -> int:
    """Check all configurations; return how many differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    lines, wrong = [], 0
    start = time.monotonic()
    for at in configurations():
        if options.only not in str(at):
            continue
        try:
            found = compared(at, options.steps, rank, size)
            losses, parameters = TOLERANCES.get(at.way, (1e-4, 2e-3))
            fits = found.losses <= losses and found.parameters <= parameters
            text = f" {found.losses:.1e} | {found.parameters:.1e} | {'yes' if fits else 'NO'} |"
        except Exception:
            traceback.print_exc()
            fits, text = False, " | | error |"
        wrong += not fits
        lines.append(f"{at}{text}")
        if rank == 0:
            print(f"{time.monotonic() - start:6.0f} s {lines[-1]}", flush=True)
    if rank == 0 and options.write is not None:
        options.write.write_text("\n".join([HEAD, "|---|---|---|---|---|---|", *lines]) + "\n", encoding="utf-8")
    dist.destroy_process_group()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
