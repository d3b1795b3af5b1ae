"""Processes that die, hang, are slow or are cut off in the midst of training: what the others do, run after run."""

from thunder_benchmarks.faults.runs import KINDS, PHASES, Fault, Found, faults, run, table

__all__ = ["KINDS", "PHASES", "Fault", "Found", "faults", "run", "table"]
