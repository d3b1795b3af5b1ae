"""What the measurement of precision found, as a page."""

from __future__ import annotations

from typing import Any

import torch

from thunder_testing.sweeps import table

INTRODUCTION = """
The error of each composite operation relative to the error of eager PyTorch on the CPU, both against double
precision. *Decomposed* is the decomposition into prims, *compiled* is the result of `thunder.jit`, each for values
and gradients. An error is the norm of the difference divided by the norm of the reference, in epsilons of the dtype.
Each number in the table is Thunder's error divided by eager's, with 0.2 epsilons added to both, as the geometric mean
over random inputs at three scales, for the worst sample of the operation. Up to 1.5 counts as equally precise.
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
        f"Results of `python tools/precision.py --table docs/precision.md` on PyTorch {version}: "
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
