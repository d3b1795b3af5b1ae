"""Parts of `tools/gpu.py`: programs and their gradients by each executor, and training, against eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from gpu_machine import Check, Machine
from torch import nn

import thunder
from thunder_benchmarks import GPT, GPTConfig
from thunder_executors_apex import rotary

F = nn.functional
Program = tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]
ANGLES = torch.arange(16)[:, None] * 10_000 ** (-torch.arange(32).repeat(2) / 32)
TABLES = (ANGLES.cos(), ANGLES.sin())
TARGET = torch.tensor([1, 7, -100, 300] * 8)


def attention(**options: Any) -> Callable[..., torch.Tensor]:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


PROGRAMS: dict[str, Program] = {
    "attention": (attention(), ((2, 4, 64, 64),) * 3),
    "causal attention": (attention(is_causal=True), ((2, 4, 65, 64),) * 3),
    "attention of odd widths": (attention(is_causal=True), ((2, 4, 33, 60),) * 3),
    "grouped attention": (attention(is_causal=True, enable_gqa=True), ((2, 8, 64, 64), (2, 2, 64, 64), (2, 2, 64, 64))),
    "masked attention": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m.detach()),
        ((2, 4, 33, 64), (2, 4, 40, 64), (2, 4, 40, 64), (1, 1, 33, 40)),
    ),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (512,), w, b), ((64, 512), (512,), (512,))),
    "rms norm": (lambda x, w: F.rms_norm(x, (512,), w, 1e-5), ((64, 512), (512,))),
    "softmax": (lambda x: torch.softmax(x * 2, -1) + x, ((64, 512),)),
    "pointwise": (lambda x, y: F.gelu(x * y + 1) * torch.sigmoid(x) + y.sum(0), ((64, 512), (64, 512))),
    "indexing": (lambda x: x[:, ::2][TARGET.to(x.device).clamp(0, 31)] * 2 + 1, ((32, 64),)),
    "embedding": (lambda w: F.embedding(TARGET.to(w.device).clamp(0), w).tanh() * 2, ((512, 64),)),
    "cross entropy": (lambda x: F.cross_entropy(x, TARGET.to(x.device)), ((32, 512),)),
    "linear": (lambda x, w, b: F.linear(x, w, b).relu(), ((64, 128), (256, 128), (256,))),
    "linear, gelu": (lambda x, w, b: F.gelu(F.linear(x, w, b)), ((64, 128), (256, 128), (256,))),
    "rotary": (lambda x: rotary(x, *[t.to(x.device) for t in TABLES]), ((16, 2, 4, 64),)),
    "transposed": (lambda x, y: (x.t().exp() + y.t()) * 2, ((63, 65), (63, 65))),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1).relu(), ((2, 8, 12, 12), (16, 8, 3, 3))),
}  # fmt: skip
SIZES = {torch.float32: 2e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""How far results may be off, relative to the norm; float32 without products in fewer bits."""
EIGHT_BITS = 0.15
"""The same, where products are of eight bits."""


def checks(machine: Machine) -> Iterator[Check]:
    """Programs and gradients by each executor and by all together, against eager in double precision."""
    ways = [[name] for name in machine.able()]
    if len(ways) > 1:
        ways.append([name for name in machine.able() if name not in ("torch", "inductor", "transformer_engine")])
    for executors in ways:
        for name, program in PROGRAMS.items():
            for dtype in SIZES:
                title = f"{'+'.join(executors)}: {name}, {str(dtype).removeprefix('torch.')}"
                yield Check(title, partial(compare, program, dtype, executors, machine.device))


def compare(program: Program, dtype: torch.dtype, executors: list[str], device: torch.device) -> str:
    """Compare values and gradients; return who ran what."""
    function, shapes = program
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator).to(dtype).to(device) for shape in shapes]
    mine = [v.clone().requires_grad_() for v in values]
    truth = [v.double().requires_grad_() for v in values]
    run = thunder.jit(function, executors=list(dict.fromkeys([*executors, "torch"])))
    y, expected = run(*mine), function(*truth)
    dy = torch.randn_like(expected)
    found = [y, *torch.autograd.grad(y, mine, dy.to(dtype), allow_unused=True)]
    wanted = [expected, *torch.autograd.grad(expected, truth, dy, allow_unused=True)]
    assert [t is None for t in found] == [t is None for t in wanted], "other inputs have gradients"
    size = EIGHT_BITS if "transformer_engine" in executors else SIZES[dtype]
    worst = max(
        float((a.detach().double() - b.detach()).norm() / b.detach().norm().clamp(min=1e-9))
        for a, b in zip(found, wanted, strict=True)
        if b is not None
    )
    assert worst < size, f"off by {worst:.2e} of the norm, at most {size:.0e}"
    return f"off by {worst:.1e}; by {', '.join(namespaces(run))}"


