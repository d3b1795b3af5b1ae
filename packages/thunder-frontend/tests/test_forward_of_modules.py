"""``forward`` of compiled modules: read, wrapped and set again, as libraries do it that add to models."""

import copy
import functools
import inspect
import types

import pytest
import torch
from torch import nn

from thunder_frontend import cache_hits, cache_misses, jit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, shift=1):
        return self.linear(x) + shift


def times_three(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs) * 3

    return wrapped


def wrap(module):
    module.forward = times_three(module.forward)


def wrap_the_function(module):
    module.forward = types.MethodType(times_three(module.forward.__func__), module)


@pytest.fixture
def pair():
    module = Net()
    return copy.deepcopy(module), jit(module)


@pytest.mark.parametrize("change", [wrap, wrap_the_function])
def test_a_forward_that_calls_the_one_before_it_is_set(pair, change):
    eager, compiled = pair
    x = torch.randn(2, 3)
    for _ in range(3):
        change(eager)
        change(compiled)
        torch.testing.assert_close(compiled(x), eager(x))
        torch.testing.assert_close(compiled.forward(x, shift=2), eager.forward(x, shift=2))
    assert inspect.signature(compiled.forward) == inspect.signature(eager.forward)


def test_forward_runs_no_hooks(pair):
    eager, compiled = pair
    x = torch.randn(2, 3)
    for module in pair:
        module.register_forward_hook(lambda module, args, output: output * 2)
    torch.testing.assert_close(compiled.forward(x), eager.forward(x))
    torch.testing.assert_close(compiled(x), eager(x))


def test_forward_and_calls_share_their_programs(pair):
    _, compiled = pair
    x = torch.randn(2, 3)
    assert torch.equal(compiled(x), compiled.forward(x))
    assert (cache_misses(compiled), cache_hits(compiled)) == (1, 1)


def test_forward_is_as_a_bound_method(pair):
    _, compiled = pair
    assert compiled.forward == compiled.forward and hash(compiled.forward) == hash(compiled.forward)
    assert compiled.forward.__self__ is compiled and compiled.forward.__name__ == "forward"
    compiled.before = compiled.forward
    copied = copy.deepcopy(compiled)
    assert copied.before.__self__ is copied
    with torch.no_grad():
        copied.linear.weight.zero_()
    x = torch.ones(2, 3)
    torch.testing.assert_close(copied.before(x), (copied.linear.bias + 1).expand(2, 3))


def test_forward_runs_within_another_program(pair):
    eager, compiled = pair
    x = torch.randn(2, 3)
    torch.testing.assert_close(jit(lambda x: compiled.forward(x) * 2)(x), eager(x) * 2)


def test_the_bound_forward_tells_the_attributes_of_its_function():
    module = torch.nn.Linear(2, 2)
    forward = jit(module).forward
    assert forward.__code__ is torch.nn.Linear.forward.__code__
    assert not hasattr(forward, "no_such_attribute")
    assert copy.copy(forward) == forward
