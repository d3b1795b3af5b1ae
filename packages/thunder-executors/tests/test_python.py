"""Numbers, comments and prints."""

import numpy as np
from numpy_executor import executor as numpy_executor

import thunder_prims as prims
from thunder_executors import to_callable, transform_for_execution
from thunder_ir import IntegerProxy, Tensor, trace_of


def test_arithmetic_of_numbers_runs_in_python():
    def program(n, x):
        return (n + 1) * 2, prims.mul(x, n), prims.number_math("sqrt", n - 1)

    run = to_callable(trace_of(program, IntegerProxy(3), Tensor((2,), "int64")), [numpy_executor])
    twice, scaled, root = run(5, np.array([1, 2]))

    assert twice == 12 and root == 2.0
    np.testing.assert_array_equal(scaled, [5, 10])


def test_comments_and_prints_stay(capsys):
    def program(x):
        prims.comment("on the\nway")
        prims.print("x is", x)
        return x

    trace = transform_for_execution(trace_of(program, Tensor((1,), "int64")), [numpy_executor])
    trace.python_callable()(np.array([7]))

    assert r"# on the\nway" in str(trace)
    assert capsys.readouterr().out == "x is [7]\n"
