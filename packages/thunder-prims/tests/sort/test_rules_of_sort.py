"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_batching, check_rules

import thunder_prims as prims

A = np.random.default_rng(11).permutation(15).reshape(3, 5) / 7
ORDERED = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_rules_of_sorting_hold(name, dim, descending):
    check_rules(getattr(prims, name), A, dim, descending, True)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("largest", [False, True])
def test_rules_of_topk_hold(dim, largest):
    check_rules(prims.topk, A, 2, dim, largest, True)


@pytest.mark.parametrize("right", [False, True])
def test_searches_run_in_batches(right):
    check_batching(prims.searchsorted, np.array([1.0, 1.0, 1.0]), A, right)
    check_batching(prims.searchsorted, np.ones((3, 4)), A, right)
