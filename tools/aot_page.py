"""Run the cases of ahead-of-time compilation by Thunder beside eager, and write the page that shows what holds.

python tools/aot_page.py                     print a table
python tools/aot_page.py writes views        some groups alone
python tools/aot_page.py --out docs/aot.md   write the page
python tools/aot_page.py --peer              PyTorch's own aot_function in the place of Thunder's
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import functorch.compile  # type: ignore[import-untyped]
import torch
from aot_cases import CASES, Case, outcomes
from torch.testing import assert_close

from thunder_fx import aot
from thunder_testing.sweeps import cell, table

PARTITIONS = (aot.default_partition, aot.min_cut_rematerialization_partition)
PEERS = (functorch.compile.default_partition, functorch.compile.min_cut_rematerialization_partition)


def compiled(case: Case, partition: Callable[..., Any], peer: bool) -> Callable[..., Any]:
    """Return a case's function, compiled."""
    made = functorch.compile.aot_function if peer else aot.aot_function
    run: Callable[..., Any] = made(case.function, aot.nop, partition_fn=partition, dynamic=bool(case.sizes))
    return run


def refusal(case: Case, grad: bool) -> str:
    """Return what eager raises, if it does."""
    try:
        for _ in outcomes(case, case.function, grad):
            pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def outcome(case: Case, grad: bool, partition: Callable[..., Any], peer: bool = False) -> str:
    """Return ``right``, ``more: ...``, ``refused: ...`` or ``wrong: ...``.

    Eager raises where a derivative reads what was written over; to return the derivative there is more than eager does.
    """
    told = refusal(case, grad)
    facts = iter(()) if told else outcomes(case, case.function, grad)
    try:
        for kind, found in outcomes(case, compiled(case, partition, peer), grad):
            expected = next(facts, None)
            problem = "" if expected is None else difference(expected, (kind, found))
            if problem:
                return f"wrong: {kind}: {problem}"
    except Exception as error:
        return "right" if told else f"refused: {type(error).__name__}: {error}"
    if not told:
        return "right"
    return f"more: eager raises {told}" if "modified by an inplace operation" in told else f"wrong: eager raises {told}"


def difference(expected: Any, found: Any) -> str:
    """Return in what facts differ, or ``""``."""
    try:
        if expected[0].startswith(("values", "gradients")):
            assert_close(found[1], expected[1], equal_nan=True)
        else:
            assert found == expected, f"{found[1]}, not {expected[1]}"
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return ""


def rows(groups: list[str], peer: bool) -> list[tuple[Case, bool, str]]:
    """Run the cases, each with each partition; return what became of them, the worse of both."""
    found = []
    for case in CASES:
        if groups and case.group not in groups:
            continue
        for grad in case.gradients:
            told = [outcome(case, grad, p, peer) for p in (PEERS if peer else PARTITIONS)[: 1 + grad]]
            found.append(
                (case, grad, max(told, key=lambda t: ("right", "more", "refused", "wrong").index(t.partition(":")[0])))
            )
    return found


def page(found: list[tuple[Case, bool, str]]) -> str:
    """Return the page."""
    counts = Counter(told.partition(":")[0] for *_, told in found)
    lines = [
        "# Ahead-of-time compilation beside eager",
        "",
        "Written by `python tools/aot_page.py --out docs/aot.md`. `thunder.aot.aot_function` runs functions by graphs",
        "of their forward and their backward part. The cases are of the kinds that PyTorch's own tests of AOTAutograd",
        "have. A case is right if results and arguments have eager's values and strides after the call, are the same",
        "objects or share memory where eager's do, change with a write to a result where eager's do, and have eager's",
        "gradients. It is run with the partition that saves all, and with the one that computes again.",
        "",
        f"PyTorch {torch.__version__}: {counts['right']} of {len(found)} right, {counts['refused']} refused, "
        f"{counts['wrong']} wrong; {counts['more']} return a derivative where eager raises, as it was written over.",
        "",
    ]
    for group in dict.fromkeys(case.group for case, *_ in found):
        rows = []
        for case in [c for c in CASES if c.group == group]:
            told = {grad: t for c, grad, t in found if c is case}
            rows.append((case.name, _cell(told.get(False)), _cell(told.get(True))))
        header = ["case", "without gradients", "with gradients"]
        lines += [f"## {group[0].upper()}{group[1:]}", "", *table(header, rows), ""]
    return "\n".join(lines)


def _cell(told: str | None) -> str:
    if told is None:
        return ""
    return cell(re.sub(r"/\S*/", "", told), 160)  # without where it is on this machine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    found = rows(options.groups, options.peer)
    for case, grad, told in found:
        if not told.startswith("right"):
            print(f"{case.group}: {case.name}, gradients {grad}: {' '.join(told.split())[:400]}")
    counts = Counter(told.partition(":")[0] for *_, told in found)
    print(f"{len(found)}: {dict(counts)}")
    if options.out is not None:
        options.out.write_text(page(found), encoding="utf-8")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
