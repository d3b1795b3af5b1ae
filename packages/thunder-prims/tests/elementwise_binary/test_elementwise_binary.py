import pytest

import thunder_prims as prims
from thunder_ir import DeviceError, DTypeError, ShapeError, Tensor, number_proxy, trace_of
from thunder_testing import assert_text


def test_operators_are_prims():
    assert_text(
        trace_of(lambda x, y: (1 - x * y) / 2 % y, Tensor((2,)), Tensor((2,))),
        """
        def program(x: "float32[2]", y: "float32[2]"):
            t0 = prims.mul(x, y)  # float32[2]
            t1 = prims.sub(1, t0)  # float32[2]
            t2 = prims.div(t1, 2)  # float32[2]
            t3 = prims.remainder(t2, y)  # float32[2]
            return t3
        """,
    )


def test_integers_divide_by_floor():
    assert_text(
        trace_of(lambda n, m: n // m, Tensor((2,), "int32"), Tensor((2,), "int32")),
        """
        def program(n: "int32[2]", m: "int32[2]"):
            t0 = prims.floor_divide(n, m)  # int32[2]
            return t0
        """,
    )


def test_arguments_by_name_are_recorded_at_their_places():
    assert_text(
        trace_of(lambda x, y: prims.sub(b=x, a=y), Tensor((2,)), Tensor((2,))),
        """
        def program(x: "float32[2]", y: "float32[2]"):
            t0 = prims.sub(y, x)  # float32[2]
            return t0
        """,
    )


def test_a_symbolic_number_is_an_operand():
    assert_text(
        trace_of(lambda x, n: x * n, Tensor((2,)), number_proxy(3)),
        """
        def program(x: "float32[2]", n: "int"):
            t0 = prims.mul(x, n)  # float32[2]
            return t0
        """,
    )


def test_a_missing_argument_is_named():
    with pytest.raises(TypeError, match="sub: missing a required argument: 'b'"):
        trace_of(lambda x: prims.sub(a=x), Tensor((2,)))


def test_shapes_are_equal():
    with pytest.raises(ShapeError, match=r"add of float32\[2, 3\] and float32\[3\] needs equal shapes; broadcast"):
        trace_of(prims.add, Tensor((2, 3)), Tensor((3,)))


def test_dtypes_are_equal():
    with pytest.raises(DTypeError, match=r"mul of float32\[2\] and float64\[2\] needs one dtype; convert one of them"):
        trace_of(prims.mul, Tensor((2,)), Tensor((2,), "float64"))


def test_devices_are_equal():
    with pytest.raises(DeviceError, match=r"add of float32\[2\] on cpu and cuda:0 float32\[2\] on cuda:0 needs one"):
        trace_of(prims.add, Tensor((2,)), Tensor((2,), device="cuda"))


@pytest.mark.parametrize(("dtype", "number"), [("int64", 0.5), ("float32", 1j), ("bool8", 2)], ids=str)
def test_a_number_does_not_raise_the_kind_of_the_tensor(dtype, number):
    with pytest.raises(DTypeError, match=f"add of {dtype} cannot take the {type(number).__name__} "):
        trace_of(lambda x: x + number, Tensor((2,), dtype))


def test_integers_are_not_divided_exactly():
    with pytest.raises(DTypeError, match=r"div of int64\[2\] needs a floating-point or complex dtype"):
        trace_of(lambda n: n / 2, Tensor((2,), "int64"))


def test_a_string_is_no_operand():
    with pytest.raises(TypeError, match="add takes tensors and numbers, got the str 'one'"):
        trace_of(lambda x: prims.add(x, "one"), Tensor((2,)))


def test_numbers_alone_are_refused():
    with pytest.raises(TypeError, match="add needs a tensor among its operands, got the int 1, the int 2"):
        trace_of(lambda x: prims.add(1, 2), Tensor((2,)))
