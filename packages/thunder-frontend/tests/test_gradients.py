"""Gradients as functions."""

import pytest
import torch

from thunder_frontend import grad, jit, value_and_grad


def test_gradients_of_a_compiled_function():
    compiled = jit(lambda a, b: (a * b).sin())
    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    torch.testing.assert_close(grad(compiled)(a, b), ((a * b).cos() * b, (a * b).cos() * a))


def test_gradients_of_a_modules_parameters():
    module = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    value, gradients = value_and_grad(module)(x)
    torch.testing.assert_close(value, module(x))
    torch.testing.assert_close(gradients, torch.autograd.grad(module(x).sum(), list(module.parameters())))


def test_nothing_to_differentiate_is_refused():
    with pytest.raises(TypeError, match="nothing requires grad"):
        grad(lambda x: x)(torch.ones(2))
