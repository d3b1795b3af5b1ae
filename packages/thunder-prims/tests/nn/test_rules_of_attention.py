"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_batching, check_jvp, check_second_derivative, check_vjp, run

import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_testing import reference

GENERATOR = np.random.default_rng(11)


def scores(query, key, mask, is_causal, scale):
    result = query @ np.swapaxes(key, -1, -2) * scale
    if mask is not None:
        result = np.where(mask, result, -np.inf) if mask.dtype == bool else result + mask
    return np.where(np.tril(np.ones(result.shape[-2:], bool)), result, -np.inf) if is_causal else result


@reference(prims.attention)
def attention(query, key, value, mask, is_causal, scale):
    result = scores(query, key, mask, is_causal, scale)
    weights = np.exp(result)
    total = weights.sum(-1)
    return weights @ value / np.where(total == 0, 1, total)[..., None], np.log(total)


@reference(prims.attention_backward)
def attention_backward(dy, query, key, value, mask, y, logarithm, is_causal, scale):
    weights = np.exp(
        scores(query, key, mask, is_causal, scale) - np.where(np.isinf(logarithm), 0, logarithm)[..., None]
    )
    dscores = weights * (dy @ np.swapaxes(value, -1, -2) - (dy * y).sum(-1)[..., None]) * scale
    return dscores @ key, np.swapaxes(dscores, -1, -2) @ query, np.swapaxes(weights, -1, -2) @ dy


def operands(*batch):
    return [GENERATOR.uniform(-2, 2, (*batch, *shape)) for shape in ((4, 3), (5, 3), (5, 2))]


MASKS = {
    "none": None,
    "bias": GENERATOR.uniform(-1, 1, (2, 4, 5)),
    "seen": GENERATOR.uniform(0, 1, (2, 4, 5)) > 0.4,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("is_causal", [False, True])
def test_rules_of_attention_hold(mask, is_causal):
    if mask is not None and mask.dtype == bool:
        mask[:, :, 0] = True
    arguments = (*operands(2), mask, is_causal, 0.6)
    check_vjp(prims.attention, *arguments)
    check_jvp(prims.attention, *arguments)
    check_batching(prims.attention, *operands(2), None, is_causal, 0.6)


def test_batches_of_single_matrices_run():
    check_batching(prims.attention, *operands(), MASKS["bias"][0], True, 0.6)


def decomposed(symbol):
    return lambda *arguments: symbol.decomposition(*arguments)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_decompositions_compute_the_same(mask):
    query, key, value = operands(2)
    arguments = (query, key, value, mask, True, 0.6)
    y, logarithm = run(prims.attention, *arguments)
    for have, want in zip(run(decomposed(prims.attention), *arguments), (y, logarithm), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)
    dy = GENERATOR.standard_normal(y.shape)
    backward = (dy, query, key, value, mask, y, logarithm, True, 0.6)
    for have, want in zip(
        run(decomposed(prims.attention_backward), *backward), run(prims.attention_backward, *backward), strict=True
    ):
        np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-14)


def test_a_query_that_sees_no_key_gets_nothing():
    mask = np.ones((2, 4, 5), bool)
    mask[1, 2] = False
    arguments = (*operands(2), mask, False, 1.0)
    y, logarithm = run(decomposed(prims.attention), *arguments)
    assert not y[1, 2].any() and logarithm[1, 2] == -np.inf
    check_vjp_of_result(*arguments)


def check_vjp_of_result(*arguments):
    def gradients(*inputs):
        (y, _), pullback = vjp_rule[prims.attention](*inputs)
        return pullback(y, None)

    assert all(np.isfinite(g).all() for g in run(gradients, *arguments))


class Composed:
    """``attention`` whose backward is differentiated through its decomposition."""

    name = id = "composed_attention"

    def __call__(self, *arguments):
        return prims.attention(*arguments)[0]


COMPOSED = Composed()


@vjp_rule(COMPOSED)
def composed_vjp(*arguments):
    y, logarithm = prims.attention(*arguments)

    def pullback(dy):
        return decomposed(prims.attention_backward)(dy, *arguments[:4], y, logarithm, *arguments[4:])

    return y, pullback


@pytest.mark.parametrize("is_causal", [False, True])
def test_second_derivatives_go_through_the_decomposition(is_causal):
    check_second_derivative(COMPOSED, *operands(2), None, is_causal, 0.6)
