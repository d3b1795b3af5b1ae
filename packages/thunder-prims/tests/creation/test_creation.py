import math

import numpy as np
import pytest
from prims_machine import run

import thunder_prims as prims
from thunder_ir import DTypeError, ShapeError, devices, dtypes, trace_of
from thunder_testing import assert_text

CPU = devices.cpu


def made(symbol, *arguments):
    return run(lambda: symbol(*arguments, CPU))


def test_creation_prints_as_called():
    def program():
        return prims.full((2, 3), -math.inf, dtypes.float32, CPU), prims.iota(4, 1, 2, dtypes.int64, CPU)

    assert_text(
        trace_of(program),
        """
        def program():
            t0 = prims.full((2, 3), float('-inf'), dtypes.float32, devices.device('cpu'))  # float32[2, 3]
            t1 = prims.iota(4, 1, 2, dtypes.int64, devices.device('cpu'))  # int64[4]
            return (t0, t1)
        """,
    )


def test_values_are_as_asked():
    np.testing.assert_array_equal(made(prims.full, (2,), 1.5, dtypes.float64), [1.5, 1.5])
    np.testing.assert_array_equal(made(prims.iota, 4, 1, 2, dtypes.int64), [1, 3, 5, 7])
    np.testing.assert_array_equal(made(prims.tensor_from_sequence, [[1, 2], (3, 4)], dtypes.float32), [[1, 2], [3, 4]])
    assert made(prims.empty, (0, 3), dtypes.bool8).shape == (0, 3)


@pytest.mark.parametrize(
    ("sequence", "shape"), [(3, ()), ([], (0,)), ([[], []], (2, 0)), ([[1], [2], [3]], (3, 1))], ids=str
)
def test_a_sequence_has_a_dimension_per_depth(sequence, shape):
    assert made(prims.tensor_from_sequence, sequence, dtypes.int64).shape == shape


def test_ragged_sequences_are_refused():
    with pytest.raises(ShapeError, match=r"tensor_from_sequence needs items of one shape, got the list \[\[1\], \["):
        made(prims.tensor_from_sequence, [[1], [2, 3]], dtypes.int64)


def test_a_negative_size_is_refused():
    with pytest.raises(ShapeError, match=r"empty needs sizes that are not negative, got \(2, -1\)"):
        made(prims.empty, (2, -1), dtypes.int64)


def test_a_value_fits_the_dtype():
    with pytest.raises(DTypeError, match="full of int64 cannot take the float 0.5"):
        made(prims.full, (2,), 0.5, dtypes.int64)


def test_a_dtype_is_no_string():
    with pytest.raises(TypeError, match="full needs a dtype, got the str 'float32'"):
        made(prims.full, (2,), 0.5, "float32")


def test_the_dtype_of_a_python_number_is_not_that_of_a_tensor():
    with pytest.raises(DTypeError, match="full needs the dtype of a tensor, got weak_float"):
        made(prims.full, (2,), 0.5, dtypes.weak_float)


def test_there_is_no_range_of_booleans():
    with pytest.raises(DTypeError, match="iota of bool8 needs an integer or floating-point dtype"):
        made(prims.iota, 2, False, True, dtypes.bool8)
