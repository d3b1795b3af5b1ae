"""Embeddings that are trained by the default executors, kernels included where they can run."""

import pytest
import torch
import torch.nn.functional as F

import thunder
from thunder_executors_llvm import executor as kernels


@pytest.mark.parametrize(
    "options", [{}, {"padding_idx": 3}, {"padding_idx": -1}, {"scale_grad_by_freq": True}], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_training_of_an_embedding_has_the_bits_of_eager_and_raises_what_eager_raises(dtype, options):
    table = torch.randn(1030, 128, dtype=dtype, requires_grad=True)
    tokens = torch.randint(0, 1030, (8, 64))
    tokens[0, :50] = 3

    def scaled(table, tokens):
        return F.embedding(tokens, table, **options) * 8.0

    compiled = thunder.jit(scaled)
    cotangent = torch.randn(8, 64, 128).to(dtype)
    (expected,) = torch.autograd.grad(scaled(table, tokens), table, cotangent)
    (got,) = torch.autograd.grad(compiled(table, tokens), table, cotangent)
    assert torch.equal(got, expected)
    if kernels.missing() is None and not options.get("scale_grad_by_freq"):
        assert "embedding" not in str(thunder.last_backward_traces(compiled)[-1])
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(table, tokens + 1028)
