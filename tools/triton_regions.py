"""Random regions as kernels of Triton: against eager PyTorch, and compiled for GPUs that are not here.

python tools/triton_regions.py                     300 regions by Triton's interpreter; their kernels are compiled, too
python tools/triton_regions.py --count 20 --compiled 0 --first 700

Regions compute in float32; what they read and write is float32 or bfloat16, of sizes 0, 1, odd and long, of two to five
dimensions, transposed, spread out and expanded. Needs Triton and no GPU: `python3 tools/dev.py gpu-libraries` has it.
It exits with 1 if a region differs, or if a compiled kernel spills more than the package allows.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from thunder_frontend import jit, last_traces

COMPILE = "--compile"
SHAPES = (
    (0, 5), (1, 1), (3, 7), (5, 1), (2, 130), (33, 65), (1, 1100), (64, 64), (2, 3, 5), (4, 1, 33), (3, 2, 5, 7),
    (2, 3, 1, 2, 9),
)  # fmt: skip
UNARY: tuple[Callable[[Any], Any], ...] = (
    torch.exp, torch.sin, torch.abs, torch.neg, torch.sigmoid, torch.tanh, torch.relu, torch.square, torch.floor,
    torch.nn.functional.gelu, torch.nn.functional.silu, lambda a: (a.abs() + 1).log(), lambda a: (a.abs() + 1).rsqrt(),
)  # fmt: skip
BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    torch.add,
    torch.sub,
    torch.mul,
    torch.maximum,
    torch.minimum,
    lambda a, b: a / (b.abs() + 1),
    lambda a, b: torch.where(a > b, a, b),
    lambda a, b: a * (b > 0),
)
ROWS: tuple[Callable[[Any], Any], ...] = (
    lambda a: torch.softmax(a, -1), lambda a: a - a.mean(-1, keepdim=True), lambda a: a.sum(-1, keepdim=True) * 0.1 + a,
    lambda a: a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-5), lambda a: a + a.sum(0) * 0.1,
)  # fmt: skip
MOVES: tuple[Callable[[Any], Any], ...] = (
    lambda a: a.flip(0), lambda a: torch.cat([a, a], 0)[: a.shape[0]], lambda a: a[:, :1].expand_as(a),
    lambda a: a.reshape(-1).reshape(a.shape), lambda a: a.mT.contiguous().mT,
    lambda a: a[torch.arange(a.shape[0] - 1, -1, -1)],
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A region.

    Args:
        seed: that it follows from.
    """

    seed: int

    def made(self) -> tuple[Callable[..., Any], tuple[torch.Tensor, ...], str]:
        """Return a function, its inputs, and how they lie in memory."""
        draw = random.Random(self.seed)
        shape, dtype = draw.choice(SHAPES), draw.choice((torch.float32, torch.bfloat16))
        layout = draw.choice(("dense", "transposed", "spread out", "expanded"))
        steps = [(draw.randrange(8), draw.random(), draw.random(), draw.random()) for _ in range(draw.randint(2, 9))]

        def function(*inputs: torch.Tensor) -> Any:
            values: list[Any] = [t.float() for t in inputs]
            for kind, which, left, right in steps:
                a, b = (values[int(p * len(values))] for p in (left, right))
                if kind < 3:
                    values.append(UNARY[int(which * len(UNARY))](a.clamp(-3, 3)))
                elif kind < 6:
                    values.append(BINARY[int(which * len(BINARY))](a, b))
                else:
                    rows = ROWS if kind == 6 else MOVES
                    values.append(rows[int(which * len(rows))](a))
            return values[-1].to(dtype), values[-2].to(dtype)

        generator = torch.Generator().manual_seed(self.seed)
        inputs = tuple(laid_out(shape, layout, generator).to(dtype) for _ in range(2))
        return function, inputs, f"{shape}, {dtype}, {layout}"


