"""What a program costs to go through the passes, per operation, in programs of two sizes.

python -m thunder_benchmarks.passes                  1,000 and 10,000 operations
python -m thunder_benchmarks.passes --sizes 100 1000
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import torch

from thunder_benchmarks.tables import show
from thunder_executors import execution_traces
from thunder_ir import Tensor, Trace, trace_of
from thunder_ir.passes import common_subexpressions, dead_code_elimination
from thunder_torch import call, torch_language

WINDOW = 50
"""How far back an operation of the program reads, at most."""


def program_of(size: int) -> Callable[..., Any]:
    """Return a function on proxies that makes a program of ``size`` operations, all of them needed.

    Args:
        size: number of operations.
    """
    kinds = (torch.add, torch.mul, torch.sub, torch.tanh, torch.exp)

    def program(x: Any) -> Any:
        values = [x]
        for index in range(size):
            kind = kinds[index % len(kinds)]
            older = values[-1 - (index * 7919) % min(WINDOW, len(values))]
            arguments = (values[-1], older) if kind in kinds[:3] else (values[-1],)
            values.append(call(kind, arguments, {}))
        return values[-1]

    return program


def record(size: int) -> Trace:
    """Return the program of ``size`` operations on a ``float32[4, 4]``."""
    return trace_of(program_of(size), Tensor((4, 4)), language=torch_language)


def prepare_and_print(size: int) -> Any:
    """Record a program, remove what is dead and what is double, print it and compile the text."""
    return common_subexpressions(dead_code_elimination(record(size))).python_callable()


def seconds(run: Callable[[int], Any], size: int, repetitions: int) -> float:
    """Return the least CPU time of several runs, without that of the garbage collector."""
    found = []
    for _ in range(repetitions):
        gc.collect()
        gc.disable()
        try:
            start = time.process_time()
            run(size)
            found.append(time.process_time() - start)
        finally:
            gc.enable()
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs=2, default=[1000, 10000], metavar="N")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    small, large = options.sizes
    programs = {size: record(size) for size in options.sizes}
    rows: dict[str, Callable[[int], Any]] = {
        "record, remove dead and double, print, compile": prepare_and_print,
        "claim and schedule": lambda size: execution_traces(programs[size], ["torch"]),
    }
    lines = [["", f"µs per operation, {small:,}", f"{large:,}", "ratio of the whole"]]
    for name, run in rows.items():
        times = [seconds(run, size, options.repetitions) for size in options.sizes]
        each = [1e6 * t / size for t, size in zip(times, options.sizes, strict=True)]
        lines.append([name, f"{each[0]:.1f}", f"{each[1]:.1f}", f"{times[1] / times[0]:.2f}"])
    show(lines, width=140)


if __name__ == "__main__":
    main()
