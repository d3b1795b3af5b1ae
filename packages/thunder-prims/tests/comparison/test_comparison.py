import numpy as np
import pytest
from prims_machine import check_batching, run

import thunder_prims as prims
from thunder_ir import DTypeError, Tensor, trace_of

A, B = np.random.default_rng(12).integers(0, 3, (2, 2, 3)).astype(float)
ODD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5])


@pytest.mark.parametrize("name", ["eq", "ge", "gt", "le", "lt", "ne"])
def test_results_are_booleans_and_batches_of_them(name):
    assert run(getattr(prims, name), A, B).dtype == bool
    check_batching(getattr(prims, name), A, B)
    check_batching(getattr(prims, name), A, 1)


@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan", "signbit"])
def test_sorts_of_numbers_are_booleans(name):
    assert run(getattr(prims, name), ODD).dtype == bool
    check_batching(getattr(prims, name), ODD)


def test_operators_compare():
    trace = trace_of(lambda x, y: (x == y, x != 1, x < y, x <= y, x > 0.5, x >= y), Tensor((2,)), Tensor((2,)))
    assert [bound.symbol.name for bound in trace.bound_symbols] == ["eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", ["ge", "gt", "le", "lt", "signbit"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(DTypeError, match=rf"{name} of complex64\[2\] needs a dtype that is not complex"):
        trace_of(getattr(prims, name), *[Tensor((2,), "complex64")] * (1 if name == "signbit" else 2))
