"""What a sweep over PyTorch's database of operations found, as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from thunder_testing.sweeps import cell, table

OUTCOMES = ("right", "wrong", "raised", "refused")
INTRODUCTION = """
*Composed* functions decompose into prims, which transforms and executors handle individually. *Opaque* functions are
called as a whole, differentiated by PyTorch's autograd and batched by `torch.vmap`. *Refused* functions cannot be
part of a program and raise an error: they use sparse tensors, or the metadata of their results depend on values in a
way that PyTorch's fake tensors do not describe.

*vjp* is the reverse-mode gradient, compared with PyTorch's autograd. *jvp* is the tangent, compared with PyTorch's
forward mode, and with central differences in double precision if they disagree. *vmap* runs a batch of a sample and
its half, compared with two separate calls. They run for the first dtype that the operation supports. A dash means not
compared: PyTorch has no such derivative, there is nothing to differentiate, samples cannot be batched, sizes depend
on values, or the operation draws random numbers. Counts are right samples of compared samples.
"""


def page(reports: list[Any], command: str, dtypes: list[str], transforms: list[str]) -> str:
    """Return the reports as a page.

    Args:
        reports: one for each operation.
        command: that found them.
        dtypes, transforms: names of those that were asked for.
    """
    version = torch.__version__.partition("+")[0]
    lines = [
        "# Operators",
        "",
        f"Results of `{command}`",
        f"on PyTorch {version}: every operation in PyTorch's OpInfo database, compared with",
        "eager in value, dtype, shape and strides.",
        *INTRODUCTION.splitlines(),
        "",
        "## Totals",
        "",
        *_totals(reports, dtypes),
    ]
    if transforms:
        lines += ["", *_transform_totals(reports, transforms)]
    header = ["operation", "kind", "outcome", "samples right, by dtype", *transforms, "remark"]
    lines += ["", "## Each operation", "", *table(header, [_row(r, transforms) for r in reports])]
    return "\n".join(lines) + "\n"


def _totals(reports: list[Any], dtypes: list[str]) -> list[str]:
    outcomes = Counter(r.outcome for r in reports)
    rows: list[Sequence[object]] = [("all", len(reports), *[outcomes[o] for o in (*OUTCOMES, "no samples")])]
    for dtype in dtypes:
        having = [worst(r.dtypes[dtype]) for r in reports if dtype in r.dtypes]
        counts = Counter(having)
        rows.append((f"that take {dtype}", len(having), *[counts[o] for o in (*OUTCOMES, "no samples")]))
    return table(["operations", "all", *OUTCOMES, "no samples"], rows)


def _transform_totals(reports: list[Any], transforms: list[str]) -> list[str]:
    rows = []
    for kind in transforms:
        counts = Counter(worst(r.transforms.get(kind, Counter())) for r in reports)
        rows.append((kind, *[counts[o] for o in (*OUTCOMES, "no samples")]))
    return table(["transform", *OUTCOMES, "not compared"], rows)


def worst(counts: Counter[str]) -> str:
    """Return the worst outcome of samples."""
    return next((o for o in ("wrong", "raised", "refused", "right") if counts[o]), "no samples")


def _row(report: Any, transforms: list[str]) -> Sequence[object]:
    dtypes = [f"{name} {_fraction(counts)}" for name, counts in report.dtypes.items() if sum(counts.values())]
    along = [_fraction(report.transforms.get(kind, Counter())) for kind in transforms]
    troubled = report.outcome != "right" or any(
        [c["wrong"] or c["raised"] or c["refused"] for c in report.transforms.values()]
    )
    remark = cell(report.first) if troubled else ""
    return f"`{report.name}`", report.kind, report.outcome, ", ".join(dtypes), *along, remark


def _fraction(counts: Counter[str]) -> str:
    compared = sum([counts[o] for o in OUTCOMES])
    return f"{counts['right']}/{compared}" if compared else "–"
