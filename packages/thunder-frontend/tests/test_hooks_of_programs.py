"""Hooks that a program registers on what it returns, or keeps gradients of: before those of others, and called once."""

import pytest
import torch

from thunder_frontend import jit

SEEN = []


def doubled(gradient):
    SEEN.append(gradient.detach().clone())
    return gradient * 2


def one(x):
    y = x * 3
    y.register_hook(doubled)
    return y, y.exp()


def two(x):
    y = x * 3
    y.register_hook(doubled)
    y.register_hook(lambda gradient: gradient.clamp(max=5))
    y.retain_grad()
    return y, y.exp()


def alone(x):
    y = x * 3
    y.register_hook(doubled)
    return y, x.exp()


def of_a_view(x):
    y = x * 3
    part = y[:2]
    part.register_hook(doubled)
    return part, part.exp() + y[0]


def viewed(x):
    y = x * 3
    y.register_hook(doubled)
    part = y[1:]
    return y, part.exp(), part, y


def of_both(x):
    y = x * 3
    z = y.sin()
    z.register_hook(doubled)
    y.register_hook(lambda gradient: gradient + 1)
    return y, z, z * y


def kept_outside(x, y, *others):
    y.retain_grad()
    sum([t.sum() for t in others]).backward()
    return x.grad, y.grad


def hooked_outside(x, y, *others):
    y.register_hook(lambda gradient: gradient * gradient)
    sum([t.sum() for t in (y, *others)]).backward()
    return (x.grad,)


def asked_for(x, y, *others):
    return torch.autograd.grad(sum([t.sum() for t in (y, *others)]), y)


def gone(x, y, *others):
    del y
    sum([t.sum() for t in others]).backward()
    return (x.grad,)


USES = [kept_outside, hooked_outside, asked_for, gone]
PAIRS = [(program, use) for program in (one, two, of_a_view, viewed, of_both) for use in USES]
PAIRS += [(alone, use) for use in USES[1:]]  # nothing comes to what would be kept


@pytest.mark.parametrize(("program", "use"), PAIRS)
def test_what_comes_to_a_result_passes_them_first(program, use):
    compiled = jit(program, fallback="error")
    found = []
    for function in (program, compiled, compiled):
        SEEN.clear()
        x = torch.tensor([0.1, 2.0, -0.3], requires_grad=True)
        found.append([*use(x, *function(x)), *SEEN])
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


def test_gradients_kept_inside_are_what_hooks_made_which_are_called_once():
    seen = []

    def program(x):
        y = x * 3
        y.retain_grad()
        y.register_hook(lambda gradient: gradient * 5)
        z = y.sin()
        z.register_hook(lambda gradient: (seen.append(1), gradient * 3)[1])
        z.retain_grad()
        z.sum().backward()
        return y.grad, z.grad, x.grad

    expected = program(torch.ones(3, requires_grad=True))
    torch.testing.assert_close(jit(program, fallback="error")(torch.ones(3, requires_grad=True)), expected)
    assert seen == [1, 1]


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_those_of_a_result_that_the_program_differentiates_itself_are_called_for_both():
    def program(x):
        y = x * 3
        y.register_hook(lambda gradient: gradient * 2)
        y.square().sum().backward(retain_graph=True)
        return y, y.exp()

    found = []
    for function in (program, jit(program, fallback="split")):
        x = torch.ones(3, requires_grad=True)
        function(x)[1].sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning", "ignore:Using backward")
def test_those_of_a_leaf_are_called_where_its_gradient_has_gradients():
    def program(x):
        (x**3).sum().backward(create_graph=True)
        return x.grad

    found = []
    for function in (program, jit(program, fallback="split")):
        x = torch.ones(3, requires_grad=True)
        x.register_hook(lambda gradient: gradient * 2)
        found.append(function(x).detach())
        x.grad = None
    torch.testing.assert_close(found[1], found[0])
