"""Numbers that change, and NumPy's functions of single elements and Python's types called by ``map`` get them."""

import numpy as np
import pytest
import torch

from thunder_frontend import cache_misses, jit

GIVEN = {
    "half, rounded up": lambda x, i: x[: int(np.ceil(i / 2))],
    "of a size": lambda x, i: torch.zeros(i + 1).sum() + x * np.sqrt(torch.zeros(i + 1).shape[0]),
    "a fraction, rounded down": lambda x, i: x * int(np.floor(i * 0.7)),
    "square root": lambda x, i: x / np.sqrt(i),
    "cosine": lambda x, i: x * np.cos(np.pi * i / 20),
    "power": lambda x, i: x * np.power(0.9, i),
    "logarithm": lambda x, i: x * np.log(i + 0.5),
    "least": lambda x, i: x * np.minimum(i, 5),
    "integers by map": lambda x, i: x.reshape(*map(int, (x.shape[1], x.shape[0]))) * sum(map(int, [i, i * 0.5])),
    "floats by map": lambda x, i: x * sum(map(float, [i, 2])),
}


@pytest.mark.parametrize("name", GIVEN)
def test_two_programs_serve_all_numbers(name):
    function = GIVEN[name]
    compiled, x = jit(function), torch.randn(4, 8)
    for i in range(2, 9):
        torch.testing.assert_close(compiled(x, i), function(x, i))
    assert cache_misses(compiled) == 2


def test_two_programs_serve_all_sizes():
    def f(x):
        height, width = map(int, x.shape[-2:])
        return x.reshape(width, height)[: int(np.ceil(width / 2))]

    compiled = jit(f)
    for n in range(3, 9):
        x = torch.randn(n, n + 1)
        torch.testing.assert_close(compiled(x), f(x))
    assert cache_misses(compiled) == 2


def computed(i):
    return (
        np.sqrt(i), np.ceil(i), np.ceil(i * 0.5), np.cos(i), np.abs(i), np.minimum(i, 3), np.floor(-i * 0.5),
        np.ceil(-0.1 * i), np.sqrt(2 - i), np.trunc(i * 0.3), [*map(int, [i * 0.5])], np.sqrt(i) + 1,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_scalars_are_those_of_numpy():
    compiled = jit(computed)
    for i in range(2, 9):
        found, expected = compiled(i), computed(i)
        assert [(type(v), repr(v)) for v in found] == [(type(v), repr(v)) for v in expected]
    assert cache_misses(compiled) <= 3
