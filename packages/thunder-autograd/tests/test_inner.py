"""Gradients that a program computes of its own values."""

import numpy as np
import pytest
import toy_language as toy
from toy_language import numeric_gradients, run, texts, traced

from thunder_autograd import DRAWS_APART, gradients, written_out
from thunder_ir import ThunderError, current_builder

COPY = {"own": lambda g, of, made_by: g if made_by is not None else toy.mul(g, 1.0)}
X, C = np.random.default_rng(0).normal(size=(2, 5))


def test_gradients_stand_in_the_place_of_the_call():
    def program(x, c):
        y = toy.sin(x) * x
        (g,) = gradients((y,), (c,), (x,))
        return y, g * 2.0

    trace = traced(program, (5,), (5,))
    made, renamed = written_out(trace, **COPY)

    y, doubled = run(made, X, C)
    np.testing.assert_allclose(y, np.sin(X) * X)
    np.testing.assert_allclose(doubled, 2 * (np.cos(X) * X + np.sin(X)) * C)
    assert "gradients" in texts(trace) and "gradients" not in texts(made)
    assert set(renamed) <= {p.name for b in trace.bound_symbols for p in b.outputs}


def test_what_is_read_later_stays():
    def program(x, c):
        h = toy.wave(x)
        y = toy.tanh(h)
        (g,) = gradients((y,), (c,), (x,))
        return toy.cos(h) + g

    result = run(written_out(traced(program, (5,), (5,)), **COPY)[0], X, C)
    h = run(traced(toy.wave, (5,)), X)
    (expected,) = numeric_gradients(traced(lambda x: toy.tanh(toy.wave(x)), (5,)), [X], [C])
    np.testing.assert_allclose(result, np.cos(h) + expected, rtol=1e-5)


def test_one_call_after_the_other():
    def program(x, c):
        y = toy.sin(x)
        (first,) = gradients((y,), (c,), (x,))
        z = y * y * first
        (second,) = gradients((z,), (c,), (x,))
        return first, second

    first, second = run(written_out(traced(program, (5,), (5,)), **COPY)[0], X, C)
    np.testing.assert_allclose(first, np.cos(X) * C)
    np.testing.assert_allclose(second, 2 * np.sin(X) * np.cos(X) * first * C)  # the first one is constant


def test_gradients_share_no_memory():
    def program(x, y, c):
        return gradients((x + y,), (c,), (x, y))

    made, _ = written_out(traced(program, (5,), (5,), (5,)), **COPY)

    assert texts(made) == ["add", "mul", "mul"]
    assert len({p.name for p in made.outputs}) == 2


def test_a_gradient_that_is_not_there_is_no_zero():
    def program(x, y, c):
        return gradients((toy.sin(x),), (c,), (x, y))

    with pytest.raises(ThunderError, match="no gradient reaches y"):
        written_out(traced(program, (5,), (5,), (5,)), **COPY)


def test_what_a_rule_draws_in_a_way_of_its_own_is_not_passed_again():
    def program(x, c):
        with current_builder().tagged(DRAWS_APART):  # as the rule of an executor does
            h = toy.noise(x)
        return gradients((toy.masked(toy.above(h), toy.sin(x)),), (c,), (x,)), toy.cos(x)

    with pytest.raises(ThunderError, match="goes through it twice"):
        written_out(traced(program, (5,), (5,)), **COPY)
