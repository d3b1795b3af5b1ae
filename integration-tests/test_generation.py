"""Hugging Face models of 12 layers write what eager writes, by a program for the prompt and one for the rest."""

import pytest
import torch
import transformers

import thunder
from thunder_native.runtime import missing
from thunder_transforms.generation import Generates

COUNTS = {"vocab_size": 128, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}


def gpt2():
    config = transformers.GPT2Config(n_embd=64, n_layer=12, n_head=4, n_positions=96, **COUNTS)
    return transformers.GPT2LMHeadModel(config)


def llama():
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=96, **COUNTS,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def made(make):
    torch.manual_seed(0)
    return make().eval()


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}], ids=["dynamic", "static"])
@pytest.mark.parametrize("make", [gpt2, llama])
def test_tokens_are_eagers_and_programs_two(make, options):
    options = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False} | options
    prompts = [torch.randint(2, 128, (1, 9), generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    eager, compiled = made(make), thunder.compile(made(make), fallback="error")
    for prompt in prompts:
        expected = eager.generate(prompt, **options)
        assert expected.shape == (1, 33)
        assert torch.equal(compiled.generate(prompt, **options), expected)
    assert thunder.cache_misses(compiled) == 2


@pytest.mark.parametrize("options", [{"num_beams": 3}, {"do_sample": True}], ids=str)
def test_beams_and_samples_are_eagers(options):
    options = {"max_new_tokens": 8, "min_new_tokens": 8} | options
    prompt = torch.randint(2, 128, (2, 5), generator=torch.Generator().manual_seed(3))
    compiled, written = thunder.compile(made(llama), fallback="error"), []
    for model in (made(llama), compiled):
        torch.manual_seed(1)
        written.append(model.generate(prompt, **options))
    assert torch.equal(*written)
    assert thunder.cache_misses(compiled) == 2


def thunder_ran(model):
    """Return a model, compiled by the recipe for it, that was called once."""
    compiled = thunder.compile(model)
    with torch.no_grad():
        compiled(torch.ones(1, 3, dtype=torch.long), use_cache=False)
    return compiled


def test_the_recipe_is_that_of_models_that_generate():
    compiled = thunder.compile(made(gpt2), plugins="quantize-int8")
    assert isinstance(compiled, Generates) and thunder.cache_option(compiled) == "auto"
    native = "native_0" in str(thunder.last_traces(thunder_ran(made(gpt2)))[-1])
    assert native is (missing() is None)
    assert "native_0" not in str(thunder.last_traces(thunder_ran(made(gpt2).train()))[-1])
    assert compiled.generate(torch.ones(1, 3, dtype=torch.long), max_new_tokens=4, do_sample=False).shape[1] <= 7
