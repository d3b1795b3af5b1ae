"""A part of what `tools/gpu.py` checks, in a process of its own: it writes a line of JSON for each thing that it found.

python tools/gpu_part.py installed | checks | bench --device cuda --seconds 300 --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn

import thunder
from thunder_executors import get_all_executors
from thunder_transforms import CUDAGraphTransform

F = nn.functional
Row = dict[str, Any]
LIBRARIES = (
    "torch", "triton", "nvidia-cudnn-frontend", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "transformer-engine",
    "liger-kernel", "flash-attn", "litgpt", "transformers",
)  # fmt: skip
FOR_GPUS = ("cudnn", "nvfuser", "apex", "triton", "triton_fusion", "transformer_engine", "inductor")


def installed(device: torch.device, ends: float) -> Iterator[Row]:
    """What is here, and which executors can run."""
    yield {"what": "Python", "found": platform.python_version(), "outcome": "held"}
    for name in LIBRARIES:
        try:
            yield {"what": name, "found": version(name), "outcome": "held"}
        except PackageNotFoundError:
            yield {"what": name, "found": "not installed"}
    yield {"what": "CUDA of PyTorch", "found": str(torch.version.cuda)}
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        p = torch.cuda.get_device_properties(i)
        found = f"{p.name}, {p.major}.{p.minor}, {p.total_memory >> 30} GiB, {p.multi_processor_count} processors"
        yield {"what": f"device {i}", "found": found, "outcome": "held"}
    for executor in get_all_executors():
        reason = executor.missing()
        yield {
            "what": f"executor {executor.name}",
            "found": reason or "can run",
            "outcome": "held" if not reason else "",
        }


def able() -> list[str]:
    """Return the names of executors for GPUs that can run here; torch alone is first."""
    names = [e.name for e in get_all_executors() if e.name in FOR_GPUS and e.missing() is None]
    return ["torch", *names]


def attention(**options: Any) -> Callable[..., torch.Tensor]:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


TARGET = torch.tensor([1, 7, -100, 300] * 8)
PROGRAMS: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]] = {
    "attention": (attention(), ((2, 4, 64, 64),) * 3),
    "causal attention": (attention(is_causal=True), ((2, 4, 65, 64),) * 3),
    "grouped attention": (attention(is_causal=True, enable_gqa=True), ((2, 8, 64, 64), (2, 2, 64, 64), (2, 2, 64, 64))),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (512,), w, b), ((64, 512), (512,), (512,))),
    "rms norm": (lambda x, w: F.rms_norm(x, (512,), w, 1e-5), ((64, 512), (512,))),
    "softmax": (lambda x: torch.softmax(x * 2, -1) + x, ((64, 512),)),
    "pointwise": (lambda x, y: F.gelu(x * y + 1) * torch.sigmoid(x) + y.sum(0), ((64, 512), (64, 512))),
    "cross entropy": (lambda x: F.cross_entropy(x, TARGET.to(x.device)), ((32, 512),)),
    "linear": (lambda x, w, b: F.linear(x, w, b).relu(), ((64, 128), (256, 128), (256,))),
    "transposed": (lambda x, y: (x.t().exp() + y.t()) * 2, ((63, 65), (63, 65))),
}
SIZES = {torch.float32: 2e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}
EIGHT_BITS = 0.15  # how far results of eight-bit products may be off


def checks(device: torch.device, ends: float) -> Iterator[Row]:
    """Programs and gradients by each executor, against eager in double precision; training; CUDA graphs."""
    for executor in able():
        for name, (function, shapes) in PROGRAMS.items():
            for dtype in SIZES:
                if time.monotonic() > ends:
                    return
                yield checked(
                    f"{executor}: {name}, {dtype}",
                    lambda f=function, s=shapes, d=dtype, e=executor: compare(f, s, d, e, device),
                )
        yield checked(f"{executor}: training", lambda e=executor: train([e, "torch"], device, []))
    if device.type == "cuda":
        yield checked("CUDA graphs: training", lambda: train(["torch"], device, [CUDAGraphTransform()]))


def checked(name: str, run: Callable[[], str]) -> Row:
    """Return what came of one check, be it an error."""
    try:
        return {"check": name, "outcome": "held", "found": run()}
    except AssertionError as error:
        return {"check": name, "outcome": "wrong", "found": str(error)[:500]}
    except Exception as error:  # a report of what does not work must go on
        traceback.print_exc()
        return {"check": name, "outcome": "error", "found": f"{type(error).__name__}: {error}"[:500]}


def compare(function: Any, shapes: Any, dtype: torch.dtype, executor: str, device: torch.device) -> str:
    """Compare values and gradients; return who ran what."""
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator).to(dtype).to(device) for shape in shapes]
    mine = [v.clone().requires_grad_() for v in values]
    truth = [v.double().requires_grad_() for v in values]
    run = thunder.jit(function, executors=list(dict.fromkeys([executor, "torch"])))
    y, expected = run(*mine), function(*truth)
    dy = torch.randn_like(expected)
    found = [y, *torch.autograd.grad(y, mine, dy.to(dtype))]
    wanted = [expected, *torch.autograd.grad(expected, truth, dy)]
    size = EIGHT_BITS if executor == "transformer_engine" else SIZES[dtype]
    worst = max(float((a.double() - b).norm() / b.norm().clamp(min=1e-9)) for a, b in zip(found, wanted, strict=True))
    assert worst < size, f"off by {worst:.2e} of the norm, at most {size:.0e}"
    by = sorted(
        {b.symbol.namespace for b in thunder.last_traces(run)[-1].bound_symbols if b.symbol.namespace != "python"}
    )
    return f"off by {worst:.1e}; by {', '.join(by)}"


def train(executors: list[str], device: torch.device, transforms: list[Any]) -> str:
    """Train a small model beside eager; return the largest difference of a loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 16)).to(device)
    other = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 16)).to(device)
    other.load_state_dict(model.state_dict())
    run = thunder.jit(model, executors=list(dict.fromkeys(executors)), transforms=transforms)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-3) for m in (model, other)]
    worst = 0.0
    for _ in range(8):
        x, target = torch.randn(32, 32, device=device), torch.randn(32, 16, device=device)
        losses = []
        for step, optimizer in zip((run, other), optimizers, strict=True):
            optimizer.zero_grad()
            loss = F.mse_loss(step(x), target)
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        worst = max(worst, abs(losses[0] - losses[1]) / losses[1])
    assert worst < (EIGHT_BITS if "transformer_engine" in executors else 1e-3), f"losses differ by {worst:.1e}"
    replays = [r.replayed for t in transforms for r in t.runs]
    assert not transforms or any(replays), "no graph was replayed"
    return f"losses differ by {worst:.1e}" + (f", {sum(replays)} replays" if transforms else "")


