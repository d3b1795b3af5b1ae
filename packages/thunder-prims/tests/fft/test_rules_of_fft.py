"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_batching, check_jvp, check_rules, check_second_derivative, check_vjp

import thunder_prims as prims

GENERATOR = np.random.default_rng(11)
A = GENERATOR.uniform(-2, 2, (3, 4, 5))
NORMALIZATIONS = pytest.mark.parametrize("normalization", ["none", "root", "full"])
DIMS = pytest.mark.parametrize("dims", [(2,), (1,), (0, 2), (2, 1), (0, 1, 2)], ids=str)


@DIMS
@NORMALIZATIONS
@pytest.mark.parametrize("forward", [True, False])
def test_rules_of_complex_transforms_hold(dims, normalization, forward):
    check_rules(prims.fft_c2c, A + 1j * A[::-1], dims, normalization, forward)


@DIMS
@NORMALIZATIONS
def test_rules_of_transforms_of_reals_hold(dims, normalization):
    check_rules(prims.fft_r2c, A, dims, normalization)


@DIMS
@NORMALIZATIONS
def test_rules_of_transforms_to_reals_hold(dims, normalization):
    half = prims_half(A, dims)
    last_length = A.shape[dims[-1]]
    check_vjp(prims.fft_c2r, half, dims, normalization, last_length)
    check_jvp(prims.fft_c2r, half, dims, normalization, last_length)
    check_second_derivative(prims.fft_c2r, half, dims, normalization, last_length)
    check_batching(prims.fft_c2r, half, dims, normalization, last_length)


def prims_half(a, dims):
    shape = np.fft.rfftn(a, axes=dims).shape
    return GENERATOR.standard_normal(shape) + 1j * GENERATOR.standard_normal(shape)
