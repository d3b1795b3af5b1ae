"""Each number that ``bfloat16`` has, through kernels that leave out what rounding does not need."""

import pytest
import torch
import torch.nn.functional as F

from thunder_executors import Region
from thunder_executors_llvm import executor
from thunder_executors_llvm.rounding import exact, rounded_at_once, with_short_nans
from thunder_ir import dtypes, trace_of
from thunder_loops import Compute, Constant, Load, Reduce, Store
from thunder_torch import proxy_of, symbol_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")

EVERY = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)


def in_a_kernel(program, *tensors):
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors], language=torch_language)
    return executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "every")(*tensors)


def assert_same_bits(have, want):
    same = (have == want) & (have.signbit() == want.signbit()) | have.isnan() & want.isnan()
    assert same.all(), f"{(~same).sum()} differ: {have[~same][:5]} for {want[~same][:5]}"


FUNCTIONS = [torch.sigmoid, F.silu, torch.tanh, torch.exp, torch.sin, torch.cos, torch.sqrt, torch.log, torch.neg,
             torch.abs, torch.ceil, torch.round]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_of_every_bfloat16_have_the_bits_of_eager(function):
    symbol = symbol_of(function)
    (got,) = in_a_kernel(lambda x: (symbol(x),), EVERY)

    assert_same_bits(got, function(EVERY))


@pytest.mark.parametrize("function", [torch.sigmoid, torch.sin, torch.cos], ids=lambda f: f.__name__)
def test_functions_in_float32_times_their_argument_have_the_bits_of_eager(function):
    symbol = symbol_of(function)
    (got,) = in_a_kernel(lambda x: ((symbol(x.float()) * x.float()).to(torch.bfloat16),), EVERY)

    assert_same_bits(got, (function(EVERY.float()) * EVERY.float()).to(torch.bfloat16))


def test_products_and_choices_of_every_bfloat16_have_the_bits_of_eager():
    def program(x, y):
        return x * 1.1 * y, symbol_of(torch.where)(x > y, -x, y * 0.3), symbol_of(torch.maximum)(x, y) - 1.5

    wanted = EVERY * 1.1 * EVERY.flip(0), torch.where(EVERY > EVERY.flip(0), -EVERY, EVERY.flip(0) * 0.3)
    products, choices, greater = in_a_kernel(program, EVERY, EVERY.flip(0).contiguous())

    assert_same_bits(products, wanted[0])
    assert_same_bits(choices, wanted[1])
    assert_same_bits(greater, torch.maximum(EVERY, EVERY.flip(0)) - 1.5)


def test_nans_of_any_bits_stay_nans_where_float32_becomes_bfloat16():
    bits = torch.tensor([0x7F800001, 0x7FFFFFFF, -1, -(2**23) + 1, 0x7FC00000], dtype=torch.int32)
    x = bits.view(torch.float32).repeat(7)
    (got, negative) = in_a_kernel(lambda x: (x.to(torch.bfloat16), (-x * 2.0).to(torch.bfloat16)), x)

    assert got.isnan().all() and negative.isnan().all()


NARROW = Load("a", "0", (), dtypes.bfloat16)
WIDE = Load("b", "1", (), dtypes.float32)
A = Compute("x", "to", ("a",), dtypes.float32)


def test_nans_are_short_where_no_float32_and_no_function_comes_in():
    statements = (
        NARROW, WIDE, A, Compute("s", "add", ("x", "x"), dtypes.float32),
        Compute("t", "mul", ("x", "b"), dtypes.float32), Compute("f", "sin", ("x",), dtypes.float32),
        Reduce("m", "max", "s", ("i",), dtypes.float32),
        Constant("c", "nan", dtypes.float32),
    )  # fmt: skip

    assert with_short_nans(statements) == {"a", "x", "s", "m"}


def test_what_is_chosen_among_bfloat16_is_one():
    statements = (
        NARROW, WIDE, A, Constant("half", "0.5", dtypes.float32), Constant("tenth", "0.1", dtypes.float32),
        Compute("n", "neg", ("x",), dtypes.float32), Compute("h", "maximum", ("n", "half"), dtypes.float32),
        Compute("t", "maximum", ("n", "tenth"), dtypes.float32), Compute("p", "mul", ("x", "half"), dtypes.float32),
        Compute("w", "maximum", ("x", "b"), dtypes.float32),
    )  # fmt: skip

    assert exact(statements) == {"x", "half", "n", "h"}


def test_a_value_that_something_reads_before_it_is_rounded_keeps_all_its_digits():
    sigmoid = Compute("s", "sigmoid", ("x",), dtypes.float32)
    rounded = Compute("r", "to", ("s",), dtypes.bfloat16)
    store = Store("2", (), "r")
    scaled = Compute("p", "mul", ("x", "s"), dtypes.float32)

    assert "s" in rounded_at_once((NARROW, A, sigmoid, rounded, store))
    assert "s" in rounded_at_once((NARROW, A, sigmoid, scaled, Compute("q", "to", ("p",), dtypes.bfloat16)))
    assert "s" not in rounded_at_once((NARROW, A, sigmoid, rounded, store, Store("3", (), "s")))
    assert "s" not in rounded_at_once((NARROW, A, sigmoid, scaled, Store("3", (), "p")))
