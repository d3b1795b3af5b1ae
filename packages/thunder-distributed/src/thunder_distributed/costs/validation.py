"""Estimates beside published steps: constants are fitted to half of them, and the others are predicted."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from thunder_distributed.costs.machine import machine
from thunder_distributed.costs.transformers import Estimate, Layout, estimate, transformer

START = {
    "megatron": 0.6, "eager": 0.6, "compiled": 0.7, "float8": 0.9, "fused8": 1.0,
    "traffic": 2.0, "exposed": 1.0,
}  # fmt: skip
BOUNDS = {"traffic": (0.5, 20.0), "exposed": (0.2, 2.0)}
"""Within which corrections may lie; efficiencies from 0.2 to 1.6 of the peak of 16 bits."""
ROUNDS = 60


@dataclass(frozen=True)
class Published:
    """A step that was measured.

    Args:
        name: of model, layout and source.
        model: sizes.
        layout: how it was laid out.
        machine: on what.
        seconds: as published.
    """

    name: str
    model: Any
    layout: Layout
    machine: str
    seconds: float

    def estimate(self, fitted: Mapping[str, float]) -> Estimate:
        """Return the estimate."""
        return estimate(self.model, self.layout, *machine(self.machine), fitted)

    def error(self, fitted: Mapping[str, float]) -> float:
        """Return the relative error of the estimate."""
        return self.estimate(fitted).seconds / self.seconds - 1


def published() -> list[Published]:
    """Return the steps in ``published.json``."""
    table = json.loads((files(__package__) / "published.json").read_text(encoding="utf-8"))
    models = {name: transformer(entry) for name, entry in table["models"].items()}
    found = []
    for row in table["steps"]:
        own = {k: v for k, v in row.items() if k not in ("source", "model", "machine", "seconds")}
        kinds = [str(row["processes"]), row["kernels"], row["again"]]
        kinds += ["async"] if row.get("asynchronous") else []
        kinds += [f"{row['chunks']} chunks"] if row["pipeline"] > 1 else []
        name = f"{row['source']} {row['model']} {' '.join(kinds)}"
        found.append(Published(name, models[row["model"]], Layout(**own), row["machine"], row["seconds"]))
    return found


def halves(steps: Sequence[Published]) -> tuple[list[Published], list[Published]]:
    """Return the steps that constants are fitted to, and those that are predicted: by turns within each kind.

    So there is at least one of each kind of kernels to fit to.
    """
    counts: dict[str, int] = {}
    fitted: list[Published] = []
    predicted: list[Published] = []
    for step in steps:
        kind = step.layout.kernels
        (predicted if counts.get(kind, 0) % 2 else fitted).append(step)
        counts[kind] = counts.get(kind, 0) + 1
    return fitted, predicted


def fit(steps: Sequence[Published]) -> dict[str, float]:
    """Return the corrections that make the estimates of some steps closest, by descent along one after the other."""
    found = dict(START)

    def loss(values: Mapping[str, float]) -> float:
        return sum([math.log1p(s.error(values)) ** 2 for s in steps])

    best, width = loss(found), 0.3
    for _ in range(ROUNDS):
        improved = False
        for key in found:
            low, high = BOUNDS.get(key, (0.2, 1.6))
            for factor in (1 + width, 1 / (1 + width)):
                tried = {**found, key: min(max(found[key] * factor, low), high)}
                now = loss(tried)
                if now < best:
                    best, found, improved = now, tried, True
        if not improved:
            width /= 2
    return found


@dataclass(frozen=True)
class Report:
    """What a validation found.

    Args:
        fitted: the corrections.
        rows: for each step whether it was predicted, its name, seconds as published and as estimated.
    """

    fitted: dict[str, float]
    rows: tuple[tuple[bool, str, float, float], ...]

    def errors(self, predicted: bool) -> list[float]:
        """Return the absolute relative errors of the steps that were predicted, or fitted."""
        return [abs(made / seconds - 1) for held, _, seconds, made in self.rows if held is predicted]

    def table(self) -> str:
        """Return it as text."""
        lines = [f"{'published':>10} {'estimated':>10} {'error':>7}  step"]
        for predicted, name, seconds, made in self.rows:
            kind = "predicted" if predicted else "fitted"
            lines.append(f"{seconds:10.2f} {made:10.2f} {made / seconds - 1:+7.1%}  {name} ({kind})")
        for predicted, kind in ((False, "fitted"), (True, "predicted")):
            errors = self.errors(predicted)
            lines.append(
                f"{kind}: median {statistics.median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} steps"
            )
        lines.append("corrections: " + ", ".join(f"{k} {v:.3f}" for k, v in self.fitted.items()))
        return "\n".join(lines)


def validate() -> Report:
    """Fit the corrections to half of the published steps, and estimate all."""
    steps = published()
    known, held_out = halves(steps)
    fitted = fit(known)
    rows = [(s in held_out, s.name, s.seconds, s.estimate(fitted).seconds) for s in steps]
    return Report(fitted, tuple(rows))


__all__ = ["Published", "Report", "fit", "halves", "published", "validate"]
