import pytest

import thunder_prims as prims
from thunder_ir import DimensionError, DTypeError, ShapeError, Tensor, trace_of


def types(program, *examples):
    return [p.type_string for p in trace_of(program, *examples).outputs]


def test_half_a_spectrum_is_kept():
    assert types(lambda x: prims.fft_r2c(x, (0, 2), "none"), Tensor((4, 3, 5))) == ["complex64[4, 3, 3]"]
    back = types(lambda x: prims.fft_c2r(x, (0, 2), "none", 5), Tensor((4, 3, 3), "complex128"))
    assert back == ["float64[4, 3, 5]"]


REFUSALS = [
    (lambda x, z: prims.fft_c2c(x, (0,), "none", True), DTypeError, "fft_c2c of float32.* needs a complex dtype"),
    (lambda x, z: prims.fft_r2c(z, (0,), "none"), DTypeError, "fft_r2c of complex64.* needs a floating-point dtype"),
    (
        lambda x, z: prims.fft_c2r(z, (0,), "none", 9),
        ShapeError,
        r"to length 9 along dimension 0 needs 5 elements there",
    ),
    (lambda x, z: prims.fft_r2c(x, (1,), "none"), ShapeError, "along dimension 1, which is empty, has no value"),
    (lambda x, z: prims.fft_r2c(x, (), "none"), ShapeError, "needs at least one dimension"),
    (lambda x, z: prims.fft_r2c(x, (2,), "none"), DimensionError, "has no dimension 2"),
    (lambda x, z: prims.fft_r2c(x, (0,), "ortho"), ValueError, 'normalizes by "none", "root" or "full", got \'ortho\''),
]


@pytest.mark.parametrize(("program", "error", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_does_not_fit_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        trace_of(program, Tensor((3, 0)), Tensor((3,), "complex64"))
