"""What the first call of a compiled model costs: CPU seconds of a fresh process each, kernels warmed up by eager.

python -m thunder_benchmarks.first_calls                     a GPT of 4 and of 16 layers
python -m thunder_benchmarks.first_calls --layers 2 6 --rounds 5
python -m thunder_benchmarks.first_calls --thunder           Thunder alone, by phases, and for each further layer
python -m thunder_benchmarks.first_calls --model images      a convolutional network; encoder is PyTorch's own
python -m thunder_benchmarks.first_calls --thunder --model experts    sizes that only the run of the program tells
python -m thunder_benchmarks.first_calls --model norms --compilers thunder "thunder, fake run"    writes in each layer
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
from rich.progress import track
from torch._subclasses.fake_tensor import FakeTensorMode

import thunder
from thunder_benchmarks.gpt import GPT, GPTConfig
from thunder_benchmarks.machine import in_a_fresh_process
from thunder_benchmarks.tables import show


def after_a_fake_run(model: nn.Module) -> Callable[..., Any]:
    """Return the compiled model, whose calls run all operations on fake tensors under PyTorch's autograd before."""
    compiled, mode = thunder.jit(model), FakeTensorMode(allow_non_fake_inputs=True)

    def call(*given: torch.Tensor) -> Any:
        with mode:
            model(*map(mode.from_tensor, given))
        return compiled(*given)

    return call


COMPILERS: dict[str, Callable[[Any], Any]] = {
    "thunder": thunder.jit,
    "torch.compile, eager": lambda model: torch.compile(model, backend="eager"),
    "torch.compile, aot_eager": lambda model: torch.compile(model, backend="aot_eager"),
    "thunder, fake run": after_a_fake_run,
}
PEERS = list(COMPILERS)[:3]
"""Who is compared unless others are named."""
WORK = ("forward", "step")
MODELS = ("gpt", "experts", "norms", "images", "encoder")


class Experts(nn.Module):
    """Layers that hand each row to one of four experts, by masks.

    Args:
        layers: how many.
        width: of a row.
    """

    def __init__(self, layers: int, width: int = 32) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.ModuleList(nn.Linear(width, width) for _ in range(4)) for _ in range(layers))

    def forward(self, x: torch.Tensor, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
        layer: Any
        for layer in self.experts:
            chosen = x[:, : len(layer)].argmax(1)
            out = torch.zeros_like(x)
            for number, expert in enumerate(layer):
                mask = chosen == number
                out[mask] = expert(x[mask])
            x = x + out
        return x, x.square().mean()


class Norms(nn.Module):
    """Layers with batch norms, each of which writes to its buffers.

    Args:
        layers: how many.
        width: of a row.
    """

    def __init__(self, layers: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential()
        for _ in range(layers):
            self.layers.extend([nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(inplace=True)])

    def forward(self, x: torch.Tensor, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layers(x)
        return x, x.square().mean()


class Images(nn.Module):
    """A convolutional network: batch norms, pooling, dropout.

    Args:
        layers: how many.
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 3), nn.MaxPool2d(2))
        for _ in range(layers):
            self.layers.extend([nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()])
        self.layers.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(16, 10)])

    def forward(self, x: torch.Tensor, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layers(x)
        return x, x.square().mean()


class Encoder(nn.Module):
    """PyTorch's encoder of transformers.

    Args:
        layers: how many.
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layers(x)
        return x, x.square().mean()


def model_of(kind: str, layers: int) -> tuple[nn.Module, torch.Tensor]:
    """Return a model, and what it is called with, twice."""
    if kind == "experts":
        return Experts(layers), torch.randn(64, 32)
    if kind == "norms":
        with FakeTensorMode():  # loads what fake tensors need, which both need
            Norms(1)(torch.ones(2, 32), None)
        return Norms(layers), torch.randn(64, 32)
    if kind == "images":
        return Images(layers), torch.randn(4, 3, 24, 24)
    if kind == "encoder":
        return Encoder(layers), torch.randn(4, 16, 32)
    model = GPT(GPTConfig(256, block=64, layers=layers, heads=4, width=128))
    return model, torch.randint(256, (2, 64))


def seconds(compiler: str, work: str, layers: int, kind: str = "gpt") -> dict[str, float]:
    """Return the CPU seconds of a first call in this process: of the whole, and of Thunder's phases.

    Args:
        compiler: one of :data:`COMPILERS`.
        work: ``"forward"``, without gradients, or ``"step"``, forward and backward.
        layers: of the model.
        kind: one of :data:`MODELS`; a GPT has width 128.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, given = model_of(kind, layers)

    def run(target: Callable[..., Any]) -> None:
        loss = target(given, given)[1]
        if work == "step":
            loss.backward()

    with torch.set_grad_enabled(work == "step"):
        run(model)
        model.zero_grad()
        compiled = COMPILERS[compiler](model)
        start = time.process_time()
        run(compiled)
        whole = time.process_time() - start
    phases = thunder.compile_stats(compiled).phases[-1] if compiler == "thunder" else {}
    return {"whole": whole, **phases}


def least(compiler: str, work: str, layers: int, kind: str, rounds: int) -> dict[str, float]:
    """Return the least that several processes take: the whole and each phase, whichever process it is of."""
    words = ("-m", "thunder_benchmarks.first_calls", "--one", compiler, work, str(layers), kind)
    found: list[dict[str, float]] = [in_a_fresh_process(*words) for _ in range(rounds)]
    return {phase: min([f[phase] for f in found]) for phase in found[0]}


def by_phases(took: dict[tuple[str, str, int], dict[str, float]], few: int, many: int) -> list[list[str]]:
    """Return what Thunder's phases take, and how much more of each a layer more asks for."""
    rows = [["CPU ms", *[f"{work}, {what}" for work in WORK for what in (few, many, "a layer more", "ratio")]]]
    for phase in took["thunder", WORK[-1], few]:
        row = []
        for work in WORK:
            less, more = (1e3 * took["thunder", work, layers].get(phase, 0.0) for layers in (few, many))
            ratio = f"{more / less:.2f}" if less else ""
            row += [f"{less:.1f}", f"{more:.1f}", f"{(more - less) / (many - few):.2f}", ratio]
        rows.append([phase, *row])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--thunder", action="store_true", help="measure Thunder alone")
    parser.add_argument("--compilers", nargs="+", choices=COMPILERS, default=PEERS, help="measure these")
    parser.add_argument("--model", choices=MODELS, default="gpt")
    parser.add_argument("--one", nargs=4, metavar=("COMPILER", "WORK", "LAYERS", "MODEL"), help="in this process")
    options = parser.parse_args()
    if options.one:
        compiler, work, layers, kind = options.one
        print(json.dumps(seconds(compiler, work, int(layers), kind)))
        return
    compilers = ["thunder"] if options.thunder else options.compilers
    measured = [(c, w, n) for c in compilers for w in WORK for n in options.layers]
    took = {m: least(*m, options.model, options.rounds) for m in track(measured, transient=True)}
    rows = [["CPU s", *[f"{work}, {n} layers" for work in WORK for n in options.layers]]]
    for compiler in compilers:
        rows.append([compiler, *[f"{took[compiler, work, n]['whole']:.3f}" for work in WORK for n in options.layers]])
    show(rows, width=140)
    if len(set(options.layers)) > 1:
        show(by_phases(took, min(options.layers), max(options.layers)), width=140)


if __name__ == "__main__":
    main()
