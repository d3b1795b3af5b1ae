"""Tiny models of transformers: eager and compiled are equal. tools/transformers_sweep.py runs many more."""

import sys
from pathlib import Path

import pytest
import torch

import thunder

pytest.importorskip("transformers", reason="the models of transformers are optional for the tests")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import tiny_transformers  # noqa: E402
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


@pytest.mark.parametrize("model_type", ["vilt", "nystromformer", "switch_transformers", "hubert"])
def test_models_that_look_at_values_train_as_in_eager_in_their_default_configuration(model_type):
    row = run(model_type, "plain", "--train", "--dropout", "own")
    assert (row.forward, row.training) == ("right", "right")
    assert row.split == () or model_type == "hubert"  # which masks arrays of NumPy's that it draws


def test_differences_are_told_apart_from_errors_of_eager_itself():
    assert run("llama", "static-cache").right
    assert run("no such type", "plain").forward.startswith("eager: KeyError")


@pytest.mark.parametrize(("cache", "programs"), [("static", 2), ("dynamic", 3)])
def test_generation_with_a_compiled_forward_writes_what_eager_writes(cache, programs):
    """A static cache needs a program for the prompt and one for all further tokens, a growing one one more.

    Of transformers 4 it needs another one: it keeps keys of the prompt as they lie, which is not in order.
    """
    case = tiny_transformers.tiny_case("llama")
    model = case.model().eval()
    inputs = case.inputs(model)
    options = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    options |= {"cache_implementation": "static"} if cache == "static" else {}
    written = model.generate(**inputs, **options)
    model.forward = compiled = thunder.jit(model.forward)
    assert torch.equal(model.generate(**inputs, **options), written)
    expected = programs + (cache == "dynamic" and not transformers_sweep.TAKE_CONFIGURATIONS)
    assert thunder.cache_misses(compiled) == expected


@pytest.mark.parametrize(
    "options", [{}, {"do_sample": True}, {"num_beams": 2}, {"cache_implementation": "static"}], ids=str
)
@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("model_type", ["llama", "t5"])
def test_generation_of_a_compiled_model_takes_few_programs_with_open_sizes(model_type, cache, options):
    """One for the prompt, one for the first step, one for all others.

    transformers 4 keeps keys of the prompt as they lie, which is not in order, and those of the step after it are.
    """
    case = tiny_transformers.tiny_case(model_type)
    model = case.model().eval()
    inputs = {name: value for name, value in case.inputs(model).items() if "decoder" not in name}
    model.generation_config.decoder_start_token_id = 0
    compiled = thunder.jit(model, cache=cache)
    written = []
    for called in (model, compiled, compiled):
        torch.manual_seed(1)
        written.append(called.generate(**inputs, max_new_tokens=8, min_new_tokens=8, pad_token_id=0, **options))
    assert torch.equal(written[1], written[0]) and torch.equal(written[2], written[0])
    expected = 2 if options.get("cache_implementation") else 3
    if not transformers_sweep.TAKE_CONFIGURATIONS and model_type == "llama" and set(options) <= {"do_sample"}:
        expected += 1
    assert thunder.cache_misses(compiled) == expected