class Block(nn.Module):
    """A block as in Llama, with random weights."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, w = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, w))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


SHAPES = {"cuda": {"nanoGPT-like": (768, 12, 3072, 8, 1024), "Llama-2-7B-like": (4096, 32, 11008, 1, 2048)}}
SHAPES["cpu"] = {"tiny": (64, 4, 128, 2, 32)}


def bench(device: torch.device, ends: float) -> Iterator[Row]:
    """Milliseconds of forward and backward of a block, by executors, eager and torch.compile."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    for name, (width, heads, hidden, batch, length) in SHAPES[device.type].items():
        model = Block(width, heads, hidden).to(device, dtype)
        x = torch.randn(batch, length, width, device=device, dtype=dtype, requires_grad=True)
        ways: dict[str, Callable[[], Any]] = {"eager": lambda m=model: m}
        ways["torch.compile"] = lambda m=model: torch.compile(m)
        ways["torch.compile max-autotune"] = lambda m=model: torch.compile(m, mode="max-autotune")
        for executor in able():
            ways[f"thunder: {executor}"] = lambda m=model, e=executor: thunder.jit(
                m, executors=list(dict.fromkeys([e, "torch"]))
            )
        if device.type == "cuda":
            everyone = [e for e in ("cudnn", "nvfuser", "triton") if e in able()]
            ways["thunder: together"] = lambda m=model, e=everyone: thunder.jit(m, executors=[*e, "torch"])
            ways["thunder: CUDA graphs"] = lambda m=model: thunder.jit(
                m, executors=["torch"], transforms=[CUDAGraphTransform()]
            )
        for way, make in ways.items():
            if time.monotonic() > ends or (way == "torch.compile max-autotune" and device.type == "cpu"):
                continue
            yield checked(f"{name}: {way}", lambda make=make, x=x: timed(make(), x, device))


def timed(run: Any, x: torch.Tensor, device: torch.device) -> str:
    """Return the median of ten steps, in milliseconds, and the most memory that was held."""

    def step() -> None:
        run(x).float().square().mean().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(4):
        step()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(10):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    held = f", {torch.cuda.max_memory_allocated() >> 20} MiB" if device.type == "cuda" else ""
    return f"{sorted(seconds)[5] * 1e3:.3f} ms{held}"


PARTS: dict[str, Callable[[torch.device, float], Iterator[Row]]] = {
    "installed": installed,
    "checks": checks,
    "bench": bench,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--out", type=Path, required=True)
    words = parser.parse_args()
    device = torch.device(words.device)
    bad = 0
    with (words.out / f"{words.part}.jsonl").open("w") as file:
        for row in PARTS[words.part](device, time.monotonic() + words.seconds * 0.9):
            file.write(json.dumps(row) + "\n")
            file.flush()
            bad += row.get("outcome") in ("wrong", "error")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
