import pytest

import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_ir import DTypeError, ShapeError, Tensor, trace_of
from thunder_testing import assert_text

ONE = ((1,), (0,), (1,), False, (0,), 1)


def shape_of(program, *examples):
    return trace_of(program, *examples).output.shape


@pytest.mark.parametrize(
    ("parameters", "weight", "length"),
    [
        (ONE, (6, 4, 3), 8),
        (((2,), (1,), (2,), False, (0,), 2), (6, 2, 3), 4),
        (((2,), (1,), (2,), True, (1,), 2), (4, 3, 3), 22),
    ],
)
def test_convolutions_have_the_lengths_of_pytorch(parameters, weight, length):
    program = lambda a, w: prims.convolution(a, w, None, *parameters)  # noqa: E731
    assert shape_of(program, Tensor((2, 4, 10)), Tensor(weight)) == (2, 6, length)


def test_the_pullback_of_a_convolution_is_a_call_for_the_input_and_one_for_the_parameters():
    def program(x, w, b, dy):
        y, pullback = vjp_rule[prims.convolution](x, w, b, *ONE)
        return pullback(dy)

    assert_text(
        trace_of(program, Tensor((2, 4, 5)), Tensor((6, 4, 3)), Tensor((6,)), Tensor((2, 6, 3))),
        """
        def program(x: "float32[2, 4, 5]", w: "float32[6, 4, 3]", b: "float32[6]", dy: "float32[2, 6, 3]"):
            t0 = prims.convolution(x, w, b, (1,), (0,), (1,), False, (0,), 1)  # float32[2, 6, 3]
            (t1, _, _) = prims.convolution_backward(dy, x, w, (1,), (0,), (1,), False, (0,), 1, (True, False, False))  # float32[2, 4, 5]
            (_, t2, t3) = prims.convolution_backward(dy, x, w, (1,), (0,), (1,), False, (0,), 1, (False, True, True))  # float32[6, 4, 3], float32[6]
            return (t1, t2, t3)
        """,  # noqa: E501
    )


def test_the_pullback_of_an_embedding_is_one_operation():
    def program(i, w, dy):
        _, pullback = vjp_rule[prims.embedding](i, w, 3)
        return pullback(dy)[1]

    assert_text(
        trace_of(program, Tensor((2, 5), "int64"), Tensor((7, 4)), Tensor((2, 5, 4))),
        """
        def program(i: "int64[2, 5]", w: "float32[7, 4]", dy: "float32[2, 5, 4]"):
            t0 = prims.embedding(i, w, 3, False)  # float32[2, 5, 4]
            t1 = prims.embedding_backward(dy, i, 7, 3, False)  # float32[7, 4]
            return t1
        """,
    )


CONVOLUTION_REFUSALS = [
    ((4,), (6, 4, 3), ONE, r"needs an input \(n, c, d_1, ...\) and a weight of equally many dimensions"),
    ((2, 4, 10), (6, 3, 3), ONE, r"c // groups = 4 and o a multiple of 1, got float32\[6, 3, 3\]"),
    ((2, 4, 10), (6, 4, 11), ONE, "is smaller than the weight"),
    ((2, 4, 10), (6, 4, 3), ((0,), (0,), (1,), False, (0,), 1), "needs a stride of 1 numbers, each at least 1"),
    ((2, 4, 10), (6, 4, 3), ((1,), (0, 0), (1,), False, (0,), 1), "needs a padding of 1 numbers"),
    ((2, 4, 10), (6, 4, 3), ((1,), (0,), (1,), False, (0,), 3), "in 3 groups needs a number of channels"),
    ((2, 4, 10), (6, 4, 3), ((1,), (0,), (1,), True, (0,), 1), r"transposed, needs a weight .* with c = 4"),
    ((2, 4, 1), (4, 6, 1), ((1,), (2,), (1,), True, (0,), 1), "would have the length -3"),
]


