import numpy as np
import pytest
from prims_machine import check_batching, check_rules, pulled_back, run

import thunder_prims as prims
from thunder_ir import FloatProxy, IntegerProxy, ShapeError, Tensor, UnknownNumberError, devices, dtypes, trace_of
from thunder_testing import assert_text

A, B = np.random.default_rng(13).uniform(-2, 2, (2, 2, 4))


def test_what_changes_nothing_is_no_operation():
    def program(x):
        return prims.convert_element_type(x, dtypes.float32), prims.device_put(x, devices.cpu)

    assert_text(
        trace_of(program, Tensor((2,))),
        """
        def program(x: "float32[2]"):
            return (x, x)
        """,
    )


def test_conversions_print_as_called():
    def program(x):
        y = prims.device_put(prims.convert_element_type(x, dtypes.bfloat16), devices.device("cuda:0"))
        return prims.clone(prims.bitcast(y, dtypes.int16))

    assert_text(
        trace_of(program, Tensor((2,))),
        """
        def program(x: "float32[2]"):
            t0 = prims.convert_element_type(x, dtypes.bfloat16)  # bfloat16[2]
            t1 = prims.device_put(t0, devices.device('cuda:0'))  # cuda:0 bfloat16[2]
            t2 = prims.bitcast(t1, dtypes.int16)  # cuda:0 int16[2]
            t3 = prims.clone(t2)  # cuda:0 int16[2]
            return t3
        """,
    )


@pytest.mark.parametrize("symbol", [prims.clone, prims.shallow_copy], ids=lambda s: s.name)
def test_rules_of_copies_hold(symbol):
    check_rules(symbol, A)


def test_rules_of_moving_hold():
    check_rules(prims.device_put, A, devices.device("meta"))


def test_rules_of_stride_order_hold():
    check_rules(prims.stride_order, A, (0, 1))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [(A, dtypes.complex128), (A + 1j * B, dtypes.float64), (A, dtypes.float64), (A + 1j * B, dtypes.complex128)],
    ids=["real to complex", "complex to real", "real", "complex"],
)
def test_rules_of_conversion_hold(values, dtype):
    check_rules(prims.convert_element_type, values, dtype)


def test_a_gradient_goes_back_to_the_dtype_that_it_came_from():
    def program(x, dy):
        return pulled_back(prims.convert_element_type, 2)(x, dtypes.float32, dy)[1][0]

    assert run(program, A, A.astype("float32")).dtype == np.float64


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.bool8], ids=str)
def test_no_gradient_comes_back_from_exact_numbers(dtype):
    _, gradients = run(lambda x: pulled_back(prims.convert_element_type, 2)(x, dtype, None), A)
    assert gradients == (None, None)
    check_batching(prims.convert_element_type, A, dtype)


def test_the_strides_of_channels_last_are_known():
    def program(x):
        return prims.stride_order(x, (3, 0, 2, 1))

    assert trace_of(program, Tensor((2, 3, 4, 5))).output.strides == (60, 1, 15, 3)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("int64", (2, 4)), ("float32", (2, 8)), ("uint8", (2, 32)), ("complex128", (2, 2))], ids=str
)
def test_bits_are_read_as_another_dtype(dtype, shape):
    assert run(lambda x: prims.bitcast(x, dtypes.dtype(dtype)), A).shape == shape
    check_batching(prims.bitcast, A, dtypes.dtype(dtype))


def test_bits_that_do_not_fill_the_last_element_are_refused():
    with pytest.raises(ShapeError, match=r"bitcast of float32\[2, 3\] to float64 needs a last dimension"):
        trace_of(lambda x: prims.bitcast(x, dtypes.float64), Tensor((2, 3)))


def test_an_item_is_a_number_of_the_kind_of_the_dtype():
    trace = trace_of(lambda x, n: (prims.item(x), prims.item(n)), Tensor((1, 1)), Tensor((), "int8"))
    assert [type(p) for p in trace.outputs] == [FloatProxy, IntegerProxy]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool8", "complex64"])
def test_arithmetic_with_an_item_does_not_stumble_over_its_unknown_value(dtype):
    def program(x):
        n = prims.item(x)
        return 1 / n, n**2, n * 3 - 1

    assert len(trace_of(program, Tensor((), dtype)).bound_symbols) == 5


def test_the_type_of_a_power_of_an_item_is_not_guessed():
    with pytest.raises(UnknownNumberError, match="depends on its sign"):
        trace_of(lambda x: 2 ** prims.item(x), Tensor((), "int64"))


def test_an_item_cannot_be_compared():
    with pytest.raises(
        UnknownNumberError, match=r"whether f0 \(what item\(\) returns\) > 0 is known only when the program runs"
    ):
        trace_of(lambda x: prims.item(x) > 0, Tensor(()))


def test_many_elements_are_no_item():
    with pytest.raises(ShapeError, match=r"item of float32\[2\] needs exactly one element"):
        trace_of(prims.item, Tensor((2,)))


def test_an_order_of_strides_is_a_permutation():
    with pytest.raises(ShapeError, match=r"stride_order of float32\[2, 3\] needs a permutation of 0..1, got \(0, 0\)"):
        trace_of(lambda x: prims.stride_order(x, (0, 0)), Tensor((2, 3)))
