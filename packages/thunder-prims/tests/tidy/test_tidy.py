"""Program in, program out; and the same values."""

import numpy as np
import pytest
from prims_machine import evaluate, trace_with

import thunder_prims as prims
from thunder_ir import IntegerProxy, Tensor, trace_of
from thunder_testing import assert_text


def padded(a, low, high):
    return prims.pad(a, 0, ((0, 0, 0), (low, high, 0)))


def test_the_parts_of_a_split_tensor_are_put_together_at_once():
    def program(x, y, z):
        return padded(x, 5, 0) + padded(y, 2, 3) + padded(z, 0, 6)

    assert_text(
        prims.tidy(trace_of(program, Tensor((4, 3)), Tensor((4, 3)), Tensor((4, 2)))),
        """
        def program(x: "float32[4, 3]", y: "float32[4, 3]", z: "float32[4, 2]"):
            t4 = prims.cat((z, y, x), 1)  # float32[4, 8]
            return t4
        """,
    )


def test_what_overlaps_is_added_and_gaps_are_filled():
    def program(x, y, u):
        return u * 2 + padded(x, 1, 3) + padded(y, 4, 1) + u

    assert_text(
        prims.tidy(trace_of(program, Tensor((4, 2)), Tensor((4, 1)), Tensor((4, 6)))),
        """
        def program(x: "float32[4, 2]", y: "float32[4, 1]", u: "float32[4, 6]"):
            t0 = prims.mul(u, 2)  # float32[4, 6]
            t6 = prims.pad(y, 0, ((0, 0, 0), (1, 0, 0)))  # float32[4, 2]
            t7 = prims.cat((x, t6), 1)  # float32[4, 4]
            t8 = prims.pad(t7, 0, ((0, 0, 0), (1, 1, 0)))  # float32[4, 6]
            t9 = prims.add(t0, t8)  # float32[4, 6]
            t5 = prims.add(t9, u)  # float32[4, 6]
            return t5
        """,
    )


def test_moves_that_undo_one_another_vanish():
    def program(x):
        a = prims.reshape(prims.reshape(x, (6, 4)), (2, 3, 4))
        b = prims.transpose(prims.transpose(a, (2, 0, 1)), (1, 2, 0))
        c = prims.pad(prims.slice(b, (0, 0, 0), (2, 3, 4)), 0, ((0, 0, 0),) * 3)
        d = prims.broadcast_in_dim(prims.cat((c,), 0), (2, 3, 4), (0, 1, 2))
        return prims.tanh(prims.sum(d, ()))

    assert_text(
        prims.tidy(trace_of(program, Tensor((2, 3, 4)))),
        """
        def program(x: "float32[2, 3, 4]"):
            t9 = prims.tanh(x)  # float32[2, 3, 4]
            return t9
        """,
    )


def test_moves_that_follow_one_another_become_one():
    def program(x):
        a = prims.transpose(prims.transpose(prims.transpose(x, (1, 0, 2)), (2, 0, 1)), (0, 2, 1))
        return a, prims.reshape(prims.sum(prims.reshape(prims.reshape(x, (24,)), (2, 1, 3, 2, 2)), (1,)), (4, 6))

    assert_text(
        prims.tidy(trace_of(program, Tensor((2, 3, 4)))),
        """
        def program(x: "float32[2, 3, 4]"):
            t2 = prims.transpose(x, (2, 0, 1))  # float32[4, 2, 3]
            t6 = prims.reshape(x, (4, 6))  # float32[4, 6]
            return (t2, t6)
        """,
    )


def test_what_repeats_is_computed_once_and_then_repeated():
    def program(x, y, u):
        a, b = (prims.broadcast_in_dim(v, (4, 3), (0, 1)) for v in (x, y))
        return prims.mul(prims.add(a, b) / 3, u)

    assert_text(
        prims.tidy(trace_of(program, Tensor((4, 1)), Tensor((4, 1)), Tensor((4, 3)))),
        """
        def program(x: "float32[4, 1]", y: "float32[4, 1]", u: "float32[4, 3]"):
            t5 = prims.add(x, y)  # float32[4, 1]
            t7 = prims.div(t5, 3)  # float32[4, 1]
            t3 = prims.broadcast_in_dim(t7, (4, 3), (0, 1))  # float32[4, 3]
            t4 = prims.mul(t3, u)  # float32[4, 3]
            return t4
        """,
    )


def test_turned_matrices_are_multiplied_one_by_one_rather_than_copied():
    def program(x, b):
        rows = prims.reshape(prims.transpose(x, (0, 2, 1)), (12, 4))
        return prims.reshape(prims.matmul(rows, b), (2, 6, 5))

    trace = trace_of(program, Tensor((2, 4, 6)), Tensor((4, 5)))
    assert_text(
        prims.tidy_apart(trace),
        """
        def program(x: "float32[2, 4, 6]", b: "float32[4, 5]"):
            t0 = prims.transpose(x, (0, 2, 1))  # float32[2, 6, 4]
            t4 = prims.broadcast_in_dim(b, (2, 4, 5), (1, 2))  # float32[2, 4, 5]
            t3 = prims.matmul(t0, t4)  # float32[2, 6, 5]
            return t3
        """,
    )
    assert len(prims.tidy(trace).bound_symbols) == 3

    def in_rows(x, b):
        return prims.matmul(prims.reshape(x, (12, 4)), b)

    as_they_lie = trace_of(in_rows, Tensor((2, 6, 4)), Tensor((4, 5)))
    assert len(prims.tidy(as_they_lie).bound_symbols) == 2


