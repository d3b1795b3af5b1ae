"""Embeddings that renormalise their weight in place, and those whose gradient is sparse."""

import copy

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from thunder_frontend import jit

INDICES = torch.tensor([[0, 1], [3, 1]])
MAKE = {
    "embedding": lambda: nn.Embedding(5, 3, max_norm=0.5),
    "embedding by another norm": lambda: nn.Embedding(5, 3, max_norm=0.5, norm_type=1.0, padding_idx=1),
    "sparse embedding": lambda: nn.Embedding(5, 3, padding_idx=3, sparse=True),
    "renormalised sparse embedding": lambda: nn.Embedding(5, 3, max_norm=0.5, sparse=True),
    "bag": lambda: nn.EmbeddingBag(5, 3, max_norm=0.5),
    "sparse bag": lambda: nn.EmbeddingBag(5, 3, mode="sum", max_norm=0.5, sparse=True),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("as_argument", [False, True], ids=["module", "argument"])
def test_weights_and_gradients_are_those_of_eager(name, as_argument):
    torch.manual_seed(0)
    expected = MAKE[name]()
    found = copy.deepcopy(expected)
    compiled = jit(lambda module, indices: module(indices)) if as_argument else jit(found)
    for indices in (INDICES, INDICES.t(), INDICES):
        result = compiled(found, indices) if as_argument else compiled(indices)
        torch.testing.assert_close(result, expected(indices))
        torch.testing.assert_close(found.weight, expected.weight)
        result.exp().sum().backward()
        expected(indices).exp().sum().backward()
        assert found.weight.grad.layout is expected.weight.grad.layout
        torch.testing.assert_close(found.weight.grad.to_dense(), expected.weight.grad.to_dense())


def test_what_reads_a_renormalised_weight_later_sees_it():
    def program(indices, weight):
        return weight * 2, F.embedding(indices, weight, max_norm=0.1), weight * 3

    found, expected = (torch.arange(6.0).reshape(3, 2).requires_grad_() for _ in range(2))
    indices = torch.tensor([1, 2])
    torch.testing.assert_close(jit(program)(indices, found), program(indices, expected))
    torch.testing.assert_close(found, expected)


def test_optimizers_of_sparse_gradients_train_compiled_embeddings():
    expected = nn.Embedding(6, 3, sparse=True)
    found = copy.deepcopy(expected)
    for module, run in ((expected, expected), (found, jit(found))):
        optimizer = torch.optim.SparseAdam(module.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            run(INDICES).pow(2).sum().backward()
            optimizer.step()
    torch.testing.assert_close(found.weight, expected.weight)


@pytest.mark.parametrize("sparse", [0, 1, None, "yes"])
def test_what_says_whether_gradients_are_sparse_is_true_or_false(sparse):
    compiled = jit(lambda index, weight: F.embedding(index, weight, sparse=sparse))
    with pytest.raises(TypeError, match="'sparse' .*must be bool"):
        compiled(torch.tensor([0, 1]), torch.ones(3, 2))
