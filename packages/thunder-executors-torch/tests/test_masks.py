"""Masks that calls of attention share."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from thunder_executors import transform_for_execution
from thunder_executors_torch import executor
from thunder_ir import trace_of
from thunder_torch import symbol_of, torch_language
from thunder_torch.convert import proxy_of

QUERY, KEY = torch.randn(2, 4, 5, 16), torch.randn(2, 4, 9, 16)
MASKS = {
    "of positions": torch.rand(5, 9) > 0.3,
    "of sequences": (torch.rand(2, 1, 1, 9) > 0.3).expand(2, 4, 5, 9),
    "nothing": torch.zeros(5, 9, dtype=torch.bool),
}


def layers(attend, query, key, mask):
    for _ in range(3):
        query = attend(query, key, key, mask)
    return query


def executed(*tensors):
    attend = symbol_of(F.scaled_dot_product_attention)
    trace = trace_of(lambda *t: layers(attend, *t), *[proxy_of(t) for t in tensors], language=torch_language)
    return transform_for_execution(trace, [executor])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", MASKS)
def test_they_are_turned_once_and_the_results_are_the_same(name, dtype):
    query, key, mask = QUERY.to(dtype), KEY.to(dtype), MASKS[name]
    trace = executed(query, key, mask)
    assert [b.symbol.name for b in trace.bound_symbols].count("added_to_scores") == 1
    found, expected = (
        trace.python_callable()(query, key, mask),
        layers(F.scaled_dot_product_attention, query, key, mask),
    )
    assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert found.stride() == expected.stride()


def test_a_mask_of_floats_and_a_single_call_stay():
    assert "added_to_scores" not in str(executed(QUERY, KEY, torch.randn(5, 9)))
    attend = symbol_of(F.scaled_dot_product_attention)
    given = [proxy_of(t) for t in (QUERY, KEY, MASKS["of positions"])]
    trace = trace_of(lambda q, k, m: attend(q, k, k, m), *given, language=torch_language)
    assert "added_to_scores" not in str(transform_for_execution(trace, [executor]))
