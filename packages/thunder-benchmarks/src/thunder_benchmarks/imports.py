"""What ``import thunder`` takes beside packages for GPUs, and without them: fresh processes, in turns.

python -m thunder_benchmarks.imports
python -m thunder_benchmarks.imports --rounds 15

Each process imports PyTorch, then Thunder, and asks for the default executors, which is when installed ones are found;
what is told is the CPU time of the latter two, the least of all rounds, the modules that they import, and warnings.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

FOR_GPUS = tuple(f"thunder-executors-{name}" for name in ("apex", "cudnn", "nvfuser", "transformer-engine", "triton"))
"""Packages for GPUs."""

PROGRAM = """
import importlib.metadata, json, sys, time, warnings
hidden = set(json.loads(sys.argv[1]))
everything = importlib.metadata.distributions
importlib.metadata.distributions = lambda: (d for d in everything() if d.name not in hidden)
import torch
before = set(sys.modules)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    start = time.process_time()
    import thunder
    thunder.get_default_executors()
    took = time.process_time() - start
print(json.dumps({"seconds": took, "modules": sorted(set(sys.modules) - before), "warnings": len(told)}))
"""


@dataclass(frozen=True)
class Import:
    """What an import came to.

    Args:
        seconds: CPU time.
        modules: that it imported.
        warnings: how many there were.
    """

    seconds: float
    modules: frozenset[str]
    warnings: int


def imported(hidden: Sequence[str]) -> Import:
    """Import Thunder in a fresh process that finds none of the packages in ``hidden``."""
    words = [sys.executable, "-c", PROGRAM, json.dumps(list(hidden))]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return Import(found["seconds"], frozenset(found["modules"]), found["warnings"])


def main(words: Sequence[str] | None = None) -> tuple[Import, Import]:
    """Measure; print a table; return the fastest import of each kind, without the packages and with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(words)
    found: dict[str, list[Import]] = {"without": [], "with": []}
    for number in range(options.rounds):
        for kind in ("without", "with") if number % 2 else ("with", "without"):
            found[kind].append(imported(FOR_GPUS if kind == "without" else ()))
    table = Table("packages for GPUs", "least CPU ms", "modules", "warnings")
    best = {kind: min(each, key=lambda one: one.seconds) for kind, each in found.items()}
    for kind, one in best.items():
        table.add_row(kind, f"{1e3 * one.seconds:.2f}", str(len(one.modules)), str(one.warnings))
    Console(width=100).print(table)
    return best["without"], best["with"]


if __name__ == "__main__":
    main()
