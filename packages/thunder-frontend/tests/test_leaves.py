"""Leaves that a program makes: what autograd and the caller see of them is what eager shows."""

import pytest
import torch
from against_eager import same_as_eager

from thunder_frontend import jit


def randn(*shape, **options):
    return torch.randn(*shape, **options)


def returned_alone(x):
    return torch.zeros(3).requires_grad_()


def by_the_factory(x):
    leaf = torch.ones(3, requires_grad=True)
    return leaf, leaf * x, leaf.is_leaf, leaf.grad


def of_a_detached_input(x):
    leaf = x.detach().requires_grad_()
    return leaf, leaf * 2, torch.autograd.grad((leaf * leaf).sum(), leaf)[0]


def begun_and_ended(x):
    leaf = torch.zeros(3).requires_grad_()
    leaf.requires_grad_(False)
    return leaf.add_(1)


def written_unseen(x):
    leaf = (x * 2).detach().requires_grad_()
    part = leaf[1:]
    with torch.no_grad():
        part.add_(1)
    return leaf, part, leaf * x


def a_parameter_of_an_input(x):
    parameter = torch.nn.Parameter(x.detach())
    with torch.no_grad():
        parameter.add_(1)
    return parameter, parameter * 2, x + 1


def parameters_without_gradients(x):
    return torch.nn.Parameter(x.detach(), requires_grad=False), torch.nn.Parameter(x * 2, requires_grad=False)


def descends(x):
    weights = torch.zeros(3).requires_grad_()
    for _ in range(3):
        (gradient,) = torch.autograd.grad(((weights - x) ** 2).sum(), weights)
        with torch.no_grad():
            weights -= 0.1 * gradient
    return weights


def a_module_made_inside(x):
    module = torch.nn.Linear(3, 3)
    gradients = torch.autograd.grad(module(x).sum(), list(module.parameters()))
    return module.weight, module(x), [g.detach() for g in gradients]


def gradient_penalty(x):
    mixed = (x * 2).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(mixed.sin().sum(), mixed, create_graph=True)
    return (gradient.norm() - 1) ** 2 + x.sum()


def written(x):
    return torch.zeros(3).requires_grad_().add_(x)


def view_written(x):
    torch.zeros(3).requires_grad_()[1:].add_(1)


def of_integers(x):
    return torch.zeros(3, dtype=torch.int64).requires_grad_()


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        returned_alone, by_the_factory, of_a_detached_input, begun_and_ended, written_unseen, a_parameter_of_an_input,
        parameters_without_gradients, descends, a_module_made_inside, gradient_penalty, written, view_written,
        of_integers,
    ],
)  # fmt: skip
def test_leaves_made_inside_are_eagers(program, requires_grad):
    same_as_eager(program, randn(3, requires_grad=requires_grad))


def test_gradients_reach_a_leaf_made_inside():
    compiled = jit(by_the_factory)
    for _ in range(2):
        leaf, result, *_ = compiled(torch.tensor([1.0, 2.0, 3.0]))
        (result * 2).sum().backward()
        assert torch.equal(leaf.grad, torch.tensor([2.0, 4.0, 6.0]))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (torch.rand(3), torch.rand(3))[1],
        lambda x: (torch.nn.functional.dropout(x), torch.rand(3))[1],
        lambda x: (torch.zeros(3).normal_(), torch.rand(3))[1],
        lambda x: (torch.nn.init.xavier_normal_(torch.zeros(3, 3)), torch.rand(3))[1],
        lambda x: (torch.rand(3), x * 2)[1] * torch.nn.functional.dropout(x),
    ],
)
def test_numbers_drawn_for_nothing_are_drawn_all_the_same(program):
    same_as_eager(program, randn(3, requires_grad=True))
