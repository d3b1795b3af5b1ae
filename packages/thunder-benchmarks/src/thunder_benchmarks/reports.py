"""What `thunder.report` takes for the program of a large model: operations, CPU seconds, and the size of the page.

python -m thunder_benchmarks.reports                                a GPT of 300 layers, forward and backward
python -m thunder_benchmarks.reports hf-llama --set layers=150 --page report.html
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import thunder
from thunder_benchmarks.tables import show
from thunder_benchmarks.targets import TARGETS
from thunder_benchmarks.targets.__main__ import setting
from thunder_examine import report

SMALL = {"layers": 300, "width": 32, "heads": 2, "batch": 1, "length": 16}
"""Sizes of a model with many operations and little to compute."""


@dataclass(frozen=True)
class Reported:
    """What a report took.

    Args:
        operations: calls in the forward and the backward program that runs, those that free values not counted.
        seconds: CPU time of making the report of a compiled model and writing it.
        size: of the page in bytes.
    """

    operations: int
    seconds: float
    size: int


def reported(name: str, sizes: Mapping[str, Any], page: Path) -> Reported:
    """Train a target for one step, and report on its programs.

    Args:
        name: of the target.
        sizes: that are set.
        page: where the report goes.
    """
    job = TARGETS[name].job(**sizes)
    compiled = thunder.jit(job.target)
    loss: Any = job.loss(compiled(*job.args, **job.kwargs))
    loss.backward()
    start = time.process_time()
    found = report(compiled, path=page, measure=False)
    took = time.process_time() - start
    lines = [line for part in found.facts.parts for line in part.stages[-1].lines]
    operations = len([line for line in lines if not line.text.startswith("del ")])
    return Reported(operations, took, page.stat().st_size)


def main(words: Sequence[str] | None = None) -> Reported:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="nanogpt", choices=TARGETS, metavar="TARGET")
    parser.add_argument("--set", nargs="+", type=setting, default=[], metavar="SIZE=NUMBER")
    parser.add_argument("--page", type=Path, help="where to write the report, an .html file")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    sizes = {name: size for name, size in SMALL.items() if name in TARGETS[options.target].sizes} | dict(options.set)
    with TemporaryDirectory() as folder:
        found = reported(options.target, sizes, options.page or Path(folder) / "report.html")
    row = [options.target, f"{found.operations:,}", f"{found.seconds:.2f}", f"{found.size / 1e6:.1f}"]
    show([["target", "operations", "CPU s", "MB"], row])
    return found


if __name__ == "__main__":
    main()
