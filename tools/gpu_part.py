"""A part of what `tools/gpu.py` checks, in a process of its own: it writes a line of JSON for each thing that it found.

python tools/gpu_part.py PART --seconds 300 --out FOLDER [--share 0/4] [--first 7] [--rehearse]

Before each check there is a line that it begins, with the seconds that it may take: so whoever started this knows what
ended it. It ends by itself after an error from which a device does not recover, with status 3.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from gpu_machine import Check, Machine, NotHere, Rehearsal

HOMES = {
    "installed": "gpu_installed", "checks": "gpu_programs", "training": "gpu_programs",
    "conformance": "gpu_operations", "opinfo": "gpu_operations", "tests": "gpu_installed", "bench": "gpu_bench",
}  # fmt: skip
BROKEN = ("CUDA error", "an illegal memory access", "device-side assert")
"""Words of errors after which every call on the device fails."""


HERE = ("installed", "tests")
"""Parts that tell of a machine without a device, too."""


def no_device() -> str:
    raise AssertionError("PyTorch sees no CUDA device; with --rehearse this part is rehearsed on the CPU")


def checked(check: Check) -> dict[str, Any]:
    """Return what came of one check, be it an error."""
    began = time.monotonic()
    try:
        found, outcome = check.run(), "held"
    except NotHere as error:
        found, outcome = str(error), "not here"
    except AssertionError as error:
        found, outcome = str(error)[:600], "wrong"
    except Exception as error:  # a report of what does not work must go on
        traceback.print_exc()
        found, outcome = f"{type(error).__name__}: {error}"[:600], "error"
    return {"check": check.name, "outcome": outcome, "found": found, "seconds": round(time.monotonic() - began, 2)}


def run(
    checks: Iterator[tuple[int, Check]], ends: float, write: Callable[[dict[str, Any]], None], patience: float = 1.0
) -> int:
    """Do checks, until the time is over; return the status to exit with.

    Args:
        checks: with the number that each has in its part.
        ends: when the time is over, by ``time.monotonic()``.
        write: keeps a row.
        patience: how many times as long as its limit a check may take.
    """
    status = left = 0
    for number, check in checks:
        if time.monotonic() > ends:
            left += 1
            continue
        write({"number": number, "check": check.name, "limit": check.limit * patience})
        row = checked(check)
        write({"number": number, **row})
        if row["outcome"] in ("wrong", "error"):
            status = 1
        if row["outcome"] == "error" and any(words in row["found"] for words in BROKEN):
            return 3
    if left:
        write({"check": f"{left} more", "outcome": "no time", "found": "not reached in the time given"})
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(HOMES))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--first", type=int, default=0, help="the number of the first check to do")
    parser.add_argument("--share", default="0/1", help="I/N: every N-th check, from number I on")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rehearse", action="store_true")
    words = parser.parse_args()
    ends = time.monotonic() + words.seconds * 0.9
    machine = Rehearsal() if words.rehearse else Machine()
    checks: Iterator[Check] = getattr(import_module(HOMES[words.part]), words.part)(machine)
    if not words.rehearse and words.part not in HERE and not torch.cuda.is_available():
        checks = iter([Check("a device", no_device)])
    share, shares = (int(n) for n in words.share.split("/"))
    chosen = ((n, check) for n, check in enumerate(checks) if n >= words.first and n % shares == share)
    with (words.out / f"{words.part}.{share}.jsonl").open("a") as file:

        def write(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        return run(chosen, ends, write, machine.patience)


if __name__ == "__main__":
    sys.exit(main())