@pytest.mark.parametrize(("a", "weight", "parameters", "words"), CONVOLUTION_REFUSALS, ids=str)
def test_convolutions_that_do_not_fit_are_refused(a, weight, parameters, words):
    with pytest.raises(ShapeError, match=words):
        trace_of(lambda x, w: prims.convolution(x, w, None, *parameters), Tensor(a), Tensor(weight))


def test_windows_have_the_lengths_of_pytorch():
    x = Tensor((2, 3, 7, 8))
    pooled = lambda ceil: lambda a: prims.max_pool(a, (3, 2), (2, 2), (1, 0), (1, 1), ceil)[1]  # noqa: E731
    assert shape_of(pooled(False), x) == (2, 3, 4, 4)
    assert shape_of(lambda a: prims.avg_pool(a, (3, 3), (2, 2), (0, 0), True, True, None), x) == (2, 3, 3, 4)
    assert shape_of(lambda a: prims.adaptive_avg_pool(a, (1, 5)), x) == (2, 3, 1, 5)


def test_groups_are_rows_columns_or_summed_over():
    def shape(a, b):
        return shape_of(prims.grouped_mm, Tensor(a), Tensor(b), Tensor((5,), "int32"))

    assert shape((8, 2), (5, 2, 3)) == (8, 3)
    assert shape((5, 3, 2), (2, 8)) == (3, 8)
    assert shape((3, 8), (8, 2)) == (5, 3, 2)


X, LIST = Tensor((6, 7)), Tensor((5,), "int64")
REFUSALS = [
    (lambda x, i: prims.embedding(x, x), DTypeError, "embedding needs indices of an integer dtype"),
    (lambda x, i: prims.embedding(i, prims.sum(x, (0,))), ShapeError, r"embedding needs a weight of shape \(n, k\)"),
    (lambda x, i: prims.embedding(i, x, 6), ShapeError, r"embedding in float32\[6, 7\] has no row 6 as padding"),
    (lambda x, i: prims.embedding_backward(x, i, 3, -1, False), ShapeError, r"needs shapes \(..., k\) and \(...\)"),
    (lambda x, i: prims.one_hot(i, -1), ShapeError, "needs a number of classes, got -1"),
    (lambda x, i: prims.one_hot(x, 3), DTypeError, "one_hot needs indices of an integer dtype"),
    (lambda x, i: prims.extend(x, ((0, 0), (7, 0)), "reflect"), ShapeError, "in mode 'reflect' .* needs longer"),
    (lambda x, i: prims.extend(x, ((0, 0), (1, -1)), "circular"), ShapeError, "numbers that are not negative"),
    (lambda x, i: prims.extend(x, ((0, 0),), "circular"), ShapeError, "needs 2 pairs"),
    (lambda x, i: prims.extend(x, ((0, 0), (1, 1)), "mirror"), ValueError, "knows the modes"),
    (lambda x, i: prims.extend_backward(x, ((4, 4), (0, 0)), "circular"), ShapeError, "cannot have been lengthened"),
    (lambda x, i: prims.grouped_mm(x, x, i), ShapeError, r"grouped_mm needs shapes"),
    (lambda x, i: prims.max_pool(x, (2,), (1,), (2,), (1,), False), ShapeError, "paddings of at most half a window"),
    (lambda x, i: prims.max_pool(x, (9,), (1,), (0,), (1,), False), ShapeError, r"with windows \(9,\) .* is empty"),
    (lambda x, i: prims.avg_pool(x, (2,), (1, 1), (0,), False, True, None), ShapeError, "of one number of trailing"),
    (lambda x, i: prims.avg_pool(x, (2,), (1,), (0,), False, True, 0), ValueError, "divisor of 0"),
    (lambda x, i: prims.adaptive_avg_pool(x, (1, 2, 3)), ShapeError, "cannot have the lengths"),
    (lambda x, i: prims.attention(x, x, x, x, False, 1.0), ShapeError, r"attention needs a mask of shape \(6, 6\)"),
    (lambda x, i: prims.attention(x, x, prims.sum(x, (0,)), None, False, 1.0), ShapeError, "attention needs shapes"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "error", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_does_not_fit_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        trace_of(program, X, LIST)