def laid_out(shape: tuple[int, ...], layout: str, generator: torch.Generator) -> torch.Tensor:
    """Return random numbers of a shape, in memory as ``layout`` says."""
    if layout == "transposed":
        return torch.randn(shape[::-1], generator=generator).permute(*reversed(range(len(shape))))
    if layout == "spread out":
        return torch.randn(*shape[:-1], 1000 + 3 * shape[-1], generator=generator)[..., 1000::3]
    if layout == "expanded":
        return torch.randn(1, *shape[1:], generator=generator).expand(shape)
    return torch.randn(shape, generator=generator)


def steps(tensor: torch.Tensor) -> list[int]:
    """Return strides, but for dimensions of one element: there PyTorch's kernels and its meta kernels differ, too."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def checked(case: Case) -> tuple[str, str]:
    """Return the outcome of a region and, if it differs, how."""
    function, inputs, told = case.made()
    run = jit(function, executors=["triton_fusion", "torch"], fallback="error")
    found, expected = run(*inputs), function(*inputs)
    # Triton's interpreter cuts off what does not fit into bfloat16, where a GPU rounds
    close = {"rtol": 1.6e-2, "atol": 1e-2} if expected[0].dtype is torch.bfloat16 else {"rtol": 2e-4, "atol": 2e-4}
    try:
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, equal_nan=True, **close)
            assert a.numel() < 2 or steps(a) == steps(b), f"strides {a.stride()} for {b.stride()}"
    except AssertionError as error:
        return "wrong", f"region {case.seed} ({told}): {error}"
    fused = [b for b in last_traces(run)[-1].bound_symbols if b.symbol.name.startswith("triton_fusion")]
    return ("right" if fused else "not fused"), ""


def kernels_of(cases: list[Case]) -> list[Any]:
    """Return the kernels of regions, with what their arguments are."""
    found: list[Any] = []
    runner: Any = import_module("thunder_executors_triton.fusion.runner")
    make = runner.Runner.__init__

    def remember(self: Any, program: Any, kernels: Any, *others: Any) -> None:
        found.extend((program.buffers, kernel) for kernel in kernels)
        make(self, program, kernels, *others)

    runner.Runner.__init__ = remember
    try:
        for case in cases:
            function, inputs, _ = case.made()
            jit(function, executors=["triton_fusion", "torch"], fallback="error")(*inputs)
    finally:
        runner.Runner.__init__ = make
    return found


def compile_all(path: Path) -> int:
    """Compile kernels of a file, in a process where Triton compiles; print what they need."""
    offline = import_module("thunder_executors_triton.offline")
    most: Counter[str] = Counter()
    bad = 0
    kernels = pickle.loads(path.read_bytes())
    for buffers, kernel in kernels:
        for architecture in offline.ARCHITECTURES:
            needs = offline.region_resources(buffers, kernel, architecture)
            most["registers"] = max(most["registers"], needs.registers)
            most["local"] = max(most["local"], needs.local)
            most["shared"] = max(most["shared"], needs.shared)
            if needs.local > offline.MOST_SPILLED:
                print(f"{kernel.name} on sm_{architecture}: {needs}\n{kernel.text}")
                bad += 1
    devices = ", ".join(f"sm_{a}" for a in offline.ARCHITECTURES)
    print(f"{len(kernels)} kernels compiled for {devices}; at most {dict(most)}")
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first region")
    parser.add_argument("--compiled", type=int, default=300, help="regions whose kernels are compiled, too")
    parser.add_argument(COMPILE, type=Path, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.compile is not None:
        return compile_all(words.compile)
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported, with the first kernel
    cases = [Case(words.first + i) for i in range(words.count)]
    outcomes: Counter[str] = Counter()
    for case in cases:
        outcome, told = checked(case)
        outcomes[outcome] += 1
        if told:
            print(told, flush=True)
    print(f"{len(cases)} random regions by Triton's interpreter: {dict(outcomes)}", flush=True)
    status = int(outcomes["wrong"] > 0)
    if words.compiled:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernels"
            path.write_bytes(pickle.dumps(kernels_of(cases[: words.compiled])))
            variables = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
            command = [sys.executable, __file__, COMPILE, str(path)]
            status |= subprocess.run(command, env=variables, check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
