"""Inject faults into training on two processes, and print what came of them: ``python -m thunder_benchmarks.faults``.

Each run strikes one of two processes at a random place of a phase. The other has to raise within the timeout of the
process group and say where, losses and checkpoints have to be those of undisturbed training to the last bit, and
training that is started again has to end as that does. The exit status is 1 if anything else came of a run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from thunder_benchmarks.faults.runs import KINDS, PHASES, faults, table, undisturbed
from thunder_benchmarks.faults.runs import run as run_with


def main(words: Sequence[str] | None = None) -> int:
    """Run the faults that are asked for, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--timeout", type=float, default=6.0, help="of the process group, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    expected = {way: undisturbed(way, max(options.timeout, 60.0)) for way in ("ddp", "fsdp")}
    found = []
    for fault in faults(options.runs, options.kinds.split(","), options.phases.split(","), options.seed):
        outcome = run_with(fault, expected[fault.way], options.timeout)
        found.append(outcome)
        print(outcome.line(), file=sys.stderr, flush=True)
    print(table(found, options.timeout))
    return int(any([outcome.wrong for outcome in found]))


if __name__ == "__main__":
    sys.exit(main())
