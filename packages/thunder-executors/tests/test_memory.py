"""Ordering and freeing."""

import numpy as np
from numpy_executor import executor as numpy_executor

import thunder_prims as prims
from thunder_executors import free_after_last_use, order_for_memory, peak_bytes, to_callable
from thunder_ir import Tensor, device, dtypes, trace_of


def test_values_are_forgotten_after_their_last_reader():
    def program(x, y):
        a = prims.exp(x)
        b = prims.add(a, y)
        return prims.mul(b, y)

    assert str(free_after_last_use(trace_of(program, Tensor((2,)), Tensor((2,))))).splitlines()[1:] == [
        "    t0 = prims.exp(x)  # float32[2]",
        "    del x",
        "    t1 = prims.add(t0, y)  # float32[2]",
        "    del t0",
        "    t2 = prims.mul(t1, y)  # float32[2]",
        "    del t1, y",
        "    return t2",
    ]


def test_outputs_that_nobody_reads_are_forgotten_at_once():
    def program(x):
        return prims.frexp(x)[0]

    text = str(free_after_last_use(trace_of(program, Tensor((2,)))))
    assert "    del x, t1\n" in text


def wide(x):
    ones = [prims.full((1024,), float(i), dtypes.float64, device("cpu")) for i in range(8)]
    total = x
    for one in ones:
        total = prims.add(total, one)
    return total


def test_what_grows_moves_down_to_its_first_reader():
    trace = trace_of(wide, Tensor((1024,), "float64"))
    ordered = order_for_memory(trace)

    assert peak_bytes(trace) == 8192 * 10 and peak_bytes(ordered) == 8192 * 3
    np.testing.assert_allclose(to_callable(trace, [numpy_executor])(np.zeros(1024)), 28.0)


def test_an_order_that_does_not_help_is_left():
    def program(x):
        return prims.exp(prims.sin(x))

    trace = trace_of(program, Tensor((2,)))
    assert order_for_memory(trace).bound_symbols is trace.bound_symbols


def test_effects_stay_where_they_are():
    def program(x):
        a = prims.full((1024,), 1.0, dtypes.float32, device("cpu"))
        prims.print(x)
        return prims.add(x, a)

    trace = trace_of(program, Tensor((1024,)))
    assert order_for_memory(trace).bound_symbols is trace.bound_symbols


def test_what_the_caller_holds_is_there_to_the_end():
    def program(x):
        return prims.exp(prims.exp(prims.exp(x)))

    trace = free_after_last_use(trace_of(program, Tensor((4,))))
    other = trace_of(lambda y: y, Tensor((8,))).inputs
    other = [other[0].renamed("other")]
    assert peak_bytes(trace) == 2 * 16
    assert peak_bytes(trace, trace.inputs) == 3 * 16
    assert peak_bytes(trace, [*trace.inputs, *other]) == 3 * 16 + 32
