"""Scalars of NumPy among the arguments: one program serves all values, as eager computes with them."""

import math

import numpy as np
import pytest
import torch

from thunder_frontend import cache_misses, jit

X = torch.arange(40.0)
FLOATS = (np.float16, np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8)


def assert_same(found, expected):
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    else:
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)


def assert_one_program(program, values, most=2):
    compiled = jit(program)
    for value in values:
        assert_same(compiled(X, value), program(X, value))
    assert cache_misses(compiled) <= most


OF_ALL = {
    "operand": lambda x, s: x * s + 1,
    "reflected": lambda x, s: s * x - s,
    "in arithmetic of Python": lambda x, s: x + (s * 2 + 1),
    "in arithmetic of NumPy": lambda x, s: x + np.sqrt(abs(s)),
    "of itself": lambda x, s: x * (s + s),
    "returned": lambda x, s: (s, s * 2, x),
    "compared": lambda x, s: x + 1 if s > 1 else x - 1,
    "as a condition": lambda x, s: x + 1 if s else x,
    "the comparison is returned": lambda x, s: (s > 1, x),
    "float()": lambda x, s: x * float(s),
    "item()": lambda x, s: x * s.item(),
    "as a tensor": lambda x, s: x.double() * torch.tensor(s),
    "full": lambda x, s: torch.full_like(x, s) + x,
    "its dtype": lambda x, s: (x + s, s.dtype, s.ndim, isinstance(s, np.generic), isinstance(s, (float, int))),
}


@pytest.mark.parametrize("kind", (*FLOATS, *INTEGERS), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", OF_ALL)
def test_one_program_serves_all_values(name, kind):
    assert_one_program(OF_ALL[name], [kind(i) for i in (2, 3, 5, 7, 11, 6)])


OF_INTEGERS = {
    "index": lambda x, s: x[s],
    "slice": lambda x, s: x[: s + 1].sum() + x[s:],
    "size": lambda x, s: x.new_zeros(s) + s,
    "int()": lambda x, s: x[int(s)],
    "modulo": lambda x, s: x + s % 3 + s // 2,
}


@pytest.mark.parametrize("kind", (np.int32, np.int64), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_one_program_serves_all_integers(name, kind):
    assert_one_program(OF_INTEGERS[name], [kind(i) for i in (2, 3, 5, 7, 11, 6)], most=3)


LOOKING = {
    "text": lambda x, s: (x, f"{s:.1f}"),
    "key": lambda x, s: x + {2.0: 1, 3.0: 5}.get(s, 0),
    "of an array": lambda x, s: x + torch.from_numpy(np.array([s, 1.0], dtype=np.float32)).sum(),
    "math": lambda x, s: x + math.sqrt(s),
    "format": lambda x, s: (x, str(s), repr(s)),
    "round": lambda x, s: x + round(float(s)),
    "loop": lambda x, s: sum([x + i for i in range(int(s))]),
    "divided": lambda x, s: x + 1 / s,
    "kept": lambda x, s: ([s], {"s": s})[0] + [x],
}


@pytest.mark.parametrize("kind", (np.float32, np.float64, np.int64), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", LOOKING)
def test_what_looks_at_a_value_sees_that_of_the_call(name, kind):
    assert_one_program(LOOKING[name], [kind(i) for i in (2, 3, 5, 2, 3)], most=5)


def test_another_type_is_another_program():
    def program(x, s):
        return x.long() * s, s

    compiled = jit(program)
    for s in (np.float32(2), np.float32(3), np.float64(3), np.int64(3), 3, 3.0, np.float32(5), np.int32(7)):
        assert_same(compiled(X, s), program(X, s))


@pytest.mark.parametrize("kind", (np.float32, np.float64), ids=lambda kind: kind.__name__)
def test_special_values_are_those_of_eager(kind):
    def program(x, s):
        return x * s, s * 2.0, s > 0.0, s == s, x + (1.0 if s >= 0.0 else 2.0)

    compiled = jit(program)
    for value in (2.5, 3.5, math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, 1e-40, -1.5):
        assert_same(compiled(X, kind(value)), program(X, kind(value)))


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.__name__)
def test_integers_wrap_around_as_numpys_do(kind):
    def program(x, s):
        return x + 1, s + 1, s * 2, s - 5, 3 - s, s * s, x + s * 2, s > 100, s == s + 1

    compiled, limits = jit(program), np.iinfo(kind)
    with np.errstate(over="ignore"):
        for value in (5, 6, 7, limits.max, limits.max // 2 + 1, limits.min, limits.min + 4, 8, limits.max - 1):
            assert_same(compiled(X, kind(value)), program(X, kind(value)))


def test_integers_that_numpy_refuses_are_refused():
    def outcome(function, value):
        try:
            return function(X, np.int8(value))[1]
        except OverflowError:
            return OverflowError

    def program(x, s):
        return x, s + 300

    compiled = jit(program)
    for value in (3, 5, 7, 9):
        assert outcome(compiled, value) == outcome(program, value)


def test_scalars_in_containers_are_those_of_the_call():
    def program(given):
        return given["x"] * given["scales"][0] + given["scales"][1]

    compiled = jit(program)
    for i in range(2, 7):
        given = {"x": X, "scales": [np.float32(i / 3), np.float64(i)]}
        assert_same(compiled(given), program(given))
    assert cache_misses(compiled) <= 3


def test_gradients_and_modules_take_scalars():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])

        def forward(self, x, s):
            for layer in self.layers:
                x = layer(x) * s
            return x

    model = Scaled()
    compiled = jit(model)
    for s in (np.float64(0.3), np.float64(0.4), np.float32(0.7), np.float32(0.9), np.float64(0.6)):
        x = torch.randn(3, 4)
        grads = []
        for run in (compiled, model):
            model.zero_grad()
            run(x, s).square().sum().backward()
            grads.append([p.grad.clone() for p in model.parameters()])
        torch.testing.assert_close(*grads)
    assert cache_misses(compiled) <= 4
