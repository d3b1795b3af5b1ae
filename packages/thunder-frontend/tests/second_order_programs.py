"""Programs with derivatives of higher order, with random numbers and with derivatives of zero."""

import torch
import torch.nn.functional as F  # noqa: N812
from autograd_programs import leaf, program
from torch import nn
from torch.utils.checkpoint import checkpoint


@program
def second_of_modules(wrap):
    m = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.GELU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(3 * 4 * 4, 2)
    )
    j = wrap(m)
    x = leaf(2, 2, 6, 6)
    (g,) = torch.autograd.grad(j(x).sin().sum(), x, create_graph=True)
    g.square().sum().backward()
    return x.grad, [p.grad for p in m.parameters()], [b for b in m.buffers()]


@program
def second_instance_norm(wrap):
    m = nn.InstanceNorm2d(2, affine=True, track_running_stats=True)
    j = wrap(m)
    x = leaf(2, 2, 4, 4)
    (g,) = torch.autograd.grad(j(x).sin().sum(), x, create_graph=True)
    g.square().sum().backward()
    return x.grad


@program
def second_lstm(wrap):
    m = nn.LSTM(3, 4, 2, dropout=0.5, batch_first=True)
    j = wrap(m)
    x = leaf(2, 5, 3)
    (g,) = torch.autograd.grad(j(x)[0].sin().sum(), x, create_graph=True)
    g.square().sum().backward()
    return x.grad, [p.grad for p in m.parameters()]


@program
def second_transformer(wrap):
    m = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    j = wrap(m)
    x = leaf(2, 5, 8)
    (g,) = torch.autograd.grad(j(x).sin().sum(), x, create_graph=True)
    g.square().sum().backward()
    return x.grad, [p.grad for p in m.parameters()]


@program
def unused_dropout_second(wrap):
    def f(a):
        r = torch.rand(3)
        F.dropout(a)
        return F.dropout(a) * a, r

    x = leaf(3)
    y, _ = wrap(f)(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return x.grad


@program
def generator_second(wrap):
    G = torch.Generator().manual_seed(3)
    f = wrap(lambda a: torch.bernoulli(torch.full((3,), 0.5), generator=G) * a * a)
    x = leaf(3)
    y = f(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return x.grad, torch.rand(2, generator=G)


@program
def third_dropout(wrap):
    x = leaf(6)
    y = wrap(lambda a: F.dropout(a**4, 0.5))(x)
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y


@program
def checkpoint_second(wrap):
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5))
    x = leaf(2, 3)
    y = wrap(lambda a: checkpoint(m, a, use_reentrant=False))(x)
    (g,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
    g.square().sum().backward()
    return x.grad


@program
def backward_inside_dropout(wrap):
    m = nn.Linear(3, 3)

    def f(a):
        loss = F.dropout(m(a)).square().sum()
        loss.backward()
        return loss

    value = wrap(f)(torch.randn(2, 3))
    return value.detach(), m.weight.grad


@program
def rounding(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.round() + a.floor() * a + torch.div(a, 2, rounding_mode="floor") + a.sign())(x)
    y.sum().backward()
    return x.grad


@program
def only_round(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.round())(x)
    y.sum().backward()
    return x.grad, y


@program
def round_inner(wrap):
    def f(a):
        (g,) = torch.autograd.grad(a.round().sum(), a)
        return g

    return wrap(f)(leaf(3))


@program
def zeros_where_only_some_outputs_are_used(wrap):
    x = leaf(3)
    y = leaf(3)
    a, b, c = wrap(lambda a, y: (a.floor(), a.sin().floor() * 2 + y, a * 2 + y.round()))(x, y)
    return [torch.autograd.grad(t.sum(), (x, y), retain_graph=True, allow_unused=True) for t in (a, b, c)]
