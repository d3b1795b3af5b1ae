"""Matrix products and einsum of the core language against PyTorch."""

import pytest
import torch
from lang_against_torch import assert_same, sample

import thunder_lang as lang

SHAPES = [(3,), (4,), (2, 3), (3, 4), (5, 2, 3), (5, 3, 4), (1, 3, 4), (6, 1, 2, 3), (3, 1), (0, 3), (3, 0), ()]


@pytest.mark.parametrize("a", SHAPES, ids=str)
@pytest.mark.parametrize("b", SHAPES, ids=str)
def test_matmul_matches(a, b):
    assert_same(lang.matmul, torch.matmul, sample(torch.float32, a), sample(torch.float32, b))


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("i,j->ij", (2,), (3,)),
    ("ij->", (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("b...i,b...i->b...", (2, 4, 3), (2, 4, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("i,i->i", (3,), (3,)),
    ("ij,j->", (2, 3), (3,)),
    ("ij,jk->ki", (2, 1), (3, 4)),
    ("iij->j", (3, 3, 2)),
    ("a,ab,abc,c->", (2,), (2, 3), (2, 3, 4), (4,)),
    ("...->...", (2, 3)),
    ("ij,jk->ii", (2, 3), (3, 4)),
    ("ij,jk->il", (2, 3), (3, 4)),
    ("ij", (2,)),
    ("i1", (2, 3)),
    ("ij,jk", (2, 3)),
    ("ij,jk->ik", (2, 3), (4, 5)),
    (" ij , jk -> ik ", (2, 3), (3, 4)),
    ("...i->...", (2, 3)),
    ("i...->...", (2, 3)),
    ("Ab,bC->CA", (2, 3), (3, 4)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=str)
def test_einsum_matches(case):
    equation, *shapes = case
    args = [sample(torch.float32, shape, seed=i) for i, shape in enumerate(shapes)]
    assert_same(lambda *a: lang.einsum(equation, *a), lambda *a: torch.einsum(equation, *a), *args)
