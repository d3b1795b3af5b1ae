import pytest

import thunder_prims as prims
from thunder_ir import DimensionError, DTypeError, ShapeError, Tensor, trace_of


def test_results_have_these_types():
    def program(x, y):
        return (
            prims.sort(x, 0, False, True), prims.argsort(x, 1, True, False), prims.topk(x, 2, 1, True, True),
            prims.searchsorted(y, x, False),
        )  # fmt: skip

    outputs = trace_of(program, Tensor((2, 3)), Tensor((5,))).outputs
    assert [p.type_string for p in outputs] == [
        "float32[2, 3]", "int64[2, 3]", "int64[2, 3]", "float32[2, 2]", "int64[2, 2]", "int64[2, 3]",
    ]  # fmt: skip


REFUSALS = [
    (
        lambda x: prims.topk(x, 4, 1, True, True),
        ShapeError,
        r"topk of float32\[2, 3\] .* needs k in 0..3",
    ),
    (lambda x: prims.sort(x, 2, False, False), DimensionError, "sort of .* has no dimension 2"),
    (lambda x: prims.searchsorted(x, prims.sum(x, (0,)), False), ShapeError, r"needs values of shape \(2, 3\)"),
    (lambda x: prims.searchsorted(prims.sum(x, (0, 1)), x, False), ShapeError, "needs a sequence to search in"),
]


@pytest.mark.parametrize(("program", "error", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_does_not_fit_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        trace_of(program, Tensor((2, 3)))


def test_complex_numbers_have_no_order():
    with pytest.raises(DTypeError, match=r"argsort of complex64\[3\] needs a dtype that is not complex"):
        trace_of(lambda x: prims.argsort(x, 0, False, False), Tensor((3,), "complex64"))
