"""Run tiny models of the transformers library under torch.compile(backend="thunder") and compare with eager.

python tools/dynamo_sweep.py                     the types that are promised to work
python tools/dynamo_sweep.py opt bloom           any other types; promised, more, all are lists of them
python tools/dynamo_sweep.py --aot               time the first call beside that of the backend aot_eager, too

A model is right if its output and, in training, all its gradients are eager's.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from compare_models import compare, compare_gradients, loss_of
from tiny_transformers import Case, NoCaseError, tiny_case
from transformers_sweep import group

from thunder_fx import ThunderCompiler

TOLERANCE = 2e-4


def outcome(case: Case, backend: Any) -> str:
    """Return what is wrong with a compiled model, or ``""``."""
    eager = case.model()
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, backend=backend)
    inputs = case.inputs(eager)
    compare(compiled(**copy.deepcopy(inputs)), eager(**copy.deepcopy(inputs)), TOLERANCE)
    eager.train()
    model.train()
    try:
        inputs = case.inputs(eager, labels=True)
        loss = loss_of(eager(**copy.deepcopy(inputs)))
        loss.backward()
    except Exception as error:
        return f"eager does not train: {error}"
    loss_of(compiled(**copy.deepcopy(inputs))).backward()
    compare_gradients(model, eager, TOLERANCE)
    return ""


def seconds_of_first_call(case: Case, backend: Any) -> float:
    """Return how long the first forward of a model takes."""
    torch._dynamo.reset()
    model = case.model()
    compiled, inputs = torch.compile(model, backend=backend), case.inputs(model)
    start = time.perf_counter()
    compiled(**inputs)
    return time.perf_counter() - start


def types(names: list[str]) -> Iterator[str]:
    """Yield each type that is named, by itself or in a list."""
    seen: set[str] = set()
    for name in names:
        for model_type in group(name):
            if model_type not in seen:
                seen.add(model_type)
                yield model_type


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", default=["promised"])
    parser.add_argument("--aot", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for model_type in types(options.types):
        torch._dynamo.reset()
        torch.manual_seed(0)
        backend = ThunderCompiler()
        told = ""
        try:
            case = tiny_case(model_type)
            told = outcome(case, backend)
            kind = "right" if not told else "no training"
        except NoCaseError as error:
            kind, told = "no case", str(error)
        except Exception as error:
            kind, told = "wrong", f"{type(error).__name__}: {error}"
        counts[kind] += 1
        left = len([p for p in backend.parts if p.compiled is None])
        line = f"{model_type:20} {kind:12} graphs {len(backend.graphs)}, left to PyTorch {left}"
        if options.aot and kind == "right":
            ours, aot = (seconds_of_first_call(case, b) for b in (ThunderCompiler(), "aot_eager"))
            line += f", first call {ours:.2f} s, aot_eager {aot:.2f} s"
        print(line, " ".join(told.split())[:200], flush=True)
        for part in backend.parts:
            if part.compiled is None:
                print(f"    {part.reason[:200]}")
    print(dict(counts))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
