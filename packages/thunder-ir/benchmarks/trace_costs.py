"""What a trace costs per operation, whether that grows with the program, and what the imports cost.

    python packages/thunder-ir/benchmarks/trace_costs.py [--operations 10000] [--repeat 5]

Records a program of elementwise operations, products and reductions in the core language, then runs dead code
elimination, common subexpressions, printing and compilation over it; and the same for twice as many operations. CPU
time, the best of the repetitions; microseconds per operation of the program as recorded.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import thunder_lang as lang
from thunder_ir import Names, Tensor, TensorProxy, Trace, record
from thunder_ir.passes import common_subexpressions, dead_code_elimination

IMPORTS = ("thunder_ir", "thunder_prims", "thunder_lang")


def network(operations: int) -> Callable[[Any, Any], Any]:
    """Return a program that records about that many operations: one in ten is never read, one in ten comes twice."""

    def program(x: Any, y: Any) -> Any:
        for _ in range(operations // 10):
            z = lang.mul(x, y)
            again = lang.mul(x, y)
            lang.exp(z)
            z = lang.add(z, again)
            z = lang.tanh(z)
            z = lang.mul(z, 0.5)
            z = lang.transpose(z, 0, 1)
            z = lang.sub(z, 1)
            x = lang.maximum(lang.transpose(z, 0, 1), x)
        return x

    return program


def steps(operations: int) -> tuple[dict[str, float], int]:
    """Return the CPU seconds of each step, and the number of operations recorded."""
    spent: dict[str, float] = {}
    program = network(operations)
    inputs = [named(name) for name in ("x", "y")]

    def timed(step: str, function: Callable[..., Any], *args: Any) -> Any:
        start = time.process_time()
        made = function(*args)
        spent[step] = time.process_time() - start
        return made

    recorded: Trace = timed("record", lambda: record(program, inputs, language=lang.core, names=Names(["x", "y"])))
    alive = timed("dead code", dead_code_elimination, recorded)
    merged = timed("cse", common_subexpressions, alive)
    source = timed("print", merged.source)
    timed("compile", source.compile)
    return spent, len(recorded.bound_symbols)


def named(name: str) -> TensorProxy:
    """Return an input of the program."""
    proxy = Tensor((4, 4))
    proxy.name = name
    return proxy


def best(sizes: list[int], repeat: int) -> list[dict[str, float]]:
    """Return, for each number of operations, the least microseconds per operation of each step.

    The sizes take turns, so that what else the machine does falls on all of them.
    """
    lowest: list[dict[str, float]] = [{} for _ in sizes]
    for _ in range(repeat):
        for size, least in zip(sizes, lowest, strict=True):
            gc.collect()
            spent, count = steps(size)
            for step, seconds in spent.items():
                least[step] = min(seconds / count * 1e6, least.get(step, math.inf))
    return lowest


def import_seconds(module: str, repeat: int) -> float:
    """Return the CPU seconds that importing a module takes in a fresh interpreter that need not compile it."""
    program = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", program]
        runs = [subprocess.run(command, env=environment, capture_output=True, check=True) for _ in range(repeat + 1)]
    return min([float(run.stdout) for run in runs[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    count = arguments.operations
    once, twice = best([count, 2 * count], arguments.repeat)
    print(f"{'step':<12}{count:>12}{2 * count:>12}   microseconds per operation")
    for step in once:
        print(f"{step:<12}{once[step]:>12.1f}{twice[step]:>12.1f}")
    total, double = sum(once.values()), sum(twice.values())
    print(f"{'total':<12}{total:>12.1f}{double:>12.1f}")
    print(f"{2 * count} operations take {2 * double / total:.2f} times as long as {count}")
    for module in IMPORTS:
        print(f"import {module:<14} {import_seconds(module, arguments.repeat):.3f} s of CPU time")


if __name__ == "__main__":
    main()
