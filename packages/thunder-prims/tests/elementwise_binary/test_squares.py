"""A product of a tensor with itself has one derivative."""

import numpy as np
import pytest
from prims_machine import close, run

import thunder_prims as prims
from thunder_autograd import grad_transform_on_trace, jvp_rule, vjp_rule
from thunder_ir import Tensor, trace_of

A = np.array([0.5, -1.5, 2.0])


@pytest.mark.parametrize("a", [A, A + 1j * A[::-1]], ids=["real", "complex"])
def test_its_rules_give_twice_the_factor(a):
    dy = a[::-1].copy()
    gradients = run(lambda x, d: vjp_rule[prims.mul](x, x)[1](d), a, dy)
    close(gradients[0], 2 * dy * np.conj(a))
    assert len(gradients) == 1
    _, tangent = run(lambda x, d: jvp_rule[prims.mul](x, x, d, d), a, dy)
    close(tangent, 2 * dy * a)


def test_its_gradient_is_computed_without_a_sum():
    joint = grad_transform_on_trace(trace_of(lambda x: x * x, Tensor((3,), requires_grad=True)))
    assert [b.symbol.name for b in joint.bound_symbols] == ["mul", "mul", "mul"]


def test_products_of_two_tensors_have_two_derivatives():
    gradients = run(lambda x, y, d: vjp_rule[prims.mul](x, y)[1](d), A, A + 1, A)
    close(gradients, (A * (A + 1), A * A))
