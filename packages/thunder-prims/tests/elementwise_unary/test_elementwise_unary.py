import pytest

import thunder_prims as prims
from thunder_ir import DTypeError, Tensor, trace_of
from thunder_testing import assert_text


def test_a_call_keeps_shape_dtype_and_device():
    assert_text(
        trace_of(lambda x: prims.exp(x), Tensor((2, 3), "bfloat16", "cuda:1")),
        """
        def program(x: "cuda:1 bfloat16[2, 3]"):
            t0 = prims.exp(x)  # cuda:1 bfloat16[2, 3]
            return t0
        """,
    )


def test_operators_are_prims():
    assert_text(
        trace_of(lambda x, n: (abs(-x), ~n), Tensor((2,)), Tensor((2,), "int8")),
        """
        def program(x: "float32[2]", n: "int8[2]"):
            t0 = prims.neg(x)  # float32[2]
            t1 = prims.abs(t0)  # float32[2]
            t2 = prims.bitwise_not(n)  # int8[2]
            return (t1, t2)
        """,
    )


def test_frexp_has_two_results():
    assert_text(
        trace_of(prims.frexp, Tensor((2,), "float64")),
        """
        def program(a0: "float64[2]"):
            (t0, t1) = prims.frexp(a0)  # float64[2], int32[2]
            return (t0, t1)
        """,
    )


@pytest.mark.parametrize("name", ["exp", "sin", "log", "sqrt", "tanh", "sigmoid", "reciprocal"])
def test_functions_of_reals_refuse_integers(name):
    with pytest.raises(DTypeError, match=rf"{name} of int64\[2\] needs a floating-point or complex dtype; convert it"):
        trace_of(getattr(prims, name), Tensor((2,), "int64"))


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc"])
def test_rounding_refuses_complex_numbers(name):
    with pytest.raises(DTypeError, match=rf"{name} of complex64\[2\] needs an integer or floating-point dtype"):
        trace_of(getattr(prims, name), Tensor((2,), "complex64"))


@pytest.mark.parametrize("name", ["abs", "neg", "sign"])
def test_booleans_have_no_sign(name):
    with pytest.raises(DTypeError, match=rf"{name} of bool8\[2\] needs a dtype other than bool8"):
        trace_of(getattr(prims, name), Tensor((2,), "bool8"))


def test_floats_have_no_bits_to_invert():
    with pytest.raises(DTypeError, match=r"bitwise_not of float32\[2\] needs an integer dtype or bool8"):
        trace_of(prims.bitwise_not, Tensor((2,)))


def test_a_number_is_no_tensor():
    with pytest.raises(TypeError, match=r"exp needs a tensor as an argument, got the float 1\.0"):
        trace_of(lambda x: prims.exp(1.0), Tensor((2,)))


def test_derivatives_are_wanted_for_what_depends_on_a_parameter():
    trace = trace_of(lambda x: (prims.exp(x), prims.floor(x), x > 0), Tensor((2,), requires_grad=True))
    assert [p.requires_grad for p in trace.outputs] == [True, True, False]
