"""Derivatives of a sample of PyTorch's own database, of both orders. tools/gradients_sweep.py runs all of it."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import gradients_sweep  # noqa: E402
import opinfo  # noqa: E402

DIFFERENTIABLE = [op for op in opinfo.chosen([]) if op.supports_autograd and torch.float64 in op.dtypes]
REFUSED = {  # they return what has a shape that depends on values, or another layout
    "masked_select", "sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse", "tensor_split", "repeat_interleave",
}  # fmt: skip
OFTEN_USED = (
    "nn.functional.dropout", "nn.functional.conv2d", "nn.functional.linear", "nn.functional.layer_norm",
    "nn.functional.scaled_dot_product_attention", "nn.functional.cross_entropy", "nn.functional.batch_norm",
    "index_put", "where", "cat",
)  # fmt: skip


@pytest.mark.parametrize(
    "op",
    [op for op in DIFFERENTIABLE[::18] if opinfo.named(op) not in REFUSED] + opinfo.chosen(list(OFTEN_USED)),
    ids=opinfo.named,
)
def test_derivatives_are_those_of_eager_and_of_finite_differences(op):
    row = gradients_sweep.Sweep(samples=2, elements=100).row(op)
    outcome = row.outcome(gradients_sweep.CHECKS)
    assert outcome == "right" or not row.samples, (outcome, row.first)


def test_the_page_says_what_went_wrong():
    row = gradients_sweep.Row("some.op", "opaque", samples=1, first="gradients: AssertionError: a|b")
    row.found["gradients"]["wrong"] += 1
    page = gradients_sweep.table([row], "the command")
    assert "| `some.op` | opaque | 0/1 wrong | – | – | – | gradients: AssertionError: a\\|b |" in page
    assert "- first order: 1 wrong of 1" in page


class Doubled(torch.autograd.Function):
    """The sine, with twice its derivative."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a.sin()

    @staticmethod
    def backward(ctx, dy):
        return dy * 2 * ctx.saved_tensors[0].cos()


@pytest.mark.parametrize(
    ("wrong", "outcome"),
    [(Doubled.apply, "wrong"), (lambda a: a.detach().sin(), "detached"), (lambda a: a.sin().item(), "raised")],
)
def test_what_is_wrong_is_told(wrong, outcome):
    (op,) = opinfo.chosen(["sin"])
    sweep = gradients_sweep.Sweep(samples=1)
    sweep.compile = lambda function: wrong
    assert sweep.row(op).found["gradients"] == {outcome: 1}
