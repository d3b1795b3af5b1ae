"""Lengths that change from call to call: few programs serve them all, with what eager gives."""

import functools
import random

import pytest
import torch
import transformers
from torch import nn

import thunder


class Rearranged(nn.Module):
    """Attention that asks a function with a cache for the shapes of its reshapes, as einops does."""

    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.project(x).reshape(split(x.shape, 3, 2)).permute(2, 0, 3, 1, 4)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * (x.shape[-1] // 2) ** -0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


@functools.lru_cache
def split(shape, parts, heads):
    if shape[-1] % heads:
        raise ValueError(f"{shape} does not split into {heads} heads")
    return (*shape[:-1], parts, heads, shape[-1] // heads)


class Translates(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = {"vocab_size": 50, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 2}
        config = transformers.T5Config(**sizes, dropout_rate=0.0, decoder_start_token_id=0)
        self.model = transformers.T5ForConditionalGeneration(config)

    def forward(self, tokens, labels):
        return self.model(input_ids=tokens, labels=labels).logits


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.LSTM(4, 8, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        found, (hidden, _) = self.model(packed)
        return nn.utils.rnn.pad_packed_sequence(found, batch_first=True)[0], hidden


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=128, n_embd=8, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def bert():
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertModel(config)


def tokens(length):
    return torch.randint(0, 50, (2, length))


def padding(length):
    mask = torch.ones(2, length, dtype=torch.long)
    mask[0, max(1, length // 2) :] = 0
    return mask


MODELS = {
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 2, 1)),
        lambda n: {"input": torch.randn(2, 3, n)},
    ),
    "rearranged": (Rearranged, lambda n: {"x": torch.randn(2, n, 8)}),
    "lstm": (lambda: nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True), lambda n: {"input": torch.randn(2, n, 4)}),
    "gru": (lambda: nn.GRU(4, 8), lambda n: {"input": torch.randn(n, 3, 4)}),
    "packed lstm": (Packed, lambda n: {"x": torch.randn(2, n, 4), "lengths": torch.tensor([n, max(n // 2, 1)])}),
    "gpt2": (gpt2, lambda n: {"input_ids": tokens(n)}),
    "bert": (bert, lambda n: {"input_ids": tokens(n), "attention_mask": padding(n)}),
    "t5": (Translates, lambda n: {"tokens": tokens(n), "labels": tokens(n)}),
}
SOME = (*range(1, 9), 16, 17, 33, 64)
ORDERS = {
    "up": list(SOME),
    "down": list(reversed(SOME)),
    "shuffled": random.Random(0).sample(range(1, 65), 64),
}


UNROLLED = {"gru": 16}
"""The longest length of models that are computed step by step, of which there are as many as the length."""


def tensors(result):
    if isinstance(result, torch.Tensor):
        return [result]
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else ()
    return [t for part in parts for t in tensors(part)]


def gradients(result, model):
    total = sum([t.square().sum() for t in tensors(result) if t.requires_grad])
    return torch.autograd.grad(total, list(model.parameters()), allow_unused=True)


@pytest.mark.filterwarnings("ignore::thunder.FallbackWarning")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MODELS)
def test_three_programs_serve_all_lengths(name, order):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make()
    compiled = thunder.jit(model, cache="auto")
    programs = 0
    for length in [n for n in ORDERS[order] if n <= UNROLLED.get(name, 64)]:
        given = inputs(length)
        found, expected = compiled(**given), model(**given)
        torch.testing.assert_close(tensors(found), tensors(expected), rtol=1e-4, atol=1e-5)
        if thunder.cache_misses(compiled) > programs or length == 33:
            programs = thunder.cache_misses(compiled)
            pair = [gradients(result, model) for result in (found, expected)]
            torch.testing.assert_close(*pair, rtol=1e-2, atol=2e-4)  # sums of squares of many logits, in float32
    assert programs <= 3


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_states_that_are_given_change_with_the_batch(kind):
    model = kind(4, 5, 2)
    compiled = thunder.jit(model, fallback="error")
    for batch, length in ((2, 6), (3, 6), (4, 7), (5, 9)):
        x, state = torch.randn(length, batch, 4, requires_grad=True), torch.randn(2, batch, 5)
        states = (state, state.sin()) if kind is nn.LSTM else state
        for found, expected in zip(compiled(x, states), model(x, states), strict=True):
            torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*[torch.autograd.grad(f(x, states)[0].sum(), x) for f in (compiled, model)])
    assert thunder.cache_misses(compiled) <= 3


@pytest.mark.parametrize("more", [{}, {"add_bias_kv": True, "add_zero_attn": True}])
def test_attention_serves_all_lengths_and_batches(more):
    model = nn.MultiheadAttention(8, 2, batch_first=True, **more)
    compiled = thunder.jit(model, fallback="error")
    for batch, length, other in ((2, 6, 5), (3, 6, 5), (4, 7, 6), (5, 9, 9), (6, 4, 11)):
        query, key = torch.randn(batch, length, 8), torch.randn(batch, other, 8)
        for found, expected in zip(compiled(query, key, key), model(query, key, key), strict=True):
            torch.testing.assert_close(found, expected, check_stride=True)
    assert thunder.cache_misses(compiled) <= 3
