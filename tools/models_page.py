"""What became of models: rows, kept in a file from run to run, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from compare_models import FORWARD, GRADIENT, LOST, SENSITIVE, STEPS, TRAINED

from thunder_testing.sweeps import Rows, cell, table

NO_MODEL = "no model of the library takes this configuration"
IN_FLOAT64 = "right in float64"
WITHIN_ROUNDING = "right within rounding"
KINDS = ("text", "images", "images and text", "sound", "sound and text", "other")


@dataclass
class Row:
    """What became of one model.

    Args:
        model_type, variant: what was run.
        model: its class.
        inputs: names of its arguments.
        forward, training: ``right``, or what went wrong; empty if not run.
        seconds: CPU seconds of the first call.
        operations: bound symbols of the program as recorded; of all programs where some of it runs in Python.
        split: where it does, and why; as seen in training where the model was trained.
        programs: how many were compiled in training; more than one where the first call changes the model, such as by
            putting hooks on it, and where random numbers or values decide.
        exact: whether the forward's values were the very same bits.
        place: where an error came from.
    """

    model_type: str
    variant: str
    model: str = ""
    inputs: tuple[str, ...] = ()
    forward: str = ""
    training: str = ""
    seconds: float = 0.0
    operations: int = 0
    split: tuple[str, ...] = ()
    programs: int = 1
    exact: bool = False
    place: str = ""

    @property
    def right(self) -> bool:
        """Whether all that was run was as in eager."""
        return self.forward == "right" and (not self.training or self.trains or self.training.startswith("eager: "))

    @property
    def trains(self) -> bool:
        """Whether it was trained as in eager."""
        return self.training == "right" or self.training.startswith((IN_FLOAT64, WITHIN_ROUNDING))

    @property
    def by_eager(self) -> bool:
        """Whether eager ran the model, so that there is something to compare with."""
        return not self.forward.startswith("eager: ")

    @property
    def kind(self) -> str:
        """What the model is about, by its inputs."""
        names = " ".join(self.inputs)
        text = "_ids" in names
        if "pixel" in names or "patches" in names or "grid_thw" in names:
            return "images and text" if text else "images"
        if "input_values" in names or "input_features" in names or "spectrogram" in names or "audio" in names:
            return "sound and text" if text else "sound"
        return "text" if text else "other"


def kept(path: Path | None) -> Rows[Row]:
    """Return the rows of a file, by type and variant."""
    return Rows(Row, lambda row: (row.model_type, row.variant), path)


def line(row: Row) -> str:
    """Return a row as text."""
    parts = [f"{row.model_type:22} {row.variant:16} {row.seconds:6.2f} s {row.operations:5} ops  {row.forward}"]
    if row.exact and row.forward == "right":
        parts.append("same bits")
    if row.training:
        parts.append(f"| training {row.training}")
    if row.programs > 1:
        parts.append(f"({row.programs} programs)")
    if row.place:
        parts.append(f"at {row.place}")
    return " ".join(parts)


def page(rows: Iterable[Row], asked: int, command: str) -> str:
    """Return the rows as a page.

    Args:
        rows: what was found.
        asked: how many types were asked for.
        command: that found it.
    """
    rows = list(rows)
    compared = [r for r in rows if r.by_eager]
    right = [r for r in compared if r.right]
    version = torch.__version__.partition("+")[0]
    trained = [r for r in compared if r.training and not r.training.startswith("eager: ")]
    split = [r for r in right if r.split]
    lines = [
        "# Models",
        "",
        f"Results of `{command}`",
        f"with transformers {transformers.__version__} on PyTorch {version}: tiny models with random weights,",
        "run eagerly and through `thunder.jit`. Results already in the file of rows were not measured again.",
        "",
        f"{len(rows)} of {asked} model types were tried; {len(compared)} of them run in eager in the tool's",
        f"configuration. Of these, {len(right)} are right. {len(trained)} were also trained,",
        f"{sum(r.trains for r in trained)} of them right. {len(split)} of the right ones run partly in Python",
        f"({100 * len(split) / max(len(right), 1):.1f} %); all others are one program.",
        "",
        "The forward pass is right if values, dtypes, strides and structure of the output match eager and two calls",
        f"use one program (float32: within {FORWARD[torch.float32]:g} of the largest value; *same bits* means no",
        "difference at all). *And Python at n* means that n calls run in Python between compiled programs. Training is",
        f"right if all gradients (within {GRADIENT[torch.float32]:g} of the largest gradient) and the losses and",
        f"parameters of {STEPS} steps of AdamW (within {TRAINED[torch.float32]:g}) match eager.",
        f"*{IN_FLOAT64.capitalize()}* are models whose rounding is more than that in float32, as told in brackets:",
        f"their training matches in float64, within {TRAINED[torch.float64]:g} or {SENSITIVE} times what eager differs",
        "from itself in the worst of several trainings whose weights differ by one rounding.",
        f"*{WITHIN_ROUNDING.capitalize()}* are those that compute in float32 even then, or run in nothing else: they",
        "are measured by roundings of float32.",
        f"Steps are compared until eager's loss differs from itself by {LOST:g}; fewer than {STEPS} are told.",
        "",
        "## Different from eager",
        "",
        *table(
            ["type", "model", "variant", "forward", "training"],
            [
                (r.model_type, r.model, r.variant, cell(r.forward, 150), cell(r.training, 150))
                for r in compared
                if not r.right
            ],
        ),
        "",
        "## Partly in Python",
        "",
        "These are right; the table says where and why each runs in Python.",
        "",
        *table(["type", "where and why"], [(r.model_type, cell(each, 300)) for r in split for each in r.split]),
        "",
        "## Same as eager",
        "",
    ]
    eager: list[Sequence[object]] = []
    for kind in KINDS:
        of_kind = [r for r in right if r.kind == kind]
        eager += [(f"**{kind}: {len(of_kind)}**", *[""] * 6)] if of_kind else []
        eager += [_right(row) for row in of_kind]
    header = ["type", "model", "variant", "operations", "first call, CPU s", "forward", "training"]
    lines += table(header, eager)
    failed = [r for r in rows if not r.by_eager]
    lines += ["", "## Not compared", "", "These do not run in eager in the tool's configuration.", ""]
    parts = [r.model_type for r in failed if NO_MODEL in r.forward]
    if parts:
        lines += [f"- Parts of other models, of which {NO_MODEL} alone: {', '.join(parts)}.", ""]
    lines += [
        f"- {r.model_type}: {cell(r.forward.removeprefix('eager: '), 150)}" for r in failed if NO_MODEL not in r.forward
    ]
    return "\n".join(lines) + "\n"


def _right(row: Row) -> Sequence[object]:
    exact = "same bits" if row.exact else "right"
    training = row.training + (f", {row.programs} programs" if row.programs > 1 else "")
    operations = str(row.operations) + (f", and Python at {len(row.split)}" if row.split else "")
    return row.model_type, row.model, row.variant, operations, f"{row.seconds:.2f}", exact, training


__all__ = ["IN_FLOAT64", "NO_MODEL", "WITHIN_ROUNDING", "Row", "kept", "line", "page"]
