"""Functions of each element, one call each, by PyTorch's kernels and as Thunder runs them: CPU time, one thread.

python -m thunder_benchmarks.functions
python -m thunder_benchmarks.functions --dtypes bfloat16 --size 64 1024 --only tanh "gelu, tanh"

Where Thunder makes a kernel of its own for one call, PyTorch's takes at least twice as long.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

import thunder
from thunder_benchmarks.tables import show
from thunder_benchmarks.timing import Call, microseconds

Function = Callable[[torch.Tensor], torch.Tensor]

FUNCTIONS: dict[str, Function] = {
    **{function.__name__: function for function in (
        torch.tanh, torch.exp, torch.erf, torch.sin, torch.cos, torch.atan, torch.asinh, torch.sigmoid, torch.log1p,
        torch.trunc, torch.floor, torch.isnan, torch.isfinite, torch.isinf, F.silu, F.elu, F.softplus, F.mish,
        F.softsign, F.tanhshrink, F.logsigmoid, F.relu,
    )},
    "fmax": lambda x: torch.fmax(x, x),
    "fmin": lambda x: torch.fmin(x, x),
    "gelu": F.gelu,
    "gelu, tanh": partial(F.gelu, approximate="tanh"),
}  # fmt: skip
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
BLOCK = 0.02
"""Seconds of the calls that one takes in its turn."""


def forward_of(function: Function, x: torch.Tensor) -> Call:
    """Return a call that computes a function of what requires no gradients."""
    return lambda: function(x)


def step_of(function: Function, x: torch.Tensor, cotangent: torch.Tensor) -> Call:
    """Return a call that computes a function and its derivative."""
    return lambda: torch.autograd.grad(function(x), x, cotangent)


def measured(name: str, dtype: torch.dtype, size: tuple[int, ...], rounds: int) -> tuple[str, ...]:
    """Return the table's row of one function."""
    function, x = FUNCTIONS[name], torch.randn(size, dtype=torch.float32).to(dtype)
    compiled = thunder.jit(lambda x: function(x))
    calls = {"eager": forward_of(function, x), "ours": forward_of(compiled, x)}
    found = microseconds(calls, rounds, BLOCK)
    kernels = "_llvm_" in str(thunder.last_traces(compiled)[-1])
    row = [name, str(dtype).removeprefix("torch."), f"{found['eager']:.0f}", f"{found['ours'] / found['eager']:.2f}"]
    if function(x).is_floating_point():
        leaf = x.clone().requires_grad_()
        steps = {"eager": step_of(function, leaf, x), "ours": step_of(compiled, leaf, x)}
        found = microseconds(steps, rounds, BLOCK)
        row += [f"{found['eager']:.0f}", f"{found['ours'] / found['eager']:.2f}"]
    else:
        row += ["", ""]
    return (*row, "yes" if kernels else "")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    parser.add_argument("--only", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--size", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows: list[tuple[str, ...]] = [
        ("function", "dtype", "eager, µs", "ours / eager", "with derivative, µs", "ours / eager", "a kernel of ours")
    ]
    for dtype in arguments.dtypes:
        rows += [measured(name, DTYPES[dtype], tuple(arguments.size), arguments.rounds) for name in arguments.only]
    show(rows, width=120)


if __name__ == "__main__":
    main()
