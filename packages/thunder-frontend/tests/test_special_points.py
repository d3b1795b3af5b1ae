"""Gradients where functions have kinks, ties or poles: eager's choice among the slopes, in each way to ask for them."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from versions import needs_torch

from thunder_frontend import jit

INF = float("inf")
KINKS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.0, 3.0, 6.0, -3.0)


def values(*numbers):
    return (torch.tensor(numbers),)


def pairs(*numbers):
    """All pairs of the numbers."""
    row = torch.tensor(numbers)
    return row.repeat_interleave(len(numbers)), row.repeat(len(numbers))


CONSTANT_ROWS = (torch.tensor([[1.0, 2.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0]]),)

POINTS = {
    "relu": (F.relu, values(*KINKS)),
    "relu6": (F.relu6, values(*KINKS)),
    "relu6 in place": (lambda x: F.relu6(x * 2, inplace=True), values(*KINKS)),
    "hardtanh": (F.hardtanh, values(*KINKS)),
    "hardtanh with bounds": (lambda x: F.hardtanh(x, -2.0, 1.5), values(*KINKS)),
    "hardsigmoid": (F.hardsigmoid, values(*KINKS)),
    "hardswish": (F.hardswish, values(*KINKS, INF, -INF)),
    "hardshrink": (F.hardshrink, values(*KINKS)),
    "softshrink": (F.softshrink, values(*KINKS)),
    "threshold": (lambda x: F.threshold(x, 1.0, 20.0), values(*KINKS)),
    "leaky_relu": (F.leaky_relu, values(*KINKS)),
    "elu": (F.elu, values(*KINKS)),
    "elu with alpha": (lambda x: F.elu(x, 2.0), values(*KINKS)),
    "celu": (F.celu, values(*KINKS)),
    "celu with alpha": (lambda x: F.celu(x, 2.0), values(*KINKS)),
    "selu": (F.selu, values(*KINKS)),
    "logsigmoid": (F.logsigmoid, values(*KINKS)),
    "cross entropy of logits": (
        lambda x: F.binary_cross_entropy_with_logits(x, x.detach().clamp(0, 1), reduction="none"), values(*KINKS)
    ),
    "cross entropy of weighted logits": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor(2.0), reduction="none"),
        pairs(0.0, 1.0, 0.5)
    ),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), pairs(0.0, 1.0, 0.5, INF)),
    "smooth_l1_loss, not smoothed": (lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), pairs(0.0, 1.0, -2.0)),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, reduction="none"), pairs(0.0, 1.0, 0.5, INF)),
    "l1_loss": (lambda x, y: F.l1_loss(x, y), pairs(0.0, 1.0, -2.0)),
    "attention to nothing": (
        lambda x: F.scaled_dot_product_attention(x, x, x, torch.tensor([[0.0, 1.0], [-INF, -INF]])),
        (torch.tensor([[[1.0, 2.0, 3.0], [0.5, -1.0, 0.0]]]),)
    ),
    "clamp": (lambda x: x.clamp(0, 1), values(*KINKS)),
    "abs": (torch.abs, values(*KINKS)),
    "acosh": (torch.acosh, values(1.0, 1.5, 2.0, -2.0)),
    "fmax": (torch.fmax, pairs(0.0, 1.0, -1.0, float("nan"))),
    "fmin": (torch.fmin, pairs(0.0, 1.0, -1.0, float("nan"))),
    "maximum": (torch.maximum, pairs(0.0, 1.0, -1.0)),
    "logaddexp": (torch.logaddexp, pairs(0.0, 1.0, -1.0)),
    "logaddexp2": (torch.logaddexp2, pairs(0.0, 1.0, -1.0)),
    "remainder": (torch.remainder, pairs(1.0, 0.1, -0.3, 2.0)),
    "fmod": (torch.fmod, pairs(1.0, 0.1, -0.3, 2.0)),
    "pow": (torch.pow, pairs(0.0, 1.0, 2.0, -1.0)),
    "pow of nothing": (lambda x: x**0 + x**2, values(0.0, 1.0, 2.0)),
    "var of too few": (lambda x: torch.var(x, 1, correction=6), CONSTANT_ROWS),
    "std": (lambda x: torch.std(x, 1), CONSTANT_ROWS),
    "std_mean": (lambda x: torch.cat(torch.std_mean(x, 1)), CONSTANT_ROWS),
    "norm below 1": (lambda x: torch.linalg.vector_norm(x, 0.5, 1), CONSTANT_ROWS),
    "norm of order 3": (lambda x: torch.linalg.vector_norm(x, 3, 1), CONSTANT_ROWS),
    "norm of order -1": (lambda x: torch.linalg.vector_norm(x, -1, 1), CONSTANT_ROWS),
    "amax": (lambda x: torch.amax(x, 1), CONSTANT_ROWS),
    "amax of NaN": (lambda x: torch.amax(x, 1), (torch.tensor([[1.0, float("nan")], [2.0, 2.0]]),)),
}  # fmt: skip


# Eager differentiates the first once only, and gives NaN where the second derivative of a norm has none.
ONCE = {"hardsigmoid", "norm below 1", "norm of order 3", "norm of order -1"}
ONCE_IN_SOME_VERSIONS = {"attention to nothing"}
"""What eager differentiates twice unless it takes a kernel that has one derivative only."""


def differentiates_again(name):
    if name not in ONCE_IN_SOME_VERSIONS:
        return name not in ONCE
    try:
        outside(*POINTS[name], True)
    except RuntimeError as error:
        assert "is not implemented" in str(error)
        return False
    return True


def weights(y):
    return torch.arange(1.0, y.numel() + 1).reshape(y.shape) * 0.25


def outside(function, inputs, again):
    """The gradients, then those that have gradients, and the gradients of these."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    y = function(*leaves)
    plain = torch.autograd.grad(y, leaves, weights(y))
    y = function(*leaves)
    first = torch.autograd.grad(y, leaves, weights(y), create_graph=True)
    return *plain, *first, *(second(first, leaves) if again else ())


