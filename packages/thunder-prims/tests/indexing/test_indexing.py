import pytest

import thunder_prims as prims
from thunder_ir import DeviceError, DimensionError, DTypeError, ShapeError, Tensor, trace_of


def shape_of(program, *examples):
    return trace_of(program, *examples).output.shape


X, LIST, PAIRS = Tensor((2, 3, 4)), Tensor((5,), "int64"), Tensor((5, 6), "int32")


def test_indices_take_the_place_of_dimensions():
    assert shape_of(lambda x, i: prims.take(x, i, 1), X, PAIRS) == (2, 5, 6, 4)
    assert shape_of(lambda x, i: prims.index(x, (None, i)), X, LIST) == (2, 5, 4)
    assert shape_of(lambda x, i: prims.index(x, (None, i, i)), X, LIST) == (2, 5)
    assert shape_of(lambda x, i: prims.index(x, (i, None, i)), X, PAIRS) == (5, 6, 3)
    assert shape_of(lambda x, i: prims.gather(x, i, 2), X, Tensor((2, 1, 9), "int64")) == (2, 1, 9)
    assert shape_of(lambda x, i: prims.take_along_axis(x, i, 2), X, Tensor((2, 3, 9), "int64")) == (2, 3, 9)


def test_writing_keeps_the_shape():
    assert shape_of(lambda x, i, v: prims.index_add(x, i, v, 1), X, LIST, Tensor((2, 5, 4))) == (2, 3, 4)
    assert shape_of(lambda x, i, v: prims.index_copy(x, i, v, 0), X, LIST, Tensor((5, 3, 4))) == (2, 3, 4)
    assert shape_of(lambda x, i, v: prims.index_put(x, (None, i), v, True), X, LIST, Tensor((2, 5, 4))) == (2, 3, 4)
    assert shape_of(lambda x, i: prims.scatter(x, i, 1.0, 0), X, Tensor((1, 2, 3), "int64")) == (2, 3, 4)
    assert shape_of(lambda x, v: prims.slice_scatter(x, v, (0, 1, 0), (2, 3, 4), (1, 2, 3)), X, Tensor((2, 1, 2)))


def test_derivatives_are_wanted_if_any_operand_wants_them():
    values = Tensor((2, 5, 4), requires_grad=True)
    trace = trace_of(lambda x, i, v: prims.index_add(x, i, v, 1), X, LIST, values)
    assert trace.output.requires_grad


REFUSALS = [
    (lambda x, i: prims.take(x, x, 0), DTypeError, r"take needs indices of an integer dtype, got float32\[2, 3, 4\]"),
    (lambda x, i: prims.take(x, i, 3), DimensionError, "take of .* has no dimension 3"),
    (lambda x, i: prims.index_add(x, i, x, 1), ShapeError, r"index_add needs values of shape \(2, 5, 4\), got float32"),
    (lambda x, i: prims.index_copy(x, prims.reshape(i, (5, 1)), x, 1), ShapeError, "indices of at most one dimension"),
    (lambda x, i: prims.index(x, (None, None)), ShapeError, "needs at least one tensor of indices"),
    (lambda x, i: prims.index(x, (i, i, i, i)), ShapeError, "takes at most 3 indices, got 4"),
    (
        lambda x, i: prims.index(x, (i, prims.reshape(i, (5, 1)))),
        ShapeError,
        r"index needs indices of shape \(5,\), got int64\[5, 1\]",
    ),
    (lambda x, i: prims.index_put(x, (i,), x, False), ShapeError, r"needs values of shape \(5, 3, 4\)"),
    (lambda x, i: prims.gather(x, i, 0), ShapeError, r"gather of .* needs indices of 3 dimensions, got int64\[5\]"),
    (lambda x, i: prims.gather(x, prims.reshape(i, (1, 5, 1)), 0), ShapeError, "elsewhere no longer"),
    (lambda x, i: prims.take_along_axis(x, prims.reshape(i, (1, 1, 5)), 2), ShapeError, "of that shape but for this"),
    (lambda x, i: prims.scatter(x, prims.reshape(i, (1, 1, 5)), x, 2), ShapeError, "at least as long as indices"),
    (lambda x, i: prims.slice_scatter(x, x, (0,), (1,), (1,)), ShapeError, "needs 3 starts, ends and strides"),
    (lambda x, i: prims.slice_scatter(x, x, (0, 0, 0), (2, 3, 5), (1, 1, 1)), ShapeError, "end <= length"),
]


@pytest.mark.parametrize(("program", "error", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_does_not_fit_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        trace_of(program, X, LIST)


def test_indices_on_another_device_are_refused():
    with pytest.raises(DeviceError, match="take of .* needs one device"):
        trace_of(lambda x, i: prims.take(x, i, 0), X, Tensor((5,), "int64", "cuda"))
