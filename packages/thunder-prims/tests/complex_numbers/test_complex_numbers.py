import numpy as np
import pytest
from prims_machine import check_rules

import thunder_prims as prims
from thunder_ir import DTypeError, Tensor, trace_of
from thunder_testing import assert_text

A, B = np.random.default_rng(9).uniform(-2, 2, (2, 2, 3))


@pytest.mark.parametrize("symbol", [prims.conj, prims.imag, prims.real], ids=lambda s: s.name)
def test_rules_hold(symbol):
    check_rules(symbol, A + 1j * B)


def test_rules_of_putting_parts_together_hold():
    check_rules(prims.complex, A, B)


def test_the_conjugate_and_the_real_part_of_a_real_tensor_are_itself():
    assert_text(
        trace_of(lambda x: (prims.conj(x), prims.real(x)), Tensor((2,))),
        """
        def program(x: "float32[2]"):
            return (x, x)
        """,
    )


def test_parts_have_the_dtype_of_the_parts():
    trace = trace_of(lambda x: (prims.real(x), prims.imag(x), prims.abs(x)), Tensor((2,), "complex64"))
    assert [p.dtype.name for p in trace.outputs] == ["float32"] * 3


def test_there_is_no_complex_dtype_with_parts_in_bfloat16():
    with pytest.raises(DTypeError, match=r"complex of bfloat16\[2\] needs float16, float32 or float64"):
        trace_of(prims.complex, Tensor((2,), "bfloat16"), Tensor((2,), "bfloat16"))


def test_a_real_tensor_has_no_imaginary_part():
    with pytest.raises(DTypeError, match=r"imag of float32\[2\] needs a complex dtype"):
        trace_of(prims.imag, Tensor((2,)))
