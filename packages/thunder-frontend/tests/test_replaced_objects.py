"""Objects that users replace between calls, such as configurations and buffers: the second program serves them all."""

import dataclasses
import functools
import types
from typing import Any, NamedTuple

import pytest
import torch

from thunder_frontend import cache_misses, jit


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    inner: Any = None


class Pair(NamedTuple):
    scale: float
    bias: torch.Tensor


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale

    def times(self, x):
        return x * self.scale

    __call__ = times


class Model(torch.nn.Module):
    """Keeps something that its users put there."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.kept = None
        self.entries = {"a": None}
        self.rows = [None]


def times(scale):
    return lambda x: x * scale


KEPT = {
    "dataclass": (lambda m, x: m.linear(x) * m.kept.scale, lambda i: Config(i + 0.5)),
    "nested": (lambda m, x: m.linear(x) * m.kept.inner.scale, lambda i: Config(inner=Config(i + 0.5))),
    "list": (lambda m, x: m.linear(x) * m.kept[0] + m.kept[1], lambda i: [i + 0.5, 2.0]),
    "sum of a list": (lambda m, x: m.linear(x) * sum(m.kept), lambda i: [i + 0.5, 2.0]),
    "dict": (lambda m, x: m.linear(x) * m.kept["a"], lambda i: {"a": i + 0.5}),
    "named tuple": (lambda m, x: m.linear(x) * m.kept.scale + m.kept.bias, lambda i: Pair(0.5, torch.randn(4))),
    "slots": (lambda m, x: m.linear(x) * m.kept.scale, lambda i: Slotted(i + 0.5)),
    "callable": (lambda m, x: m.kept(m.linear(x)), lambda i: Slotted(i + 0.5)),
    "method": (lambda m, x: m.kept(m.linear(x)), lambda i: Slotted(0.5).times),
    "namespace": (lambda m, x: m.linear(x) * m.kept.scale, lambda i: types.SimpleNamespace(scale=i + 0.5)),
    "set": (lambda m, x: m.linear(x) * (2 if "a" in m.kept else 3), lambda i: {"a", "b"}),
    "tuple of tensors": (lambda m, x: m.linear(x) * m.kept[0] + m.kept[1], lambda i: tuple(torch.randn(2, 4))),
    "list of tensors": (lambda m, x: m.linear(x) + sum(m.kept), lambda i: [*torch.randn(2, 4)]),
    "function": (lambda m, x: m.kept(m.linear(x)), lambda i: times(0.5)),
    "partial": (lambda m, x: m.kept(m.linear(x)), lambda i: functools.partial(torch.add, alpha=2, other=1.0)),
}


@pytest.mark.parametrize("name", KEPT)
def test_two_programs_serve_all(name):
    function, make = KEPT[name]
    model = Model()
    compiled = jit(lambda x: function(model, x))
    for i in range(5):
        model.kept = make(i)
        x = torch.randn(2, 4)
        torch.testing.assert_close(compiled(x), function(model, x))
    assert cache_misses(compiled) == 2


LIMITS = {"config": Config()}


@pytest.mark.parametrize("container", ["entries", "rows", "globals"])
def test_items_are_replaced(container):
    model = Model()
    there, key = {"entries": (model.entries, "a"), "rows": (model.rows, 0), "globals": (LIMITS, "config")}[container]
    compiled = jit(lambda x: model.linear(x) * there[key].scale)
    for i in range(5):
        there[key] = Config(i + 0.5)
        x = torch.randn(2, 4)
        torch.testing.assert_close(compiled(x), model.linear(x) * (i + 0.5))
    assert cache_misses(compiled) == 2


def test_a_mode_that_fixes_numbers_fixes_what_is_in_them():
    model = Model()
    compiled = jit(lambda x: x * model.kept.scale, cache="constant values")
    for scale, misses in ((2.0, 1), (2.0, 2), (2.0, 2), (3.0, 3), (2.0, 3), (3.0, 3)):
        model.kept = Config(scale)
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), scale))
        assert cache_misses(compiled) == misses


def test_the_same_object_in_two_places_is_told_from_two():
    model = Model()

    def f(x):
        model.rows.append(x.sum())
        return x + len(model.kept), model.rows is model.kept

    compiled = jit(f)
    for shared in (False, False, True, True, False, True):
        model.rows, model.kept = [None], [None]
        if shared:
            model.kept = model.rows
        result, same = compiled(torch.zeros(2))
        assert same is shared and result.tolist() == [1.0 + shared] * 2
        assert len(model.rows) == 2 and model.rows[1].item() == 0


def test_what_a_program_returns_and_writes_is_of_the_object_of_the_call():
    model = Model()

    def f(x):
        model.kept.scale = x.sum()
        return model.kept

    compiled = jit(f)
    for i in range(4):
        model.kept = kept = Config(inner=[i])
        assert compiled(torch.full((2,), float(i))) is kept
        assert kept.scale.item() == 2 * i and kept.inner == [i]
    assert cache_misses(compiled) == 2


def test_another_type_or_length_is_another_program():
    model = Model()
    compiled = jit(lambda x: x + sum(model.kept))
    for kept in ([1.0], [2.0], [3.0], (4.0, 5.0), (6.0, 7.0), [8.0], [9.0, 10.0], [], [11.0]):
        model.kept = kept
        assert compiled(torch.zeros(1)).item() == sum(kept)
    assert cache_misses(compiled) <= 6


def test_functions_of_other_code_or_closures_are_told_apart():
    model = Model()
    compiled = jit(lambda x: model.kept(x))
    kept = [times(2.0), times(2.0), times(3.0), lambda x: x + 1, lambda x: x - 1, times(4.0), lambda x, by=2: x * by]
    for function in kept:
        model.kept = function
        assert compiled(torch.ones(1)).item() == function(1)


def test_parameters_and_modules_that_are_replaced_stay_what_they_are():
    model = Model()
    compiled = jit(model)
    model.forward = lambda x: model.linear(x)
    for _ in range(3):
        model.linear = torch.nn.Linear(4, 4)
        x = torch.randn(2, 4)
        torch.testing.assert_close(compiled(x), model(x))
        model._parameters = dict(model._parameters)
        model.linear._parameters = {k: torch.nn.Parameter(v + 1) for k, v in model.linear._parameters.items()}
        torch.testing.assert_close(compiled(x), model(x))
