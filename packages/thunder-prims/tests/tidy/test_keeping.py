"""Programs are tidied, and their results share memory with inputs and with one another as before."""

import numpy as np
import pytest
from prims_machine import evaluate, trace_with

import thunder_prims as prims
from thunder_ir import OpTags, Tensor, dtypes, trace_of
from thunder_testing import assert_text


def test_what_is_multiplied_by_ones_is_taken_as_it_is():
    def program(x):
        ones = prims.broadcast_in_dim(prims.full((), 1, dtypes.float32, x.device), (2, 3), ())
        return prims.exp(prims.mul(ones, prims.mul(x, ones)))

    assert_text(
        prims.tidy_apart(trace_of(program, Tensor((2, 3)))),
        """
        def program(x: "float32[2, 3]"):
            t4 = prims.exp(x)  # float32[2, 3]
            return t4
        """,
    )


def test_a_product_with_ones_that_is_returned_is_no_input():
    def program(x):
        return prims.mul(prims.full((3,), 1, dtypes.float32, x.device), x)

    trace = trace_of(program, Tensor((3,)))
    assert str(prims.tidy_apart(trace)) == str(trace)


def test_dimensions_of_one_element_that_a_broadcast_puts_in_are_those_of_a_reshape():
    def program(x):
        return prims.exp(prims.reshape(prims.broadcast_in_dim(x, (2, 1, 3), (0, 2)), (2, 3)))

    trace = prims.tidy_apart(trace_of(program, Tensor((2, 3))))
    assert [b.symbol.name for b in trace.bound_symbols if b.symbol is prims.reshape] == []


def test_calls_that_let_no_derivative_through_stay():
    trace = trace_of(lambda x: prims.exp(prims.sum(x, (0,))), Tensor((1, 3)))
    cut = frozenset({OpTags.CONSTANT_FOR_DERIVATIVE})
    trace = trace.replace(bound_symbols=tuple([b.replace(tags=cut) for b in trace.bound_symbols]))
    assert prims.tidy(trace).bound_symbols == trace.bound_symbols


def test_a_sum_of_one_row_is_a_view_unless_others_have_its_memory():
    def program(x):
        y = prims.exp(x)
        return prims.sum(y, (0,)), prims.sum(y, (0,)), y, prims.sum(prims.neg(x), (0,)), prims.sum(x, (0,))

    trace = prims.tidy_apart(trace_of(program, Tensor((1, 3))))
    assert [b.symbol.name for b in trace.bound_symbols] == ["exp", "sum", "sum", "neg", "reshape", "sum"]


def shared(inputs, results):
    """Return which results share memory with which others or inputs, where NumPy's views stand for PyTorch's."""
    everything = [*inputs, *results]
    return {
        (i, j)
        for i in range(len(everything))
        for j in range(i)
        if np.shares_memory(everything[i], everything[j]) and i >= len(inputs)
    }


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_have_the_same_values_and_no_new_shared_memory(seed):
    generator = np.random.default_rng(seed)
    shapes = [(3,), (1, 3), (3, 1), (1, 1, 3)]

    def step(values):
        a = values[generator.integers(0, len(values))]
        choice = generator.integers(0, 6)
        if choice < 2:
            return prims.reshape(a, shapes[generator.integers(0, len(shapes))])
        if choice == 2 and 1 in a.shape:
            return prims.sum(a, (a.shape.index(1),))
        if choice == 3:
            return prims.transpose(a, tuple(reversed(range(a.ndim))))
        if choice == 4:
            return prims.mul(a, prims.full(a.shape, 1, a.dtype, a.device))
        return prims.neg(a)

    def program(x, y):
        values = [x, y]
        for _ in range(12):
            values.append(step(values))
        return tuple([values[i] for i in generator.integers(2, len(values), 3)])

    x, y = generator.standard_normal((2, 3))
    trace = trace_with(program, x, y)
    tidied = prims.tidy_apart(trace)
    before, after = evaluate(trace, x, y), evaluate(tidied, x, y)
    for have, want in zip(after, before, strict=True):
        np.testing.assert_array_equal(have, want)
    assert shared((x, y), after) <= shared((x, y), before)
