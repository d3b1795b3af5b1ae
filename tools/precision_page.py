"""What the measurement of precision found, as a page."""

from __future__ import annotations

from typing import Any

import torch

from thunder_testing.sweeps import table

INTRODUCTION = """
How precise each composite is against double precision, beside eager PyTorch, on the CPU. *Decomposed* is what its
decomposition into prims computes, *compiled* what `thunder.jit` does, in value and gradient. An error is the norm of
the difference from the truth over the norm of the truth, in epsilons of the dtype; the number in the table is that of
Thunder over that of eager, each with 0.2 epsilons added (half of the last digit), as the geometric mean over draws of
the numbers at three scales. For each operation the worst of its samples counts; up to 1.5 is as precise as eager.
"""


def page(found: list[Any], failures: list[Any], limit: float) -> str:
    """Return the measurements as a page.

    Args:
        found: the errors of calls.
        failures: calls that raised.
        limit: of the ratio to eager's error.
    """
    version = torch.__version__.partition("+")[0]
    dtypes = list(dict.fromkeys([f.dtype for f in found]))
    columns = [(d, way, what) for d in dtypes for way in ("decomposed", "compiled") for what in ("value", "gradient")]
    worst: dict[str, dict[Any, float]] = {}
    for f in found:
        row = worst.setdefault(f.operation, {})
        key = f.dtype, f.way, f.what
        row[key] = max(row.get(key, 0.0), f.ratio)
    above = sum([any([r > limit for r in row.values()]) for row in worst.values()])
    lines = [
        "# Precision",
        *INTRODUCTION.splitlines(),
        "",
        f"What `python tools/precision.py --table docs/precision.md` found on PyTorch {version}: "
        f"{len(worst)} operations, {len(found)} measurements; {above} operations above {limit}, "
        f"{len({f.operation for f in failures})} that raised.",
        "",
        *table(
            ["operation", *[" ".join(column) for column in columns]],
            [
                (f"`{name}`", *[_cell(row[c], limit) if c in row else "–" for c in columns])
                for name, row in sorted(worst.items())
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _cell(ratio: float, limit: float) -> str:
    text = f"{ratio:.2f}" if ratio < 1e4 else f"{ratio:.0e}"
    return f"**{text}**" if ratio > limit else text
