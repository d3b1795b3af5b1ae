"""Run tiny models of the transformers library under torch.compile(backend="thunder") and compare with eager.

python tools/dynamo_sweep.py                     the types that are promised to work
python tools/dynamo_sweep.py promised more wider   115 types
python tools/dynamo_sweep.py opt bloom           any other types; promised, more, wider, all are lists of them
python tools/dynamo_sweep.py promised more wider --rows rows.jsonl --out docs/dynamo.md
                                                 write a page; types that the file of rows has are not run again

A model is right if its output in evaluation, its loss in training and all its gradients are eager's. One that dynamo
does not get right with its own backend "eager" either is counted for itself. First calls are of new copies of a model
in evaluation, with this backend and with PyTorch's "aot_eager", which come first in turn; their time is CPU time.
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from compare_models import compare, compare_gradients, loss_of
from tiny_transformers import Case, NoCaseError, tiny_case
from transformers_sweep import group

from thunder_fx import ThunderCompiler
from thunder_testing import sweeps

TOLERANCE = 2e-4
WIDER = (
    "apertus", "arcee", "biogpt", "blenderbot", "cohere2", "convbert", "cpmant", "ctrl", "data2vec-text", "diffllama",
    "ernie", "ernie4_5", "esm", "eurobert", "exaone4", "flaubert", "fnet", "gemma", "glm", "gpt_bigcode",
    "gpt_neox_japanese", "granitemoe", "helium", "hunyuan_v1_dense", "imagegpt", "lfm2", "luke", "mamba2",
    "megatron-bert", "ministral", "mobilebert", "mvp", "nemotron", "nystromformer", "olmo3", "openai-gpt", "persimmon",
    "plbart", "qwen3_moe", "rembert", "seed_oss", "smollm3", "squeezebert", "xglm", "beit", "regnet", "swinv2",
)  # fmt: skip


def outcome(case: Case, backend: Any) -> str:
    """Return what is wrong with a compiled model, or ``""``."""
    eager = case.model().eval()
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, backend=backend)
    inputs = case.inputs(eager)
    compare(seeded(compiled, inputs), seeded(eager, inputs), TOLERANCE)
    eager.train()
    model.train()
    try:
        inputs = case.inputs(eager, labels=True)
        loss = loss_of(seeded(eager, inputs))
        loss.backward()
    except Exception as error:
        return f"eager does not train: {error}"
    found = loss_of(seeded(compiled, inputs))
    found.backward()
    compare([found.detach()], [loss.detach()], TOLERANCE)
    compare_gradients(model, eager, TOLERANCE)
    return ""


def seeded(model: Any, inputs: dict[str, Any]) -> Any:
    """Call a model with the generators of random numbers as they are before each other call."""
    torch.manual_seed(0)
    numpy.random.seed(0)
    return model(**copy.deepcopy(inputs))


def dynamo_alone(case: Case) -> str:
    """Return what is wrong with a model where dynamo finds graphs and PyTorch runs them as they are, or ``""``."""
    torch._dynamo.reset()
    try:
        return outcome(case, "eager")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def seconds_of_first_call(case: Case, backend: Any) -> float:
    """Return how long the first forward of a model takes, of the processor's time."""
    torch._dynamo.reset()
    model = case.model().eval()
    compiled, inputs = torch.compile(model, backend=backend), case.inputs(model)
    gc.collect()  # what others left, which the first of them to make much pays for
    start = time.process_time()
    compiled(**inputs)
    return time.process_time() - start


def first_calls(case: Case, swapped: bool) -> tuple[float, float]:
    """Return the seconds of first calls: with Thunder, and with PyTorch's ``aot_eager``, which is first if swapped.

    The second is 0 where ``aot_eager`` fails.
    """
    found = {}
    for name in ("aot_eager", "thunder") if swapped else ("thunder", "aot_eager"):
        try:
            found[name] = seconds_of_first_call(case, ThunderCompiler() if name == "thunder" else name)
        except Exception:
            if name == "thunder":
                raise
            found[name] = 0.0
    return found["thunder"], found["aot_eager"]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one type.

    Args:
        model_type: the type.
        kind: ``right``, ``wrong``, ``no training`` (eager does not train it), ``no case`` or ``dynamo alone``.
        told: what is wrong.
        graphs: how many graphs dynamo found.
        left: what of them PyTorch runs, and why.
        ours, aot: seconds of the first call, with Thunder and with ``aot_eager``; 0 if not measured, or it fails.
    """

    model_type: str
    kind: str
    told: str = ""
    graphs: int = 0
    left: Sequence[str] = ()
    ours: float = 0
    aot: float = 0


def row_of(model_type: str, swapped: bool) -> Row:
    """Run a type."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    backend = ThunderCompiler()
    ours = aot = 0.0
    try:
        case = tiny_case(model_type)
        told = outcome(case, backend)
        kind = "right" if not told else "no training"
        ours, aot = first_calls(case, swapped)
    except NoCaseError as error:
        kind, told = "no case", str(error)
    except Exception as error:
        kind, told = "wrong", f"{type(error).__name__}: {error}"
        alone = dynamo_alone(case)
        if alone:
            kind, told = "dynamo alone", alone
    left = [part.reason for part in backend.parts if part.compiled is None]
    return Row(model_type, kind, " ".join(told.split())[:200], len(backend.graphs), left, ours, aot)


