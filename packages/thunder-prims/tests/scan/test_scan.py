import pytest

import thunder_prims as prims
from thunder_ir import DimensionError, DTypeError, Tensor, trace_of


def test_shape_and_dtype_stay():
    def program(x):
        return prims.cumsum(x, 0), prims.cumprod(x, 1), prims.logcumsumexp(x, 1), prims.cummax(x, 1), prims.cummin(x, 0)

    outputs = trace_of(program, Tensor((2, 3), "float64")).outputs
    assert [p.type_string for p in outputs] == [
        "float64[2, 3]", "float64[2, 3]", "float64[2, 3]",
        "float64[2, 3]", "int64[2, 3]", "float64[2, 3]", "int64[2, 3]",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
def test_a_dimension_that_is_not_there_is_refused(name):
    with pytest.raises(DimensionError, match=rf"{name} of float32\[3\] has no dimension 1; expected one of 0..0"):
        trace_of(lambda x: getattr(prims, name)(x, 1), Tensor((3,)))


@pytest.mark.parametrize(
    ("name", "dtype"), [("cumsum", "bool8"), ("logcumsumexp", "int64"), ("cummax", "complex64")], ids=str
)
def test_dtypes_that_do_not_fit_are_refused(name, dtype):
    with pytest.raises(DTypeError, match=rf"{name} of {dtype}\[3\] needs"):
        trace_of(lambda x: getattr(prims, name)(x, 0), Tensor((3,), dtype))
