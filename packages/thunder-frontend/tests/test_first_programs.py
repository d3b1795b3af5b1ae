"""The first things that a user tries."""

import pytest
import torch

from thunder_frontend import (
    Transform,
    cache_hits,
    cache_misses,
    explain_misses,
    jit,
    last_prologue_traces,
    last_traces,
    trace,
)


def test_a_sum_and_a_product_are_what_eager_says():
    def program(a, b):
        return a + b * 2

    compiled = jit(program)
    a, b = torch.randn(3, 4), torch.randn(4)
    torch.testing.assert_close(compiled(a, b), program(a, b), rtol=0, atol=0)
    assert "torch.add(" in str(last_traces(compiled)[-1])
    assert "a0 = args[0]" in str(last_prologue_traces(compiled)[0])


def test_a_second_call_is_a_hit_and_another_shape_is_a_miss_that_explains_itself():
    compiled = jit(lambda a: a.sum() * a.shape[0])
    compiled(torch.ones(3)), compiled(torch.ones(3)), compiled(torch.ones(4))
    assert (cache_hits(compiled), cache_misses(compiled)) == (1, 2)
    assert explain_misses(compiled) == [["args[0] has shape (4,), compiled for (3,)"]]


@pytest.mark.parametrize(
    "module",
    [torch.nn.Linear(4, 5), torch.nn.LayerNorm(4), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())],
    ids=str,
)
def test_modules_run_compiled(module):
    compiled = jit(module)
    x = torch.randn(2, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x), rtol=0, atol=0)


def test_what_a_module_reads_is_guarded():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.factor = 2.0

        def forward(self, x):
            y = self.linear(x) * self.factor
            return y.relu() if self.training else y

    module = Scaled()
    compiled = jit(module)
    x = torch.randn(3, 2)
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: setattr(module, "factor", 3.0),
            lambda: module.eval(),
            lambda: setattr(module, "linear", torch.nn.Linear(2, 2)),
            lambda: setattr(module.linear, "weight", torch.nn.Parameter(torch.ones(2, 2))),
            lambda: module.linear.register_forward_hook(lambda m, args, out: out + 1),
            lambda: module.linear.weight.add_(1),
            lambda: setattr(module, "forward", lambda x: x),
        ):
            change()
            for _ in range(2):
                torch.testing.assert_close(compiled(x), module(x), rtol=0, atol=0)


def test_writes_to_arguments_and_views_reach_the_caller():
    def program(x, y):
        x.add_(1)
        row = x[0]
        row.mul_(2)
        y[1:] = 0
        return x.view(-1), {"tail": y[1:]}

    compiled = jit(program)
    x, y = torch.randn(3, 4), torch.randn(3)
    expected_x, expected_y = x.clone(), y.clone()
    for _ in range(2):
        expected = program(expected_x, expected_y)
        result = compiled(x, y)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        torch.testing.assert_close((x, y), (expected_x, expected_y), rtol=0, atol=0)


def test_tracing_computes_nothing():
    norm, x = torch.nn.BatchNorm1d(3), torch.zeros(4, 3)

    def program(x):
        return norm(x.add_(1))

    text = str(trace(program)(x))
    assert "batch_norm" in text and norm.num_batches_tracked == 0 and torch.equal(x, torch.zeros(4, 3))


def test_transforms_can_read_what_stands_around_the_computation():
    seen = []

    class Reader(Transform):
        def transform_traces_pre_prologue(self, prologue_trace, computation_trace, epilogue_trace, **kwargs):
            seen.extend([str(prologue_trace), str(epilogue_trace)])
            return prologue_trace, computation_trace, epilogue_trace

    x = torch.zeros(3)
    jit(lambda x: x.add_(1) * 2, transforms=[Reader()])(x)
    assert torch.equal(x, torch.ones(3))
    assert seen[0].startswith("def prologue(args") and "assert len(args) == 1\n" in seen[0]
    assert seen[1].startswith("def epilogue(args") and "(a0, t0)\n" in seen[1]
