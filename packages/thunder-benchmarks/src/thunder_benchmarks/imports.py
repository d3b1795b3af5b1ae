"""What ``import thunder`` takes beside packages for GPUs, and without them: fresh processes, in turns.

python -m thunder_benchmarks.imports
python -m thunder_benchmarks.imports --rounds 15

Each process imports PyTorch, then Thunder, and asks for the default executors, which is when installed ones are found;
what is told is the CPU time of the latter two, the least of all rounds; how many calls Python makes for them, which
other programs on the machine do not change; the modules that they import, and warnings.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from thunder_benchmarks.machine import in_a_fresh_process
from thunder_benchmarks.tables import show

FOR_GPUS = tuple(f"thunder-executors-{name}" for name in ("apex", "cudnn", "nvfuser", "transformer-engine", "triton"))
"""Packages for GPUs."""
HIDDEN: dict[str, tuple[str, ...]] = {"without": FOR_GPUS, "with": ()}

PROGRAM = """
import importlib.metadata, json, sys, time, warnings
hidden = set(json.loads(sys.argv[1]))
everything = importlib.metadata.distributions
importlib.metadata.distributions = lambda: (d for d in everything() if d.name not in hidden)
import torch
before = set(sys.modules)
calls = [0]
if len(sys.argv) > 2:
    def count(*event):
        calls[0] += 1
    sys.setprofile(count)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    start = time.process_time()
    import thunder
    thunder.get_default_executors()
    took = time.process_time() - start
sys.setprofile(None)
modules = sorted(set(sys.modules) - before)
print(json.dumps({"seconds": took, "calls": calls[0], "modules": modules, "warnings": len(told)}))
"""


@dataclass(frozen=True)
class Import:
    """What an import came to.

    Args:
        seconds: CPU time.
        calls: of functions, counted in another process.
        modules: that it imported.
        warnings: how many there were.
    """

    seconds: float
    calls: int
    modules: frozenset[str]
    warnings: int


def imported(hidden: Sequence[str], counted: bool = False) -> Import:
    """Import Thunder in a fresh process that finds none of the packages in ``hidden``.

    Args:
        hidden: names of distributions.
        counted: whether calls are counted, which takes its own time.
    """
    found = in_a_fresh_process("-c", PROGRAM, json.dumps(list(hidden)), *(["counted"] if counted else []))
    return Import(found["seconds"], found["calls"], frozenset(found["modules"]), found["warnings"])


def main(words: Sequence[str] | None = None) -> tuple[Import, Import]:
    """Measure; print a table; return the fastest import of each kind, without the packages and with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(words)
    found: dict[str, list[Import]] = {"without": [], "with": []}
    for number in range(options.rounds):
        for kind in ("without", "with") if number % 2 else ("with", "without"):
            found[kind].append(imported(HIDDEN[kind]))
    rows = [["packages for GPUs", "least CPU ms", "calls", "modules", "warnings"]]
    best = {kind: min(each, key=lambda one: one.seconds) for kind, each in found.items()}
    best = {kind: replace(one, calls=imported(HIDDEN[kind], counted=True).calls) for kind, one in best.items()}
    for kind, one in best.items():
        rows.append([kind, f"{1e3 * one.seconds:.2f}", f"{one.calls:,}", str(len(one.modules)), str(one.warnings)])
    show(rows, width=100)
    return best["without"], best["with"]


if __name__ == "__main__":
    main()
