"""Hooks that gradients inside of a program pass: they see the state of that moment, and what they do is done then."""

import copy

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit


class State:
    """What hooks read and write."""

    def __init__(self):
        self.factor, self.log = 1.0, []


class Block(nn.Module):
    """A layer with a shortcut, whose weight is used once more outside of it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3).double()

    def forward(self, x):
        return x + self.linear(x).tanh(), x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x, other = block(x)
            x = x * block.linear.weight.sum() + other
        return x


def reading(net, state):
    net.blocks[0].register_full_backward_hook(lambda m, dx, dy: state.log.append(state.factor))


def scaling(net, state):
    net.blocks[0].linear.register_full_backward_hook(
        lambda m, dx, dy: (dx[0] if dx[0] is None else dx[0] * state.factor,)
    )
    net.blocks[1].register_full_backward_pre_hook(lambda m, dy: (dy[0] * state.factor, *dy[1:]))


def keeping(net, state):
    def keep(module, dx, dy):
        module.linear.weight.seen = dy[0].sum() * (1 if dx[0] is None else dx[0].mean())
        state.log.append(len(dy))

    for block in net.blocks:
        block.register_full_backward_hook(keep)


def several(net, state):
    for place, module in enumerate(net.modules()):
        module.register_full_backward_hook(lambda m, dx, dy, place=place: state.log.append(place))


def backward(net, state, x):
    state.factor = 2.0
    state.log.append("before")
    loss = net(x).sum()
    loss.backward()
    state.log.append("after")
    state.factor = 3.0
    return loss.detach() * len(state.log)


def on_tensors(net, state, x):
    x = net.blocks[0](x)[0]
    hidden = x.exp()
    hidden.register_hook(lambda g: g * state.factor)
    hidden.register_hook(lambda g: state.log.append(state.factor))
    state.factor = 4.0
    (hidden * x).sum().backward()
    state.factor = 5.0
    return x.detach()


def of_inputs(net, state, x):
    state.factor = 2.0
    (net(x).square().sum()).backward(inputs=[net.blocks[0].linear.weight])
    state.factor = 1.0
    return x * state.factor


def kept_on_the_way(net, state, x):
    state.factor = 2.0
    y = net.blocks[0](x)[0]
    y.retain_grad()
    net.blocks[1](y)[0].sum().backward()
    return y.grad


def by_grad(net, state, x):
    state.factor = 2.0
    y = net.blocks[0](x)[0]
    z = net.blocks[1](y)[0]
    found = torch.autograd.grad(z.sum(), [net.blocks[0].linear.weight, y, z, net.blocks[0].linear.weight])
    state.factor = 3.0
    return found


def twice(net, state, x):
    loss = net(x).sum()
    state.factor = 2.0
    loss.backward(retain_graph=True)
    state.factor = 3.0
    loss.backward()
    return loss.detach()


@pytest.mark.parametrize("program", [backward, on_tensors, of_inputs, kept_on_the_way, by_grad, twice])
@pytest.mark.parametrize("register", [reading, scaling, keeping, several])
@pytest.mark.parametrize("needs_gradient", [True, False])
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_hooks_inside_do_what_they_do_in_eager(register, program, needs_gradient):
    torch.manual_seed(0)
    original, found = Net(), []
    for wrap in (lambda f: f, lambda f: jit(f, fallback="error")):
        net, state, run = copy.deepcopy(original), State(), wrap(program)
        register(net, state)
        results = []
        for n in (2, 2, 4):
            x = torch.linspace(0, 1, 3 * n, dtype=torch.float64).view(n, 3).requires_grad_(needs_gradient)
            results.append(run(net, state, x))
            results.append([(p.grad if p.grad is None else p.grad.clone(), vars(p).copy()) for p in net.parameters()])
        found.append((results, state.log, state.factor))
        assert run is program or cache_misses(run) <= 3
    assert found[1][1:] == found[0][1:]
    torch.testing.assert_close(found[1][0], found[0][0])


def test_hooks_may_have_derivatives():
    def program(module, x):
        y = module(x)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad((first * first).sum(), x)[0]

    found = []
    for run in (program, jit(program, fallback="error")):
        module = nn.Tanh()
        module.register_full_backward_pre_hook(lambda m, dy: (dy[0] * 3,))
        found.append(run(module, torch.linspace(-1, 1, 4, dtype=torch.float64, requires_grad=True)))
    torch.testing.assert_close(found[1], found[0])
