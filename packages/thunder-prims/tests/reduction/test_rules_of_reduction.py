"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_rules, check_vjp, close, pulled_back, run

import thunder_prims as prims

GENERATOR = np.random.default_rng(11)
A = GENERATOR.uniform(-2, 2, (2, 3, 4))
COMPLEX = A + 1j * GENERATOR.uniform(-2, 2, A.shape)
DIMS = [(0,), (2,), (0, 2), (1, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
def test_rules_hold_along_any_dimensions(name, dims):
    check_rules(getattr(prims, name), A, dims)


@pytest.mark.parametrize("dims", DIMS[:-1], ids=str)
@pytest.mark.parametrize("correction", [0, 1, 0.5])
@pytest.mark.parametrize("name", ["var", "std", "var_mean"])
def test_rules_of_spread_hold(name, dims, correction):
    check_rules(getattr(prims, name), A, dims, correction)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_rules_hold_for_complex_numbers(name):
    check_rules(getattr(prims, name), COMPLEX, (0, 2))


@pytest.mark.parametrize("name", ["var", "std", "var_mean"])
def test_rules_of_spread_hold_for_complex_numbers(name):
    check_rules(getattr(prims, name), COMPLEX, (0, 2), 1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dim", [0, 2, None])
def test_places_are_found_in_batches(name, dim):
    check_rules(getattr(prims, name), A, dim)


def test_prod_derives_where_elements_are_zero():
    a = A.copy()
    a[0, 0, 0] = a[1, 1, 1] = a[1, 1, 2] = 0
    for dims in [(2,), (0, 2)]:
        check_rules(prims.prod, a, dims)


def test_equal_extrema_share_the_gradient():
    a = np.array([1.0, 3.0, 3.0])
    _, (gradient, *_) = run(pulled_back(prims.amax, 2), a, (0,), np.array(1.0))
    close(gradient, [0.0, 0.5, 0.5])


def test_std_of_equal_elements_has_gradient_zero():
    _, (gradient, *_) = run(pulled_back(prims.std, 3), np.ones(3), (0,), 1, np.array(1.0))
    close(gradient, [0.0, 0.0, 0.0])


def test_gradients_of_empty_tensors_are_empty():
    for name in ("sum", "prod"):
        check_vjp(getattr(prims, name), np.zeros((2, 0)), (1,))
