"""Reductions and norms of the core language against PyTorch."""

import pytest
import torch
from lang_against_torch import assert_same, sample

import thunder_lang as lang

REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "all",
    "any",
    "var",
    "std",
    "logsumexp",
    "var_mean",
]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dim", [(), 0, -1, 3, (0, 2), (0, 0)], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_match(name, dtype, dim, keepdim):
    if name in ("argmax", "argmin", "prod") and isinstance(dim, tuple) and dim:
        pytest.skip("PyTorch takes one dimension here")
    if name == "logsumexp" and dim == ():
        pytest.skip("PyTorch wants a dimension here")
    x = sample(dtype, (2, 3, 4))
    x = x * torch.arange(1, 25).reshape(2, 3, 4).to(dtype) if dtype not in (torch.bool, torch.uint8) else x
    if name in ("argmax", "argmin") and dtype in (torch.bool, torch.uint8, torch.int64):
        x = torch.arange(24).reshape(2, 3, 4).to(dtype)  # no two alike, or PyTorch picks any
    arguments = {} if dim == () else {"dim": dim, "keepdim": keepdim}
    assert_same(lambda x: getattr(lang, name)(x, **arguments), lambda x: getattr(torch, name)(x, **arguments), x)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "argmax", "all", "any", "logsumexp"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("dim", [None, 0, -1], ids=str)
def test_reductions_of_nothing_match(name, shape, dim):
    if dim is None and name in ("amax", "logsumexp"):
        pytest.skip("PyTorch wants a dimension here")
    arguments = {} if dim is None else {"dim": dim}
    assert_same(
        lambda x: getattr(lang, name)(x, **arguments),
        lambda x: getattr(torch, name)(x, **arguments),
        torch.empty(shape),
    )


@pytest.mark.parametrize("ord", [0, 1, 2, 3, 2.5, float("inf"), -float("inf"), -1])
@pytest.mark.parametrize("dim", [None, 1, (0, 2)], ids=str)
def test_norms_match(ord, dim):
    x = sample(torch.float32, (2, 3, 4)) + 0.5
    assert_same(lambda x: lang.norm(x, ord, dim), lambda x: torch.linalg.vector_norm(x, ord, dim), x)