def second(first, leaves):
    """The gradients of gradients; zero where a derivative is none of the inputs."""
    seeds = [(g, weights(g)) for g in first if g.requires_grad]
    if not seeds:
        return [torch.zeros_like(x) for x in leaves]
    ends, cotangents = zip(*seeds, strict=True)
    return torch.autograd.grad(ends, leaves, cotangents, materialize_grads=True)


def inside(function, again):
    def program(*inputs):
        leaves = [x.detach().requires_grad_() for x in inputs]
        y = function(*leaves)
        first = torch.autograd.grad(y, leaves, weights(y), create_graph=True)
        return *first, *(second(first, leaves) if again else ())

    return program


def by_transform(function):
    def program(*inputs):
        def loss(*values):
            y = function(*values)
            return (y * weights(y)).sum()

        return torch.func.grad(loss, tuple(range(len(inputs))))(*inputs)

    return program


def gives_gradients_to_nan(function):
    """Whether eager gives the gradient of a number that it chose to the NaN beside it, too, as PyTorch 2.14 does."""
    number, nan = torch.ones(()).requires_grad_(), torch.tensor(float("nan"), requires_grad=True)
    return torch.autograd.grad(function(number, nan), (number, nan)) == (torch.ones(()), torch.ones(()))


@pytest.mark.parametrize("name", POINTS)
def test_gradients_at_special_points_are_eagers(name):
    function, inputs = POINTS[name]
    if name in ("fmax", "fmin") and gives_gradients_to_nan(function):
        pytest.skip("this PyTorch gives the gradient of a number to the NaN beside it, too")
    again = differentiates_again(name)
    found, expected = outside(jit(function), inputs, again), outside(function, inputs, again)
    torch.testing.assert_close(found, expected, equal_nan=True)
    for program in (inside(function, again), by_transform(function)):
        torch.testing.assert_close(jit(program)(*inputs), program(*inputs), equal_nan=True)


@needs_torch(2, 13, "has no derivative of it")
def test_nextafter_has_the_slope_of_what_it_starts_from_unless_both_are_equal():
    a, b = [t.requires_grad_() for t in pairs(0.0, 1.0, -1.0)]
    expected = torch.autograd.grad(torch.nextafter(a, b).sum(), (a, b))
    assert torch.equal(torch.autograd.grad(jit(torch.nextafter)(a, b).sum(), (a, b))[0], expected[0])


def test_logit_has_infinite_slopes_at_its_ends():
    x = torch.tensor([0.0, 0.25, 0.5, 1.0], requires_grad=True)
    for function in (torch.logit, lambda x: torch.logit(x, 1e-3)):
        expected = torch.autograd.grad(function(x).sum(), x)
        torch.testing.assert_close(torch.autograd.grad(jit(function)(x).sum(), x), expected)
