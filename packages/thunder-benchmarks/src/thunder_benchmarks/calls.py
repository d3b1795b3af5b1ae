"""What a call of a compiled function costs once it is compiled, beside eager and torch.compile.

python -m thunder_benchmarks.calls                   with torch.compile, which takes a minute to compile
python -m thunder_benchmarks.calls --without-inductor
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import thunder
from thunder_benchmarks.tables import show
from thunder_benchmarks.timing import Call, microseconds


@dataclass(frozen=True)
class Case:
    """Something to call.

    Args:
        name: for the table.
        target: function or module.
        args: of each call.
        grad: whether autograd is on.
        backward: whether the sum of the result is differentiated, too.
    """

    name: str
    target: Callable[..., Any]
    args: tuple[Any, ...]
    grad: bool = False
    backward: bool = False

    def call(self, target: Callable[..., Any]) -> Call:
        """Return one call of ``target``, which is this case's or what a compiler made of it."""
        args = self.args
        if not self.backward:
            return lambda: target(*args)
        cotangent = torch.ones_like(self.target(*args))

        def both() -> None:
            target(*args).backward(cotangent)

        return both


class Scales(nn.Module):
    """A module with many small parameters, each in a module of its own.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Scale() for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x`` times each parameter, in order."""
        for layer in self.layers:
            x = layer(x)
        return x


class Scale(nn.Module):
    """A module with one parameter of four elements."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x`` times the parameter."""
        return x * self.weight


def two_operations(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a sum times its first term."""
    return (a + b) * a


def cases() -> list[Case]:
    """Return what is measured."""
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    leaves = (torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True))
    return [
        Case("2 operations, 4x4", two_operations, (a, b)),
        Case("2 operations, recorded by autograd", two_operations, leaves, grad=True),
        Case("2 operations, forward and backward", two_operations, leaves, grad=True, backward=True),
        Case("nn.Linear(4, 4)", nn.Linear(4, 4), (a,)),
        Case("100 modules of one parameter", Scales(100), (a,)),
        Case("400 modules of one parameter", Scales(400), (a,)),
    ]


def specialised(count: int) -> Call:
    """Return a hit of a function that is compiled for ``count`` shapes."""
    compiled = thunder.jit(two_operations)
    with torch.no_grad():
        for size in range(1, count + 1):
            compiled(torch.randn(size, 4), torch.randn(size, 4))
    a, b = torch.randn(1, 4), torch.randn(1, 4)
    return lambda: compiled(a, b)


def specialised_inside(count: int) -> Call:
    """Return a hit of a function that is compiled for ``count`` numbers, each inside of a dict among the arguments."""
    compiled = thunder.jit(lambda a, options: (a + options["scale"]) * a)
    a, calls = torch.randn(4, 4), [{"scale": scale} for scale in range(count)]
    with torch.no_grad():
        for options in calls:
            compiled(a, options)
    return lambda: compiled(a, calls[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-inductor", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--block", type=float, default=0.1, help="seconds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    compilers: dict[str, Callable[[Any], Any]] = {"eager": lambda target: target, "thunder": thunder.jit}
    if not options.without_inductor:
        compilers["torch.compile"] = torch.compile
    rows = [["CPU µs", *compilers, *[f"thunder / {name}" for name in compilers if name != "thunder"]]]
    for case in cases():
        with torch.set_grad_enabled(case.grad):
            calls = {name: case.call(compiler(case.target)) for name, compiler in compilers.items()}
            took = microseconds(calls, options.rounds, options.block)
        ratios = [took["thunder"] / took[name] for name in compilers if name != "thunder"]
        rows.append([case.name, *[f"{took[n]:.1f}" for n in compilers], *[f"{r:.2f}" for r in ratios]])
    show(rows, width=140)
    for what, make in (("shape", specialised), ("a number in a dict", specialised_inside)):
        with torch.no_grad():
            hits = microseconds({"1": make(1), "64": make(64)}, options.rounds, options.block)
        print(
            f"a hit among 64 specialisations by {what}: {hits['64']:.1f} µs, of one alone: {hits['1']:.1f}, "
            f"ratio {hits['64'] / hits['1']:.2f}"
        )


if __name__ == "__main__":
    main()
