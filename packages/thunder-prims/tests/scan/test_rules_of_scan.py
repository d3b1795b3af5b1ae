"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_rules, close, pulled_back, run

import thunder_prims as prims

A = np.random.default_rng(11).uniform(-2, 2, (3, 5))
NAMES = ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"]


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_rules_hold_along_any_dimension(name, dim):
    check_rules(getattr(prims, name), A, dim)


@pytest.mark.parametrize("name", NAMES)
def test_rules_hold_for_one_element(name):
    check_rules(getattr(prims, name), A[:, :1], 1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_rules_hold_for_complex_numbers(name):
    check_rules(getattr(prims, name), A + 1j * A[::-1], 1)


def test_cumprod_derives_where_elements_are_zero():
    a = A.copy()
    a[0, 0] = a[1, 2] = a[2, 1] = a[2, 3] = 0
    check_rules(prims.cumprod, a, 1)


def test_logcumsumexp_derives_where_exponentials_overflow_or_vanish():
    a = np.array([-np.inf, -1000.0, 1000.0, 1001.0])
    _, (gradient, _) = run(pulled_back(prims.logcumsumexp, 2), a, 0, np.array([1.0, 1.0, 1.0, 1.0]))
    share = 1 / (1 + np.e)
    close(gradient, [0.0, 1.0, 1 + share, 1 - share])