def test_a_sum_over_one_element_is_a_reshape():
    trace = prims.tidy(trace_of(lambda x: prims.sum(prims.exp(x), (1,)), Tensor((4, 1))))
    assert [b.symbol.name for b in trace.bound_symbols] == ["exp", "reshape"]


def test_empty_parts_add_nothing():
    def program(x, empty):
        return padded(empty, 3, 0) + padded(x, 0, 0) + prims.cat((empty, x), 1)

    assert_text(
        prims.tidy(trace_of(program, Tensor((4, 3)), Tensor((4, 0)))),
        """
        def program(x: "float32[4, 3]", empty: "float32[4, 0]"):
            t4 = prims.add(x, x)  # float32[4, 3]
            return t4
        """,
    )


def test_a_part_that_is_read_elsewhere_stays():
    def program(x, y):
        p = padded(x, 0, 2)
        return p + padded(y, 3, 0), p

    trace = prims.tidy(trace_of(program, Tensor((4, 3)), Tensor((4, 2))))
    assert [b.symbol.name for b in trace.bound_symbols] == ["pad", "cat"]


def test_a_sum_that_is_read_twice_is_not_computed_twice():
    def program(x, y, z):
        s = padded(x, 5, 0) + padded(y, 2, 3)
        return s + padded(z, 0, 6), s

    trace = prims.tidy(trace_of(program, Tensor((4, 3)), Tensor((4, 3)), Tensor((4, 2))))
    assert [b.symbol.name for b in trace.bound_symbols] == ["cat", "pad", "pad", "add"]


def test_symbolic_sizes_are_compared_by_name():
    def program(x, y):
        n, m = x.shape[0], y.shape[0]
        a = prims.reshape(x, (n, 4)) + prims.pad(x, 0, ((0, 0, 0), (0, 0, 0)))
        return a, prims.broadcast_in_dim(y, (m, 4), (0, 1)), prims.pad(y, 0, ((n, 0, 0), (0, 0, 0)))

    trace = trace_of(program, Tensor((IntegerProxy(3, "n"), 4)), Tensor((IntegerProxy(3, "m"), 4)))
    constraints = len(trace.constraints)
    tidied = prims.tidy(trace)
    assert [b.symbol.name for b in tidied.bound_symbols if b.symbol.name != "number_add"] == ["add", "pad"]
    assert len(tidied.constraints) == constraints


def test_the_pass_is_idempotent_and_returns_a_tidy_program_as_it_is():
    trace = prims.tidy(trace_of(lambda x: prims.tanh(prims.reshape(x, (6,))), Tensor((2, 3))))
    assert str(prims.tidy(trace)) == str(trace)


@pytest.mark.parametrize("seed", range(20))
def test_values_are_kept_on_random_programs(seed):
    generator = np.random.default_rng(seed)

    def step(values):
        a, b = (values[i] for i in generator.integers(0, len(values), 2))
        low = int(generator.integers(0, 6))
        length = int(generator.integers(0, 7 - low))
        return [
            lambda: a + b,
            lambda: padded(prims.slice(a, (0, low), (4, low + length)), low, 6 - low - length),
            lambda: prims.reshape(prims.reshape(a, (24,)), (4, 6)),
            lambda: prims.transpose(prims.transpose(a, (1, 0)), (1, 0)),
            lambda: prims.cat((prims.slice(a, (0, 0), (4, low)), prims.slice(b, (0, low), (4, 6))), 1),
            lambda: prims.sum(prims.reshape(a, (4, 1, 6)), (1,)),
            lambda: prims.neg(prims.broadcast_in_dim(prims.amax(a, (1,)), (4, 6), (0,))) + b,
        ][generator.integers(0, 7)]()

    def program(x, y):
        values = [x, y]
        for _ in range(25):
            values.append(step(values))
        return values[-1], values[-5], values[-9]

    x, y = generator.standard_normal((2, 4, 6))
    trace = trace_with(program, x, y)
    for have, want in zip(evaluate(prims.tidy(trace), x, y), evaluate(trace, x, y), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12)


def test_results_are_repeated_before_they_are_computed_where_they_shall_lie_apart():
    def program(dy):
        once = prims.div(dy, 6)
        return prims.broadcast_in_dim(once, (2, 3), ()), prims.mul(prims.broadcast_in_dim(dy, (2, 3), ()), 2)

    trace = trace_of(program, Tensor(()))
    assert_text(
        prims.tidy(trace, apart=True),
        """
        def program(dy: "float32[]"):
            t4 = prims.broadcast_in_dim(dy, (2, 3), ())  # float32[2, 3]
            t1 = prims.div(t4, 6)  # float32[2, 3]
            t2 = prims.broadcast_in_dim(dy, (2, 3), ())  # float32[2, 3]
            t3 = prims.mul(t2, 2)  # float32[2, 3]
            return (t1, t3)
        """,
    )


def test_open_paddings_are_asked_for_no_values():
    between = IntegerProxy(2, "n")
    trace = trace_of(lambda x: prims.pad(x, 0, ((1, 0, between),)) + prims.pad(x, 0, ((0, 1, between),)), Tensor((3,)))
    assert prims.tidy(trace).bound_symbols == trace.bound_symbols
