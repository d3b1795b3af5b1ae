"""What a hit costs where a module of 200 parameters has 1, 64 or 1,000 specialisations, in CPU µs.

python -m thunder_benchmarks.lookups
python -m thunder_benchmarks.lookups --counts 1 64 --only shape attribute
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Sequence
from typing import Any

import thunder
from thunder_benchmarks.lookup_cases import DIFFERENCES, Difference, Reads
from thunder_benchmarks.tables import show

PER_BLOCK = 1000
CACHES = ("constant values", "symbolic values", "auto")


def specialised(difference: Difference, cache: str, count: int) -> Any:
    """Return a module that was called in so many ways."""
    module = thunder.jit(Reads(difference.read), cache=cache)
    for i in range(count):
        difference.call(module, i)
    return module


def hit(difference: Difference, module: Any, count: int, blocks: int = 5) -> float:
    """Return the CPU µs of a call, whichever of the specialisations it is for: the best of several blocks."""
    order = [i % count for i in range(PER_BLOCK)]
    random.Random(0).shuffle(order)
    best = float("inf")
    for _ in range(blocks):
        begin = time.process_time()
        for i in order:
            difference.call(module, i)
        best = min(best, time.process_time() - begin)
    return best / PER_BLOCK * 1e6


def measured(difference: Difference, cache: str, counts: Sequence[int]) -> list[tuple[int, float]]:
    """Return for each count how many specialisations there are, and what a hit costs."""
    found = []
    for count in [min(count, difference.ways) for count in counts]:
        module = specialised(difference, cache, count)
        made = thunder.cache_misses(module)
        found.append((made, hit(difference, module, count)))
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
            rows = measured(DIFFERENCES[name], cache, arguments.counts)
            first = rows[0][1]
            lines.append([name, cache, *[f"{made}, {cost:.1f}, {cost / first:.2f}" for made, cost in rows]])
    show(lines, width=140)


if __name__ == "__main__":
    main()
