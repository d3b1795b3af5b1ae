"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_batching, check_rules, close, pulled_back, run

import thunder_prims as prims

GENERATOR = np.random.default_rng(8)
A, B = GENERATOR.uniform(0.3, 3, (2, 2, 3))
SIGNED_A, SIGNED_B = A * [1, -1, 1], B * [1, -1, -1]
COMPLEX_A, COMPLEX_B = A + 1j * SIGNED_B, B - 1j * SIGNED_A
INTEGERS = GENERATOR.integers(1, 9, (2, 3))

DIFFERENTIABLE = (
    "add atan2 copysign div fmod hypot logaddexp logaddexp2 maximum minimum mul nextafter remainder sub"
).split()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rules_hold_for_two_tensors(name):
    check_rules(getattr(prims, name), SIGNED_A, SIGNED_B, second=name not in ("nextafter", "copysign"))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rules_hold_for_a_tensor_and_a_number(name):
    check_rules(getattr(prims, name), SIGNED_A, 1.75, second=name not in ("nextafter", "copysign"))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rules_hold_for_a_number_and_a_tensor(name):
    check_rules(getattr(prims, name), 1.75, SIGNED_B, second=name not in ("nextafter", "copysign"))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_rules_hold_for_complex_numbers(name):
    check_rules(getattr(prims, name), COMPLEX_A, COMPLEX_B)
    check_rules(getattr(prims, name), COMPLEX_A, 2.5)
    check_rules(getattr(prims, name), 1.5j, COMPLEX_B)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, B], ids=str)
def test_the_derivative_of_a_power_holds(exponent):
    check_rules(prims.pow, A, exponent)


def test_the_derivative_with_respect_to_the_exponent_holds():
    check_rules(prims.pow, 2.5, SIGNED_B)


def test_powers_have_finite_gradients_where_base_or_exponent_is_zero():
    base, exponent = np.array([0.0, 0.0, 0.0, 2.0]), np.array([0.0, 1.0, 2.0, 0.0])
    y, (by_base, by_exponent) = run(pulled_back(prims.pow, 2), base, exponent, np.ones(4))
    close(y, [1, 0, 0, 1])
    close(by_base, [0, 1, 0, 0])
    close(by_exponent, [0, 0, 0, np.log(2)])


@pytest.mark.parametrize("symbol", [prims.maximum, prims.minimum], ids=lambda s: s.name)
def test_equal_operands_of_an_extremum_share_the_gradient(symbol):
    a = np.array([1.0, 2.0, 3.0])
    _, (by_a, by_b) = run(pulled_back(symbol, 2), a, np.array([1.0, 5.0, 0.0]), np.ones(3))
    close(by_a + by_b, np.ones(3))
    assert by_a[0] == by_b[0] == 0.5


@pytest.mark.parametrize("symbol", [prims.logaddexp, prims.logaddexp2], ids=lambda s: s.name)
def test_the_gradient_of_a_sum_of_vanishing_exponentials_is_finite(symbol):
    nothing = np.array([-np.inf])
    _, gradients = run(pulled_back(symbol, 2), nothing, nothing, np.ones(1))
    close(gradients, (np.array([0.5]), np.array([0.5])))


EXACT = (
    "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor floor_divide gcd lcm trunc_divide"
).split()


@pytest.mark.parametrize("name", EXACT)
def test_integers_are_batched(name):
    check_batching(getattr(prims, name), INTEGERS, INTEGERS[::-1].copy())
    check_batching(getattr(prims, name), INTEGERS, 3)
