"""Rules written with get_grad and put_grad, and in two halves."""

import numpy as np
import pytest
import toy_language as toy
from toy_language import joint_of, run, texts

from thunder_autograd import (
    VJPDual,
    get_grad,
    put_grad,
    put_grads,
    register_augmented_forward,
    register_backward,
    register_grad,
    vjp_rule,
)
from thunder_ir import Symbol, ThunderError


@pytest.fixture
def scaled():
    symbol = Symbol("scaled", "toy", meta=lambda a, b=None, factor=1.0: a.like(), language=toy.toy)
    toy.RUNS[symbol] = lambda a, b=None, factor=1.0: a * factor
    yield symbol
    vjp_rule.remove(symbol)


def test_a_rule_puts_gradients(scaled):
    @register_grad(scaled)
    def rule(a, b=None, factor=1.0):
        y = toy.mul(a, b)
        g = get_grad(y)
        put_grads((a, b), (g * b, g * a))
        return y

    joint = joint_of(lambda x, y: scaled(x, y) * 1.0, (2,), (2,))
    _, gradients = run(joint, np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.ones(2))

    np.testing.assert_array_equal(gradients[0], [3.0, 4.0])
    np.testing.assert_array_equal(gradients[1], [1.0, 2.0])
    assert texts(joint)[0] == "mul"


def test_gradients_put_twice_are_added(scaled):
    def rule(a):
        y = toy.mul(a, 5.0)
        put_grad(a, get_grad(y) * 2.0)
        put_grad(a, get_grad(y) * 3.0)
        return y

    register_grad(scaled, rule)
    _, gradients = run(joint_of(lambda x: scaled(x), (2,)), np.ones(2), np.ones(2))

    np.testing.assert_array_equal(gradients[0], [5.0, 5.0])


def test_gradients_of_keyword_arguments_can_be_put(scaled):
    @register_grad(scaled)
    def rule(a, b=None, factor=1.0):
        y = toy.mul(toy.mul(a, b), factor)
        g = get_grad(y) * factor
        put_grads((a, b), (g * b, g * a))
        return y

    joint = joint_of(lambda x, y: scaled(x, factor=2.0, b=y), (2,), (2,))
    _, gradients = run(joint, np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.ones(2))

    np.testing.assert_array_equal(gradients[0], [6.0, 8.0])
    np.testing.assert_array_equal(gradients[1], [2.0, 4.0])


def test_a_rule_of_any_arguments_gives_gradients_of_all_of_them_in_order(scaled):
    @vjp_rule(scaled)
    def rule(*args, **kwargs):
        (a,), b = args, kwargs["b"]
        return toy.mul(a, b), lambda g: (g * b, g * 0.0, g * a)

    joint = joint_of(lambda x, y: scaled(x, factor=2.0, b=y), (2,), (2,))
    _, gradients = run(joint, np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.ones(2))

    np.testing.assert_array_equal(gradients[0], [3.0, 4.0])
    np.testing.assert_array_equal(gradients[1], [1.0, 2.0])


def test_get_grad_wants_a_result(scaled):
    @register_grad(scaled)
    def rule(a):
        put_grad(a, get_grad(a))
        return toy.mul(a, 1.0)

    with pytest.raises(ThunderError, match="no result of the operation"):
        joint_of(lambda x: scaled(x), (2,))


def test_two_halves_make_a_rule(scaled):
    @register_augmented_forward(scaled)
    def forward(a):
        return VJPDual(toy.mul(a, a), (a,))

    @register_backward(scaled)
    def backward(a, g):
        return g * a * 2.0

    _, gradients = run(joint_of(lambda x: scaled(x), (2,)), np.array([3.0, 4.0]), np.ones(2))

    np.testing.assert_array_equal(gradients[0], [6.0, 8.0])
