import pytest

import thunder_prims as prims
from thunder_ir import FloatProxy, IntegerProxy, Tensor, number_proxy, trace_of
from thunder_testing import assert_text


def test_arithmetic_of_symbolic_numbers_is_recorded():
    assert_text(
        trace_of(lambda n: 2 * n - 1, number_proxy(3)),
        """
        def program(n: "int"):
            i0 = prims.number_mul(2, n)  # int
            i1 = prims.number_sub(i0, 1)  # int
            return i1
        """,
    )


def test_results_carry_the_value_at_hand():
    seen = {}

    def program(n):
        seen.update(
            add=n + 2, sub=2 - n, mul=n * n, truediv=n / 2, floordiv=7 // n, mod=7 % n, pow=n**2, neg=-n, abs=abs(-n)
        )
        return n

    trace_of(program, number_proxy(3))
    values = {name: proxy.value for name, proxy in seen.items()}
    assert values == dict(add=5, sub=-1, mul=9, truediv=1.5, floordiv=2, mod=1, pow=9, neg=-3, abs=3)
    assert isinstance(seen["truediv"], FloatProxy) and isinstance(seen["pow"], IntegerProxy)


def test_functions_of_mathematics_are_recorded_with_the_value_at_hand():
    trace = trace_of(lambda n: prims.number_math("sqrt", n), number_proxy(9))
    assert_text(
        trace,
        """
        def program(n: "int"):
            f0 = prims.number_math('sqrt', n)  # float
            return f0
        """,
    )
    assert trace.outputs[0].value == 3.0


def test_numbers_are_rounded_to_whole_ones_or_to_digits():
    trace = trace_of(lambda f: (prims.number_round(f), prims.number_round(f, 1)), number_proxy(2.55))
    whole, tenths = trace.outputs
    assert isinstance(whole, IntegerProxy) and whole.value == 3
    assert isinstance(tenths, FloatProxy) and tenths.value == round(2.55, 1)


def test_a_symbolic_size_can_be_computed_with():
    def program(x, n):
        return prims.full((n * 2, 3), 0.0, x.dtype, x.device)

    assert trace_of(program, Tensor((2,)), number_proxy(3)).outputs[0].shape[0].value == 6


def test_a_string_is_no_number():
    with pytest.raises(TypeError, match="number_add takes tensors and numbers, got the str 'x'"):
        trace_of(lambda n: prims.number_add(n, "x"), number_proxy(3))
