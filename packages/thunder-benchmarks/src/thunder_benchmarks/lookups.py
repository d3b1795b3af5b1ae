"""What a hit costs where a module of 200 parameters has 1, 64 or 1,000 specialisations, in CPU µs.

python -m thunder_benchmarks.lookups
python -m thunder_benchmarks.lookups --counts 1 64 --only shape attribute
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import thunder
from thunder_benchmarks.tables import show

PARAMETERS = 200
PER_BLOCK = 1000


class Reads(nn.Module):
    """A module that reads many parameters, and computes little.

    Args:
        count: of parameters.
    """

    def __init__(self, count: int = PARAMETERS) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(count)])
        self.number: Any = 0

    def forward(self, x: torch.Tensor, number: Any = 0, config: Any = None) -> torch.Tensor:
        """Return a sum of all that is given, numbers as text: so each has a specialisation of its own."""
        weight = torch.cat(list(self.weights))
        given = config["number"] if config is not None else number
        return x.sum() + weight[0] + len(f"{given} {self.number}")


@dataclass(frozen=True)
class Case:
    """What specialisations differ in.

    Args:
        name: for the table.
        cache: the option.
        call: calls a compiled module the way that leads to specialisation ``i``.
    """

    name: str
    cache: str
    call: Callable[[Any, int], Any]


def _by_shape(module: Any, i: int) -> Any:
    return module(SHAPED[i])


def _by_lists_of_shapes(module: Any, i: int) -> Any:
    return module(SHAPED[i], number=i % 7, config={"number": i})


def _by_attribute(module: Any, i: int) -> Any:
    module.number = i
    return module(SHAPED[0])


def _by_grad_mode(module: Any, i: int) -> Any:
    with torch.set_grad_enabled(i % 2 == 0):
        return module(SHAPED[0], number=i // 2)


def _by_dtype(module: Any, i: int) -> Any:
    return module(TYPED[i % len(TYPED)], number=i // len(TYPED))


SHAPED = [torch.ones(2, i + 2) for i in range(1000)]
TYPED = [torch.ones(3).to(dtype) for dtype in (torch.float32, torch.float64, torch.int64, torch.int32)]
DIFFERENCES: dict[str, Callable[[Any, int], Any]] = {
    "shape": _by_shape,
    "number": lambda module, i: module(SHAPED[0], number=i),
    "number in a dict": lambda module, i: module(SHAPED[0], config={"number": i}),
    "shape and numbers": _by_lists_of_shapes,
    "attribute": _by_attribute,
    "grad mode": _by_grad_mode,
    "dtype": _by_dtype,
}
CACHES = ("constant values", "symbolic values", "auto")


def specialised(case: Case, count: int) -> Any:
    """Return a module that was called in so many ways."""
    module = thunder.jit(Reads(), cache=case.cache)
    for i in range(count):
        case.call(module, i)
    return module


def hit(case: Case, module: Any, count: int, blocks: int = 5) -> float:
    """Return the CPU µs of a call, whichever of the specialisations it is for: the best of several blocks."""
    order = [i % count for i in range(PER_BLOCK)]
    random.Random(0).shuffle(order)
    best = float("inf")
    for _ in range(blocks):
        begin = time.process_time()
        for i in order:
            case.call(module, i)
        best = min(best, time.process_time() - begin)
    return best / PER_BLOCK * 1e6


def measured(case: Case, counts: Sequence[int]) -> list[tuple[int, float]]:
    """Return for each count how many specialisations there are, and what a hit costs."""
    found = []
    for count in counts:
        module = specialised(case, count)
        made = thunder.cache_misses(module)
        found.append((made, hit(case, module, count)))
        assert thunder.cache_misses(module) == made, "calls that were met before are hits"
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 64, 1000])
    parser.add_argument("--only", nargs="+", choices=DIFFERENCES, default=list(DIFFERENCES))
    parser.add_argument("--caches", nargs="+", choices=CACHES, default=list(CACHES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [["differ in", "cache", *[f"{count} ways: programs, µs, ratio" for count in arguments.counts]]]
    for name in arguments.only:
        for cache in arguments.caches:
            rows = measured(Case(name, cache, DIFFERENCES[name]), arguments.counts)
            first = rows[0][1]
            lines.append([name, cache, *[f"{made}, {cost:.1f}, {cost / first:.2f}" for made, cost in rows]])
    show(lines, width=140)


if __name__ == "__main__":
    main()
