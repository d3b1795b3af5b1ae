"""Benchmarks as importable cases, and the command that runs them: ``python -m thunder_benchmarks.targets``."""

from thunder_benchmarks.targets import libraries
from thunder_benchmarks.targets.cases import TARGETS, Job, Target, target
from thunder_benchmarks.targets.measuring import MODES, Measured, compiler, measure, operations, peak, peak_bytes
from thunder_benchmarks.targets.picture import drawn

__all__ = [
    "Job", "MODES", "Measured", "TARGETS", "Target", "compiler", "drawn", "libraries", "measure",
    "operations", "peak", "peak_bytes", "target",
]  # fmt: skip
