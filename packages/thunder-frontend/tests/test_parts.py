"""Slices and partial functions with numbers that change from call to call."""

from functools import partial, reduce
from inspect import signature

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit


def scaled(x, factor, shift=0.0):
    return x * factor + shift


def taken(x, window):
    return x[window]


def between(x, window):
    start, stop, step = window.indices(x.shape[0])
    return x[start:stop:step] * (window.stop - window.start)


def called(x, function):
    return function(x)


def called_twice(x, function, again):
    return function(x) + again(x), function is again


def handed_on(x, function):
    return sum(map(function, [x, x + 1]))


def ordered(x, key):
    return x * sorted([3, 1, 2], key=key)[0], max([3, 1, 2], key=key), list(map(key, [1, 2]))


def reduced(x, function):
    return x * reduce(function, [1, 2, 3])


def run_in_python(x, function):
    return run(x, function)


@torch.compiler.disable
def run(x, function):
    return function(x)


def told(x, function):
    return function(x), function.__defaults__, str(signature(function))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.window, self.activation = slice(0, 3), torch.relu

    def forward(self, x):
        return self.activation(x[self.window]) + self.activation(x)[self.window]


X = torch.randn(40)
CALLS = {
    "a slice": (taken, lambda i: (X, slice(i + 2, 2 * i + 5)), 2),
    "a slice to the end": (taken, lambda i: (X, slice(-i - 2, None)), 2),
    "a slice with steps": (taken, lambda i: (X, slice(None, 3 * i + 2, 2)), 2),
    "slices in a tuple": (
        lambda x, both: x[both[0]].sum() + x[both[1]],
        lambda i: (X, (slice(i + 2), slice(5, 20 + i))),
        2,
    ),
    "bounds of a slice": (between, lambda i: (X, slice(i + 2, 2 * i + 5)), 8),
    "a partial function": (called, lambda i: (X, partial(scaled, factor=i + 1.5)), 2),
    "by position": (called, lambda i: (X, partial(torch.mul, i + 2.5)), 2),
    "two numbers": (called, lambda i: (X, partial(scaled, factor=i + 1.5, shift=2 * i + 3)), 2),
    "one and a tensor": (called, lambda i: (X, partial(scaled, X * i, shift=2 * i + 3)), 2),
    "one of two": (called, lambda i: (X, partial(scaled, factor=1.5, shift=2 * i + 3)), 2),
    "another number of arguments": (
        called,
        lambda i: (X, partial(scaled, 2.5, **{"shift": i + 2.5} if i % 2 else {})),
        3,
    ),
    "a default": (called, lambda i: (X, lambda x, factor=i + 2.5: x * factor), 2),
    "two defaults": (called, lambda i: (X, lambda x, a=i + 2.5, b=3: x * a + b), 2),
    "a default by position": (called, lambda i: (X, lambda x, factor=i + 2.5, /: x * factor), 2),
    "a default that is given": (lambda x, f: f(x, 2), lambda i: (X, lambda x, factor=i + 2.5: x * factor), 2),
    "other defaults": (called, lambda i: (X, (lambda x, a=i + 2.5: x * a) if i % 2 else (lambda x, a="a": x)), 4),
    "a list by default": (called, lambda i: (X, lambda x, scale=[i + 2.5, 2]: x * scale[0] + scale[1]), 2),
    "a tensor by default": (called, lambda i: (X, lambda x, scale=X * i: x * scale), 2),
    "a function by default": (called, lambda i: (X, lambda x, f=[torch.sin, torch.cos][i % 2]: f(x)), 4),
    "a list by default in Python": (run_in_python, lambda i: (X, lambda x, scale=[i + 2.5, 2]: x * scale[0]), 8),
    "a list by default in a key": (ordered, lambda i: (X, lambda v, signs=[(-1) ** i]: v * signs[0]), 8),
    "a default in a key": (ordered, lambda i: (X, lambda v, sign=(-1) ** i: v * sign), 8),
    "a default in a sum": (reduced, lambda i: (X, lambda a, b, factor=i + 2: a + b * factor), 8),
    "a default in Python": (run_in_python, lambda i: (X, lambda x, factor=i + 2.5: x * factor), 8),
    "a default that is told": (told, lambda i: (X, lambda x, factor=i + 2.5: x * factor), 8),
    "the same twice": (called_twice, lambda i: (X, *[partial(scaled, factor=i + 1.5)] * 2), 2),
    "two": (called_twice, lambda i: (X, partial(scaled, factor=i + 1.5), partial(scaled, factor=2.5)), 2),
    "other functions": (called, lambda i: (X, partial([torch.add, torch.mul][i % 2], i + 2.5)), 4),
    "one that goes to C": (handed_on, lambda i: (X, partial(scaled, factor=i + 1.5)), 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_in_parts_are_dynamic(name):
    function, arguments, programs = CALLS[name]
    compiled = jit(function)
    for i in range(8):
        found, expected = compiled(*arguments(i)), function(*arguments(i))
        if isinstance(expected, tuple):
            assert found[1:] == expected[1:]
            found, expected = found[0], expected[0]
        torch.testing.assert_close(found, expected)
    assert cache_misses(compiled) <= programs


def test_parts_that_a_user_replaces_in_a_model():
    model = Model()
    compiled = jit(model)
    for i in range(8):
        model.window = slice(i + 2, 3 * i + 6)
        model.activation = partial(nn.functional.leaky_relu, negative_slope=0.1 * i + 0.2)
        torch.testing.assert_close(compiled(X), model(X))
    assert cache_misses(compiled) <= 3


def test_a_slice_of_constant_values_has_a_program_each():
    compiled = jit(taken, cache="constant values")
    for i in (2, 3, 2, 3):
        assert torch.equal(compiled(X, slice(i, 9)), X[i:9])
    assert cache_misses(compiled) == 2
    assert torch.equal(compiled(X, slice(2, 9, 2)), X[2:9:2])
    assert torch.equal(compiled(X, slice(True, 9)), X[1:9])
    assert torch.equal(compiled(X, slice(torch.tensor(4), 9)), X[4:9])


def test_a_partial_function_with_attributes_is_fixed():
    compiled = jit(called)
    for i in range(4):
        function = partial(scaled, factor=i + 2.5)
        function.name = i
        assert torch.equal(compiled(X, function), function(X))


class Grid(nn.Module):
    """Keeps what it made for a shape until another one comes."""

    def __init__(self, kept_as):
        super().__init__()
        self.kept_as, self.shape, self.made = kept_as, None, 0

    def forward(self, x):
        shape = self.kept_as(x)
        if self.shape != shape:
            self.shape, self.made = shape, self.made + 1
            self.grid = torch.arange(x.shape[-1]) + shape[0]
        return x + self.grid


KEPT_AS = {
    "a shape": lambda x: x.shape,
    "part of a shape": lambda x: x.shape[-2:],
    "a tuple": lambda x: tuple(x.shape),
    "a tuple of two": lambda x: (x.shape[0], x.shape[-1] * 2),
    "with a float": lambda x: (x.shape[0], x.shape[-1] / 2),
}


@pytest.mark.parametrize("name", KEPT_AS)
def test_a_shape_that_a_model_keeps_is_dynamic(name):
    ours, eager = Grid(KEPT_AS[name]), Grid(KEPT_AS[name])
    compiled = jit(ours)
    for size in (2, 3, 4, 5, 6, 7, 7, 7, 6, 5, 5, 9, 10, 3):
        x = torch.ones(size + 1, 3, size)
        assert torch.equal(compiled(x), eager(x))
        assert (ours.shape, type(ours.shape), ours.made) == (eager.shape, type(eager.shape), eager.made)
        assert torch.equal(ours.grid, eager.grid)
    assert cache_misses(compiled) <= 6


def kept(x, function):
    return function(x), [function], function


@pytest.mark.parametrize("make", [lambda i: partial(scaled, factor=i + 1.5), lambda i: partial(torch.mul, X * i)])
def test_a_partial_function_is_kept_as_the_object_that_it_is(make):
    compiled = jit(kept)
    for i in range(4):
        function = make(i)
        result, (listed,), returned = compiled(X, function)
        torch.testing.assert_close(result, function(X))
        assert listed is function and returned is function


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.shape, self.before = (0, 1), None

    def forward(self, x):
        self.before, self.shape = self.shape, tuple(x.shape)
        return x * self.before[0], self.before


def test_a_tuple_is_kept_as_the_object_that_it_is():
    model = Remembers()
    compiled = jit(model)
    for i in range(6):
        shape, x = model.shape, torch.ones(i + 2, 3)
        result, before = compiled(x)
        assert torch.equal(result, x * shape[0])
        assert before == shape and model.before is before
        assert model.shape == (i + 2, 3)
