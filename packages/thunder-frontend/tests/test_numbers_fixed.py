"""What cannot be done with a symbolic number is compiled for the number at hand, in each mode that leaves any open."""

import json
import math
from fractions import Fraction

import pytest
import torch

from thunder_frontend import cache_misses, jit, mark_dynamic


def as_text(x, n):
    return x * len(json.dumps({"n": n}))


def by_c_code(x, n):
    return x * math.ldexp(1.0, n)


def as_fraction(x, n):
    return x * float(Fraction(n, 3))


def after_a_type_error(x, n):
    try:
        return x * (n + "a")
    except TypeError:
        return x * n


def without_a_length(x, n):
    try:
        return x * len(n)
    except TypeError:
        return x * n


PROGRAMS = [as_text, by_c_code, as_fraction, after_a_type_error, without_a_length]


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_numbers_are_fixed_where_nothing_else_will_do(program, cache):
    compiled = jit(program, cache=cache, fallback="error")
    for n in (3, 4, 30, 3, 4):
        torch.testing.assert_close(compiled(torch.ones(2), n), program(torch.ones(2), n))
    assert cache_misses(compiled) == 3


def test_what_is_marked_stays_open_where_it_can():
    compiled = jit(lambda x, n: x * x.shape[0] + len(json.dumps(n)), cache="symbolic values", fallback="error")
    for size in (2, 3, 4):
        x = mark_dynamic(torch.ones(size), 0)
        torch.testing.assert_close(compiled(x, 30), x * size + 2)
    assert cache_misses(compiled) == 1