def namespaces(run: Any) -> list[str]:
    """Return whose calls the program of a compiled function is made of."""
    bound = thunder.last_traces(run)[-1].bound_symbols
    return sorted({b.symbol.namespace for b in bound if b.symbol.namespace != "python"})


class Convolutions(nn.Module):
    """A small network of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GELU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(8, 17)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits ``(batch, length, 17)`` of tokens ``(batch, length)``, by their differences as a picture."""
        x = (tokens[:, None, :, None] - tokens[:, None, None, :]).to(self.head.weight.dtype) / 8
        x = F.interpolate(self.body(x), size=(tokens.shape[1], 1))
        return self.head(x.squeeze(-1).transpose(1, 2))  # type: ignore[no-any-return]


MODELS: dict[str, Callable[[], nn.Module]] = {
    "network": lambda: nn.Sequential(
        nn.Embedding(17, 32), nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 17)
    ),
    "GPT": lambda: GPT(GPTConfig(17, block=16, layers=2, heads=4, width=64)),
    "GPT with dropout": lambda: GPT(GPTConfig(17, block=16, layers=2, heads=4, width=64, dropout=0.1)),
    "convolutions": Convolutions,
}


def training(machine: Machine) -> Iterator[Check]:
    """Models trained by AdamW beside eager, by each executor, by the default ones, and as graphs."""
    steps = 2 if machine.rehearsed else 20
    ways: list[tuple[str, list[str] | None]] = [("default", None), *[(name, [name]) for name in machine.able()]]
    for dtype in (torch.float32, torch.bfloat16):
        for model in MODELS:
            for way, executors in ways:
                run = partial(train, machine, model, dtype, executors, False, steps)
                yield Check(f"{way}: {model}, {str(dtype).removeprefix('torch.')}", run)
    for model in ("network", "GPT", "GPT with dropout"):
        graphed = partial(train, machine, model, torch.float32, ["torch"], True, max(steps, 5))
        yield Check(f"CUDA graphs: {model}", graphed)


def train(
    machine: Machine, model: str, dtype: torch.dtype, executors: list[str] | None, graphs: bool, steps: int
) -> str:
    """Train a model and its copy by eager; return the largest difference of a loss.

    With dropout the masks differ where an executor draws its own, so losses are compared on the average.
    """
    torch.manual_seed(0)
    mine = MODELS[model]().to(machine.device, dtype)
    other = copy.deepcopy(mine)
    transforms = [machine.graphs()] if graphs else []
    listed = None if executors is None else list(dict.fromkeys([*executors, "torch"]))
    run = thunder.jit(mine, executors=listed, transforms=transforms)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-3) for m in (mine, other)]
    losses: list[list[float]] = [[], []]
    for _ in range(steps):
        tokens = torch.randint(17, (4, 16)).to(machine.device)
        for side, (step, optimizer) in enumerate(zip((run, other), optimizers, strict=True)):
            optimizer.zero_grad()
            logits = step(tokens)
            logits = logits[0] if isinstance(logits, tuple) else logits
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.roll(-1, 1).flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses[side].append(float(loss.detach()))
    if "dropout" in model:
        losses = [[sum(each) / len(each)] for each in losses]
    worst = max(abs(a - b) / b for a, b in zip(*losses, strict=True))
    loose = EIGHT_BITS if "transformer_engine" in (executors or []) else 0.05 if dtype is torch.bfloat16 else 2e-3
    allowed = max(loose, 0.1 if "dropout" in model else 0.0)
    assert worst < allowed, f"losses differ by {worst:.1e}, at most {allowed:.0e}"
    replays = [r.replayed for t in transforms for r in t.runs]
    assert not graphs or any(replays), f"no graph was replayed: {[r.reason for t in transforms for r in t.runs]}"
    return f"losses differ by {worst:.1e}" + (f", {sum(replays)} replays" if graphs else "")