def page(rows: Sequence[Row], asked: int) -> str:
    """Return the page, of those of so many types that were run."""
    counts = Counter(row.kind for row in rows)
    ratios = [row.ours / row.aot for row in rows if row.aot]
    return "\n".join(
        [
            "# Transformers through torch.compile",
            "",
            "Generated by `python tools/dynamo_sweep.py promised more wider --rows rows.jsonl --out docs/dynamo.md`:",
            'tiny models with random weights, compiled with `torch.compile(model, backend="thunder")`. A model is',
            "right if its output in evaluation, its training loss and all gradients match eager. First-call times are",
            "CPU times of the forward pass in evaluation, compared with PyTorch's backend `aot_eager` in the same",
            "process.",
            "",
            f"PyTorch {torch.__version__}: {len(rows)} of {asked} types were run; "
            + ", ".join(f"{kind}: {number}" for kind, number in counts.most_common())
            + f". First calls take {_mean(ratios):.2f} of aot_eager's time as a geometric mean, "
            f"{statistics.median(ratios):.2f} as the median, {max(ratios):.2f} at most.",
            "",
            *sweeps.table(
                ["type", "outcome", "graphs", "left to PyTorch", "first call, s", "of aot_eager's"],
                [_cells(row) for row in sorted(rows, key=lambda row: row.model_type)],
            ),
            "",
        ]
    )


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def _cells(row: Row) -> Sequence[object]:
    ratio = f"{row.ours / row.aot:.2f}" if row.aot else "aot_eager fails"
    times = (f"{row.ours:.2f}", ratio) if row.ours else ("", "")
    told = sweeps.cell(f"{row.kind}: {row.told}" if row.told else row.kind, 220)
    return row.model_type, told, row.graphs, len(row.left) or "", *times


def types(names: list[str]) -> Iterator[str]:
    """Yield each type that is named, by itself or in a list."""
    seen: set[str] = set()
    for name in names:
        for model_type in WIDER if name == "wider" else group(name):
            if model_type not in seen:
                seen.add(model_type)
                yield model_type


def warm_up() -> None:
    """Compile something by both backends, so that no first call imports them."""
    for backend in (ThunderCompiler(), "aot_eager"):
        torch._dynamo.reset()
        torch.compile(torch.nn.Linear(2, 2), backend=backend)(torch.ones(1, 2)).sum().backward()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", default=["promised"])
    parser.add_argument("--rows", type=Path, help="a file of rows, which is added to")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no type after as many")
    parser.add_argument("--out", type=Path, help="the page to write")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = sweeps.Rows(Row, lambda row: row.model_type, options.rows)
    warm_up()
    start = time.monotonic()
    wanted = list(types(options.types))
    for place, model_type in enumerate(wanted):
        if model_type in rows.found or time.monotonic() - start > 60 * options.minutes:
            continue
        row = row_of(model_type, swapped=bool(place % 2))
        times = f", first call {row.ours:.2f} s, aot_eager {row.aot:.2f} s" if row.aot else ""
        print(f"{model_type:20} {row.kind:12} graphs {row.graphs}{times} {row.told}", flush=True)
        for reason in row.left:
            print(f"    left to PyTorch: {reason[:200]}")
        rows.add(row)
    found = [rows.found[model_type] for model_type in wanted if model_type in rows.found]
    counts = Counter(row.kind for row in found)
    print(dict(counts))
    if options.out is not None:
        known = options.out.read_text(encoding="utf-8") if options.out.exists() else ""
        other = sweeps.section(known, "Detection models of torchvision")  # which tools/detection_sweep.py writes
        text = page(found, len(wanted))
        options.out.write_text(f"{text}\n{other}" if other else text, encoding="utf-8")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
