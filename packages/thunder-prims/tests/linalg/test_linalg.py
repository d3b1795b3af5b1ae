import pytest

import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_ir import DTypeError, ShapeError, Tensor, trace_of
from thunder_testing import assert_text


def types(program, *examples):
    return [p.type_string for p in trace_of(program, *examples).outputs]


def test_products_have_these_types():
    assert types(lambda a, b: a @ b, Tensor((5, 2, 3)), Tensor((5, 3, 4))) == ["float32[5, 2, 4]"]
    linear = types(lambda a, w, b: prims.linear(a, w, b), Tensor((5, 2, 3)), Tensor((4, 3)), Tensor((4,)))
    assert linear == ["float32[5, 2, 4]"]


def test_factors_have_these_types():
    wide, square = Tensor((5, 2, 3), "complex64"), Tensor((5, 3, 3), "complex64")
    assert types(prims.svd, wide) == ["complex64[5, 2, 2]", "float32[5, 2]", "complex64[5, 2, 3]"]
    assert types(prims.qr, wide) == ["complex64[5, 2, 2]", "complex64[5, 2, 3]"]
    assert types(prims.eigh, square) == ["float32[5, 3]", "complex64[5, 3, 3]"]
    assert types(prims.slogdet, square) == ["complex64[5]", "float32[5]"]
    assert types(prims.det, square) == ["complex64[5]"]


REFUSALS = [
    (lambda a, b: prims.matmul(a, b), ShapeError, r"matmul needs shapes .*, got float32\[2, 3\]"),
    (lambda a, b: prims.matmul(a, prims.sum(a, (0,))), ShapeError, r"matmul needs matrices, got float32\[3\]"),
    (lambda a, b: prims.linear(a, b, None), ShapeError, r"linear needs shapes \(\.\.\., k\) and \(m, k\)"),
    (lambda a, b: prims.linear(a, a, prims.sum(a, (0,))), ShapeError, r"linear needs a bias of shape \(2,\)"),
    (lambda a, b: prims.solve(b, a), ShapeError, r"solve needs shapes .*, got float32\[4, 4\] and float32\[2, 3\]"),
    (lambda a, b: prims.triangular_solve(b, a, True, False, False), ShapeError, r"and \(\.\.\., k, n\), got"),
    (lambda a, b: prims.inverse(a), ShapeError, r"inverse needs square matrices, got float32\[2, 3\]"),
    (lambda a, b: prims.eigh(prims.sum(a, (0,))), ShapeError, r"eigh needs matrices, got float32\[3\]"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "error", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_does_not_fit_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        trace_of(program, Tensor((2, 3)), Tensor((4, 4)))


def test_dtypes_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match=r"matmul of float32\[2, 2\] and float64\[2, 2\] needs one dtype"):
        trace_of(prims.matmul, Tensor((2, 2)), Tensor((2, 2), "float64"))
    with pytest.raises(DTypeError, match=r"inverse of int64\[2, 2\] needs a floating-point or complex dtype"):
        trace_of(prims.inverse, Tensor((2, 2), "int64"))


def test_the_pullback_of_linear_is_two_products_of_matrices_and_a_sum():
    def program(x, w, b, dy):
        y, pullback = vjp_rule[prims.linear](x, w, b)
        return y, pullback(dy)

    assert_text(
        trace_of(program, Tensor((2, 5, 3)), Tensor((4, 3)), Tensor((4,)), Tensor((2, 5, 4))),
        """
        def program(x: "float32[2, 5, 3]", w: "float32[4, 3]", b: "float32[4]", dy: "float32[2, 5, 4]"):
            t0 = prims.linear(x, w, b)  # float32[2, 5, 4]
            t1 = prims.reshape(dy, (10, 4))  # float32[10, 4]
            t2 = prims.matmul(t1, w)  # float32[10, 3]
            t3 = prims.transpose(t1, (1, 0))  # float32[4, 10]
            t4 = prims.reshape(x, (10, 3))  # float32[10, 3]
            t5 = prims.matmul(t3, t4)  # float32[4, 3]
            t6 = prims.reshape(t2, (2, 5, 3))  # float32[2, 5, 3]
            t7 = prims.sum(t1, (0,))  # float32[4]
            return (t0, (t6, t5, t7))
        """,
    )
