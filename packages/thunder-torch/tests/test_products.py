"""Sums of a tensor and a product: their gradients, however the operands are named."""

import inspect

import pytest
import torch
from torch.testing import assert_close

from thunder_autograd import grad_transform_on_trace, vjp_rule
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import record
from thunder_torch import call, proxy_of, torch_language

SHAPES = {
    torch.addmm: [(3, 5), (3, 4), (4, 5)],
    torch.baddbmm: [(2, 3, 5), (2, 3, 4), (2, 4, 5)],
    torch.addbmm: [(3, 5), (2, 3, 4), (2, 4, 5)],
}
NAMES = {torch.addmm: ("mat1", "mat2"), torch.baddbmm: ("batch1", "batch2"), torch.addbmm: ("batch1", "batch2")}


@pytest.mark.parametrize("function", SHAPES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("swapped", [False, True], ids=["in_order", "swapped"])
def test_named_operands_get_their_own_gradients(function, swapped):
    tensors = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in SHAPES[function]]
    order = [1, 0] if swapped else [0, 1]

    def product(a, *operands):
        named = {NAMES[function][i]: operands[i] for i in order}
        return call(function, (a,), {**named, "beta": 0.5, "alpha": 2})

    proxies = [proxy_of(t, f"a{i}") for i, t in enumerate(tensors)]
    trace = record(product, proxies, language=torch_language)
    joint = grad_transform_on_trace(trace.replace(output=(trace.output,)))
    expected = function(*tensors, beta=0.5, alpha=2)
    upstream = torch.randn_like(expected)
    value, gradients = to_callable(joint, [executor])(*[t.detach() for t in tensors], upstream)
    assert_close(value[0], expected.detach())
    assert_close(list(gradients), list(torch.autograd.grad(expected, tensors, upstream)))


def test_each_rule_takes_arguments_by_the_names_of_its_operation():
    checked = 0
    for symbol in vjp_rule:
        if symbol.module != "ltorch" or symbol.decomposition is None:
            continue
        names = list(inspect.signature(symbol.decomposition).parameters)
        assert list(inspect.signature(vjp_rule[symbol]).parameters) == names, symbol.id
        checked += 1
    assert checked > 5
