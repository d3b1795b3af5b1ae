"""The page on fused kernels, and its pictures, of the rows that `thunder_benchmarks.fusion --rows` wrote.

python -m thunder_benchmarks.fusion_page rows.jsonl --out docs/benchmarks.md --pictures docs/pictures
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from thunder_benchmarks.fusion import COMPILERS, MODES, Timed
from thunder_benchmarks.fusion_cases import CASES
from thunder_benchmarks.tables import markdown, read_rows
from thunder_benchmarks.targets import Measured, drawn

DRAWN = ("eager", "torch.compile", "thunder")
SLOWER = 1.05
"""Of eager's time: from here on a case counts as slower, since steps of the same kernels differ by less."""

TEXT = """# Fused kernels on CPUs

Made of measurements by two commands:

    python -m thunder_benchmarks.fusion --rows rows.jsonl
    python -m thunder_benchmarks.fusion_page rows.jsonl --out docs/benchmarks.md --pictures docs/pictures

{where}

Steps are medians of CPU time in milliseconds, taken in turns. Memory that is freed stays with the process, where the C
library can be told so: otherwise it is chance which compiler's tensors get new pages at each step, and what these cost.
Each round is taken at another depth of Python's stack, for the same reason.
First calls are CPU seconds, with those of the C++ compiler that `torch.compile` starts; caches on disk were empty, and
each compiler had compiled an addition before.

`thunder` is `thunder.jit(f)`, whose default executors take only what is faster; `llvm` is
`thunder.jit(f, executors=["llvm"])`, which compiles everything that it can to kernels.

## Steps

![A training step of each case](pictures/fusion-steps.svg)

{steps}

Over all cases with `float32`, `thunder` takes {eager:.2f} of eager's time and {compiled:.2f} of `torch.compile`'s, as
geometric means. {slower}

Elements of `bfloat16` are rounded after each operation, as eager PyTorch does and Inductor does not. Among
the default executors, kernels take all of them but gelu and layer normalisation; what differs from eager there is the
time around PyTorch's kernels.

## First calls

![The first training step of each case, on a logarithmic scale](pictures/fusion-first-calls.svg)

{firsts}

As a geometric mean, the first call of `thunder` takes {first:.3f} of the time of `torch.compile`'s.

## Why kernels take part by default

They take part where a region of `float32` was measured to take less time than PyTorch's own kernels, in the table
above. A program without a tensor of 65,536 elements has kernels where each of them saves many calls, and
`llvmlite` is not imported for any other. The first call waits for kernels that are not on disk yet.
"""


def table(found: Sequence[Timed], value: Callable[[Timed], str], relative: Callable[[Timed], float]) -> str:
    """Return a table with a row for each case and mode, a column for each compiler, and two ratios.

    Args:
        found: what was measured.
        value: of a cell.
        relative: what the ratios are of.
    """
    names = [name for name in COMPILERS if any(t.compiler == name for t in found)]
    lines = [["case", *names, "thunder / eager", "thunder / torch.compile"]]
    for (case, mode), row in rows_of(found).items():
        ratios = [f"{relative(row['thunder']) / relative(row[other]):.2g}" for other in DRAWN[:2]]
        lines.append([f"{case}, {mode}", *[value(row[name]) for name in names], *ratios])
    return markdown(lines).rstrip("\n")


def rows_of(found: Sequence[Timed]) -> dict[tuple[str, str], dict[str, Timed]]:
    """Return what was measured by case and mode, and there by compiler; the last one of equal ones."""
    rows: dict[tuple[str, str], dict[str, Timed]] = {}
    for timed in found:
        rows.setdefault((timed.case, timed.mode), {})[timed.compiler] = timed
    return rows


def mean_ratio(found: Sequence[Timed], other: str, relative: Callable[[Timed], float]) -> float:
    """Return the geometric mean of what Thunder takes relative to another compiler, over the cases with `float32`."""
    rows = [row for (case, _), row in rows_of(found).items() if "bfloat16" not in case]
    return math.exp(statistics.fmean([math.log(relative(row["thunder"]) / relative(row[other])) for row in rows]))


def places(found: Sequence[Timed]) -> list[str]:
    """Return where rows were measured, each machine once, with the least and the most load that it had."""
    lines = dict.fromkeys([line.partition("; load average ")[0] for t in found for line in t.where])
    loads = [float(load) for t in found for line in t.where if (load := line.partition("; load average ")[2])]
    return [*lines, *([f"load average from {min(loads)} to {max(loads)}, of this measurement too"] if loads else [])]


def page(found: Sequence[Timed]) -> str:
    """Return the page."""
    slower = [
        f"{case}, {mode}"
        for (case, mode), row in rows_of(found).items()
        if row["thunder"].median > SLOWER * row["eager"].median
    ]
    named = f"More than {SLOWER - 1:.0%} slower than eager: {', '.join(slower)}." if slower else ""
    return TEXT.format(
        where="\n".join([f"- {line}" for line in places(found)]),
        steps=table(found, lambda t: f"{t.median:.2f}", lambda t: t.median),
        firsts=table(found, lambda t: f"{t.first:.2f}", lambda t: t.first),
        eager=mean_ratio(found, "eager", lambda t: t.median),
        compiled=mean_ratio(found, "torch.compile", lambda t: t.median),
        first=mean_ratio(found, "torch.compile", lambda t: t.first),
        slower=named or f"No case takes more than {SLOWER:.2f} of eager's time.",
    )


def pictures(found: Sequence[Timed]) -> dict[str, str]:
    """Return the pictures by the names of their files: training steps, and the first of them."""
    shown = [t for t in found if t.mode == "training" and t.compiler in DRAWN and "bfloat16" not in t.case]
    steps = [Measured(t.case, t.mode, t.compiler, 1e3 * t.median) for t in shown]
    firsts = [Measured(t.case, t.mode, t.compiler, 1e6 * t.first) for t in shown if t.compiler != "eager"]
    below = shown[-1].where
    return {
        "fusion-steps.svg": drawn(steps, below),
        "fusion-first-calls.svg": drawn(
            firsts, [*below, "The length of a bar is the logarithm of the time."], logarithmic=True
        ),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Write the page and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the page")
    parser.add_argument("--pictures", type=Path, required=True, help="their folder")
    options = parser.parse_args(words)
    order = [(case, mode) for case in CASES for mode in MODES]
    found = sorted(read_rows(Timed, options.rows), key=lambda t: order.index((t.case, t.mode)))
    options.out.write_text(page(found), encoding="utf-8")
    for name, text in pictures(found).items():
        (options.pictures / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
