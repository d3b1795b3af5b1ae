"""Sequences one after the other, pages, and products with what follows them, by a stand-in for the frontend."""

import pytest
import torch
from torch.testing import assert_close

from thunder_executors_cudnn import GraphError, functions

functional = torch.nn.functional
TOLERANCE = {"rtol": 2e-2, "atol": 2e-2}


def each_alone(query, key, value, query_starts, key_starts, causal, scale):
    parts = []
    for i in range(len(query_starts) - 1):
        q = query[query_starts[i] : query_starts[i + 1]].transpose(0, 1)
        k, v = (t[key_starts[i] : key_starts[i + 1]].transpose(0, 1) for t in (key, value))
        y = functional.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=causal, scale=scale, enable_gqa=True
        )
        parts.append(y[0].transpose(0, 1))
    return torch.cat(parts)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_packed_sequences_attend_each_to_itself(causal, scale, machine):
    query_starts, key_starts = torch.tensor([0, 3, 4, 9]), torch.tensor([0, 4, 6, 11])
    shapes = ((9, 4, 16), (11, 2, 16), (11, 2, 24))
    values = [torch.randn(shape).half() for shape in shapes]
    mine = [v.clone().requires_grad_() for v in values]
    truth = [v.double().requires_grad_() for v in values]
    y = functions.packed_attention(*mine, query_starts, key_starts, 5, 5, causal, scale)
    expected = each_alone(*truth, query_starts, key_starts, causal, scale)
    assert_close(y.double(), expected, **TOLERANCE)
    dy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(expected, truth, dy.double())
    assert_close(tuple(t.double() for t in found), wanted, **TOLERANCE)


def test_lengths_of_one_magnitude_share_a_plan(machine):
    q = torch.randn(7, 2, 8).half()
    for longest in (4, 100, 128):
        functions.packed_attention(q, q, q, torch.tensor([0, 3, 7]), torch.tensor([0, 3, 7]), longest, longest)
    assert machine.plans.made == 1
    functions.packed_attention(q, q, q, torch.tensor([0, 3, 7]), torch.tensor([0, 3, 7]), 129, 129)
    assert machine.plans.made == 2


def test_keys_in_pages_are_those_of_the_table(machine):
    query, keys, values = (
        torch.randn(2, 4, 1, 16).half(),
        torch.randn(5, 2, 8, 16).half(),
        torch.randn(5, 2, 8, 16).half(),
    )
    table, lengths = torch.tensor([[3, 0], [1, 4]]), torch.tensor([11, 16])
    y = functions.paged_attention(query, keys, values, table, lengths)
    for i in range(2):
        k, v = (pool[table[i]].transpose(0, 1).flatten(1, 2)[:, : lengths[i]] for pool in (keys, values))
        expected = functional.scaled_dot_product_attention(
            query[i : i + 1].double(), k[None].double(), v[None].double(), enable_gqa=True
        )
        assert_close(y[i : i + 1].double(), expected, **TOLERANCE)


ACTIVATIONS = {
    "none": lambda x: x, "relu": torch.relu, "gelu": functional.gelu, "silu": functional.silu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_product_and_what_follows_it_are_one_graph(activation, gated, dtype, machine):
    x, weight, bias = (torch.randn(s).to(dtype) for s in ((2, 3, 8), (6, 8), (6,)))
    gate = torch.randn(2, 3, 6).to(dtype) if gated else None
    found = functions.linear(x, weight, bias if not gated else None, activation, gate)
    expected = ACTIVATIONS[activation](
        functional.linear(x.double(), weight.double(), None if gated else bias.double())
    ) * (1 if gate is None else gate.double())
    tolerance = {"rtol": 2e-2, "atol": 3e-2} if dtype is torch.bfloat16 else {"rtol": 4e-3, "atol": 6e-3}
    assert found.dtype is dtype
    assert_close(found.double(), expected, **tolerance)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda h: functions.linear(h.requires_grad_(), h), "has no gradient here"),
        (lambda h: functions.linear(h, h, activation="tanh"), "there is no activation 'tanh'"),
        (lambda h: functions.linear(h[:, :7], h[:, :7]), "added up is odd"),
        (lambda h: functions.linear(h.float(), h.float()), "rounded to TF32"),
        (
            lambda h: functions.paged_attention(
                h.view(1, 1, 8, 8), *[h[:6].view(2, 1, 3, 8)] * 2, torch.tensor([[0, 1]]), torch.ones(1)
            ),
            "no power of two",
        ),
    ],
)
def test_what_the_library_does_not_plan_is_refused(call, words, machine):
    with pytest.raises(GraphError, match=words):
        call(torch.randn(8, 8).half())
