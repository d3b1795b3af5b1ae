"""Run tiny models of the transformers library under torch.compile(backend="thunder") and compare with eager.

python tools/dynamo_sweep.py                     the types that are promised to work
python tools/dynamo_sweep.py promised more wider   115 types
python tools/dynamo_sweep.py opt bloom           any other types; promised, more, wider, all are lists of them
python tools/dynamo_sweep.py --aot               time the first call beside that of the backend aot_eager, too

A model is right if its output in evaluation, its loss in training and all its gradients are eager's. One that dynamo
does not get right with its own backend "eager" either is counted for itself.
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

import numpy
import torch
from compare_models import compare, compare_gradients, loss_of
from tiny_transformers import Case, NoCaseError, tiny_case
from transformers_sweep import group

from thunder_fx import ThunderCompiler

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
        for model_type in WIDER if name == "wider" else group(name):
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
            alone = dynamo_alone(case)
            if alone:
                kind, told = "dynamo alone", alone
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
