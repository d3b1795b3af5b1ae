"""What a hit costs where a module of 200 parameters has 1, 64 or 1,000 specialisations, in CPU µs.

python -m thunder_benchmarks.lookups
python -m thunder_benchmarks.lookups --counts 1 64 --only shape attribute
python -m thunder_benchmarks.lookups --rows lookups.jsonl --page page.md   goes on with a file, all goes on a page
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import thunder
from thunder_benchmarks.lookup_cases import DIFFERENCES, Difference, Reads
from thunder_benchmarks.tables import add_rows, markdown, marks_of, read_rows, show, write_between

PER_BLOCK = 1000
CALLS_BEFORE = 10
"""Calls in each way before hits are measured: CPython adapts at the 8th to what is called, and native code is made."""
CACHES = ("constant values", "symbolic values", "auto")


@dataclass(frozen=True)
class Row:
    """What was measured of one count of ways.

    Args:
        difference: what they differ in.
        cache: the mode.
        ways: how many ways the module was called in.
        programs: how many specialisations that made.
        cost: CPU µs of a hit.
    """

    difference: str
    cache: str
    ways: int
    programs: int
    cost: float


def specialised(difference: Difference, cache: str, count: int) -> Any:
    """Return a module that was called in so many ways."""
    module = thunder.jit(Reads(difference.read), cache=cache)
    for i in range(count):
        difference.call(module, i)
    return module


def hits(difference: Difference, modules: Mapping[int, Any], blocks: int = 7) -> dict[int, float]:
    """Return the CPU µs of a call, whichever of the specialisations it is for, by their count.

    The modules take turns, so that drift of the machine hits all alike, and the best of several blocks counts.
    """
    best = dict.fromkeys(modules, float("inf"))
    orders = {count: [i % count for i in range(PER_BLOCK)] for count in modules}
    for count, module in modules.items():
        random.Random(0).shuffle(orders[count])
        for i in [*range(count)] * CALLS_BEFORE:
            difference.call(module, i)
    for _ in range(blocks):
        for count, module in modules.items():
            begin = time.process_time()
            for i in orders[count]:
                difference.call(module, i)
            best[count] = min(best[count], time.process_time() - begin)
    return {count: seconds / PER_BLOCK * 1e6 for count, seconds in best.items()}


def measured(name: str, cache: str, counts: Sequence[int]) -> list[Row]:
    """Return what hits cost for each count of ways to call a module."""
    difference = DIFFERENCES[name]
    ways = {count: min(count, difference.ways) for count in counts}
    modules = {way: specialised(difference, cache, way) for way in ways.values()}
    made = {way: thunder.cache_misses(module) for way, module in modules.items()}
    costs = hits(difference, modules)
    assert {way: thunder.cache_misses(module) for way, module in modules.items()} == made, "these calls are hits"
    return [Row(name, cache, count, made[way], costs[way]) for count, way in ways.items()]


def lines_of(rows: Sequence[Row], counts: Sequence[int]) -> list[list[str]]:
    """Return the table: the first count is what others are compared with."""
    lines = [["differ in", "cache", *[f"{count} ways: programs, µs, ratio" for count in counts]]]
    cells = {(row.difference, row.cache, row.ways): row for row in rows}
    for name, cache in dict.fromkeys([(row.difference, row.cache) for row in rows]):
        line = [name, cache]
        for count in counts:
            row, first = cells.get((name, cache, count)), cells.get((name, cache, counts[0]))
            line.append(f"{row.programs}, {row.cost:.1f}, {row.cost / first.cost:.2f}" if row and first else "")
        lines.append(line)
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 64, 1000])
    parser.add_argument("--only", nargs="+", choices=DIFFERENCES, default=list(DIFFERENCES))
    parser.add_argument("--caches", nargs="+", choices=CACHES, default=list(CACHES))
    parser.add_argument("--rows", type=Path, help="a file of what was measured before, to which this is added")
    parser.add_argument("--page", type=Path, help="of Markdown, on which the table of all rows stands")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = read_rows(Row, arguments.rows)
    for name in arguments.only:
        for cache in arguments.caches:
            known = {row.ways for row in rows if (row.difference, row.cache) == (name, cache)}
            if not known.issuperset(arguments.counts):
                found = measured(name, cache, arguments.counts)
                add_rows(arguments.rows, found)
                rows += found
    lines = lines_of(rows, arguments.counts)
    if arguments.page is None:
        show(lines, width=140)
        return
    machine = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
    write_between(arguments.page, marks_of("thunder_benchmarks.lookups"), f"{machine}\n\n{markdown(lines)}")


if __name__ == "__main__":
    main()
