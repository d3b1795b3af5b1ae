"""Gradients as functions."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from against_eager import same_as_eager

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


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: F.dropout2d(x, 0.5),
        lambda x: F.rrelu(x, training=True),
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
        lambda x: x * torch.rand_like(x) + torch.randn(4),
    ],
    ids=["dropout", "dropout2d", "rrelu", "attention", "rand_like"],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_inside_meet_the_random_numbers_of_the_forward(draw, create_graph):
    def function(x):
        y = draw(x * 2)
        (gradient,) = torch.autograd.grad(y.sin().sum(), x, create_graph=create_graph, retain_graph=True)
        return y.sum() + (gradient.sin() * draw(x)).sum()

    same_as_eager(function, torch.randn(2, 3, 4, 4, dtype=torch.float64, requires_grad=True))
