"""Tiny models of transformers: eager and compiled are equal. tools/transformers_sweep.py runs many more."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the models of transformers are optional for the tests")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import transformers_sweep  # noqa: E402

TRAINED = ["llama", "gpt2", "bert", "t5", "vit", "mixtral", "resnet"]
VARIANTS = [
    ("llama", "padded"),
    ("llama", "dynamic-cache"),
    ("llama", "static-cache"),
    ("gemma2", "hidden"),
    ("qwen2", "tuple"),
    ("gpt_neox", "bfloat16"),
    ("roberta", "autocast"),
    ("distilbert", "eager-attention"),
    ("whisper", "plain"),
    ("phi", "dynamic-cache"),
    ("mistral", "mask"),
]


def run(model_type: str, variant: str, *words: str) -> transformers_sweep.Row:
    return transformers_sweep.Sweep(transformers_sweep.parsed(list(words))).row(model_type, variant)


@pytest.mark.parametrize("model_type", TRAINED)
def test_forward_gradients_and_ten_steps_with_dropout_are_eagers(model_type):
    row = run(model_type, "plain", "--train", "--dropout", "0.1", "--labels")
    assert (row.forward, row.training) == ("right", "right")


@pytest.mark.parametrize(("model_type", "variant"), VARIANTS)
def test_variants_of_the_forward_are_eagers(model_type, variant):
    assert run(model_type, variant).forward == "right"


def test_differences_are_told_apart_from_errors_of_eager_itself():
    assert run("llama", "static-cache").right
    assert run("no such type", "plain").forward.startswith("eager: KeyError")
