import pytest

import thunder_prims as prims
from thunder_ir import DimensionError, DTypeError, IntegerProxy, ShapeError, Tensor, trace_of
from thunder_testing import assert_text


def test_calls_print_as_made():
    def program(x):
        a = prims.sum(x, (0, 2))
        b, c = prims.var_mean(x, (1,), 1)
        return a, b, c, prims.argmax(x, 1), prims.argmin(x, None), prims.amax(x, ()), prims.std(x, (0, 1, 2), 0)

    assert_text(
        trace_of(program, Tensor((2, 3, 4))),
        """
        def program(x: "float32[2, 3, 4]"):
            t0 = prims.sum(x, (0, 2))  # float32[3]
            (t1, t2) = prims.var_mean(x, (1,), 1)  # float32[2, 4], float32[2, 4]
            t3 = prims.argmax(x, 1)  # int64[2, 4]
            t4 = prims.argmin(x, None)  # int64[]
            t5 = prims.amax(x, ())  # float32[2, 3, 4]
            t6 = prims.std(x, (0, 1, 2), 0)  # float32[]
            return (t0, t1, t2, t3, t4, t5, t6)
        """,
    )


def test_the_variance_of_complex_numbers_is_real():
    trace = trace_of(lambda x: prims.var_mean(x, (0,), 0), Tensor((3,), "complex128"))
    assert [p.dtype.name for p in trace.outputs] == ["float64", "complex128"]


def test_sizes_may_be_symbolic():
    trace = trace_of(lambda x: prims.sum(x, (0,)), Tensor((3, IntegerProxy(4, "n"))))
    assert trace.output.shape[0].value == 4


REFUSALS = [
    (lambda x: prims.sum(x, (2,)), DimensionError, r"sum of float32\[2, 0\] has no dimension 2"),
    (lambda x: prims.sum(x, (0, 0)), ShapeError, r"sum of float32\[2, 0\] needs different dimensions"),
    (lambda x: prims.amax(x, (1,)), ShapeError, r"amax of float32\[2, 0\] along dimension 1, which is empty"),
    (lambda x: prims.argmin(x, None), ShapeError, r"argmin of float32\[2, 0\], which is empty"),
    (lambda x: prims.argmax(x, 1), ShapeError, "argmax of .* along dimension 1, which is empty"),
    (lambda x: prims.argmax(x, -1), DimensionError, "argmax of .* has no dimension -1"),
]


@pytest.mark.parametrize(("program", "error", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_does_not_fit_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        trace_of(program, Tensor((2, 0)))


def test_dtypes_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match=r"sum of bool8\[3\] needs a dtype other than bool8"):
        trace_of(lambda x: prims.sum(x, (0,)), Tensor((3,), "bool8"))
    with pytest.raises(DTypeError, match=r"var of int64\[3\] needs a floating-point or complex dtype"):
        trace_of(lambda x: prims.var(x, (0,), 1), Tensor((3,), "int64"))
    with pytest.raises(DTypeError, match=r"amin of complex64\[3\] needs a dtype that is not complex"):
        trace_of(lambda x: prims.amin(x, (0,)), Tensor((3,), "complex64"))


def test_the_pullback_of_a_sum_is_one_operation():
    from thunder_autograd import vjp_rule

    def program(x, dy):
        y, pullback = vjp_rule[prims.sum](x, (0,))
        return y, pullback(dy)

    assert_text(
        trace_of(program, Tensor((2, 3)), Tensor((3,))),
        """
        def program(x: "float32[2, 3]", dy: "float32[3]"):
            t0 = prims.sum(x, (0,))  # float32[3]
            t1 = prims.broadcast_in_dim(dy, (2, 3), (1,))  # float32[2, 3]
            return (t0, t1)
        """,
    )
