"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_batching, check_jvp, check_rules, check_vjp, close, pulled_back, run

import thunder_prims as prims
from thunder_autograd import jvp_rule
from thunder_ir import MissingRuleError, ShapeError, Tensor, trace_of

GENERATOR = np.random.default_rng(10)
ANYWHERE = GENERATOR.uniform(-2, 2, (2, 3))
POSITIVE = GENERATOR.uniform(0.3, 3, (2, 3))
OPEN_UNIT = GENERATOR.uniform(0.05, 0.95, (2, 3))

CASES = (
    [
        (name, ANYWHERE)
        for name in "erf erfc erfcx i0 i0e i1 i1e bessel_j0 bessel_j1 log_ndtr sinc spherical_bessel_j0".split()
    ]
    + [(name, POSITIVE) for name in "bessel_y0 bessel_y1 digamma lgamma modified_bessel_k0 modified_bessel_k1".split()]
    + [(name, POSITIVE) for name in ("scaled_modified_bessel_k0", "scaled_modified_bessel_k1")]
    + [(name, OPEN_UNIT) for name in ("erfinv", "erfcinv", "ndtri")]
)


@pytest.mark.parametrize(("name", "values"), CASES, ids=[name for name, _ in CASES])
def test_rules_hold(name, values):
    check_rules(getattr(prims, name), values, tolerance=1e-4)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_rules_of_polygamma_hold(order):
    check_rules(prims.polygamma, POSITIVE, order, tolerance=1e-4)


def test_polygamma_has_no_negative_order():
    with pytest.raises(ShapeError, match="polygamma needs an order n that is not negative, got -1"):
        trace_of(lambda x: prims.polygamma(x, -1), Tensor((2,)))


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_rules_of_products_with_logarithms_hold(name):
    check_rules(getattr(prims, name), ANYWHERE, POSITIVE)
    check_rules(getattr(prims, name), ANYWHERE, 1.5)
    check_rules(getattr(prims, name), 1.5, POSITIVE)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_zero_times_the_logarithm_of_zero_has_gradient_zero(name):
    b = np.array([0.0 if name == "xlogy" else -1.0, 2.0])
    _, (by_a, _) = run(pulled_back(getattr(prims, name), 2), np.zeros(2), b, np.ones(2))
    assert by_a[0] == 0 and by_a[1] > 0


@pytest.mark.parametrize("name", ["zeta", "igamma", "igammac"])
def test_rules_hold_for_the_second_argument(name):
    check_vjp(getattr(prims, name), 2.5, POSITIVE)
    check_jvp(getattr(prims, name), 2.5, POSITIVE)
    check_batching(getattr(prims, name), POSITIVE + 1, POSITIVE)


@pytest.mark.parametrize("name", ["zeta", "igamma", "igammac"])
def test_a_wanted_derivative_for_the_first_argument_is_refused(name):
    symbol = getattr(prims, name)

    def program(a, b, dy):
        return pulled_back(symbol, 2)(a, b, dy)[1]

    with pytest.raises(MissingRuleError, match=f"{name} has no derivative with respect to its first argument"):
        trace_of(program, Tensor((2,), requires_grad=True), Tensor((2,)), Tensor((2,)))


@pytest.mark.parametrize("name", ["zeta", "igamma", "igammac"])
def test_a_tangent_of_the_first_argument_is_refused(name):
    with pytest.raises(MissingRuleError, match=f"{name} has no derivative with respect to its first argument"):
        run(lambda a, b: jvp_rule[getattr(prims, name)](a, b, a, None), POSITIVE, POSITIVE)


@pytest.mark.parametrize("name", ["zeta", "igamma", "igammac"])
def test_a_derivative_for_the_first_argument_that_nobody_asked_for_is_nan(name):
    _, (by_a, by_b) = run(pulled_back(getattr(prims, name), 2), POSITIVE + 1, POSITIVE, np.ones((2, 3)))
    assert np.isnan(by_a).all() and np.isfinite(by_b).all()


@pytest.mark.parametrize("symbol", [prims.i1, prims.i1e, prims.bessel_j1], ids=lambda s: s.name)
def test_functions_of_order_one_have_slope_one_half_at_zero(symbol):
    _, (gradient,) = run(pulled_back(symbol, 1), np.zeros(2), np.ones(2))
    close(gradient, np.full(2, 0.5), 1e-12)


@pytest.mark.parametrize("x", [0.0, 1e-8, 1e-3, 0.079, 0.08, 0.3])
def test_the_slope_of_sinc_is_accurate_near_zero(x):
    _, (gradient,) = run(pulled_back(prims.sinc, 1), np.array([x]), np.ones(1))
    z = np.pi * x
    by_series = (
        -np.pi * z * sum((-1) ** k * (2 * k + 2) * z ** (2 * k) / np.prod(np.arange(1.0, 2 * k + 4)) for k in range(9))
    )
    np.testing.assert_allclose(gradient[0], by_series, rtol=1e-11)
