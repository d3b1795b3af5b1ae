"""What a custom function's ``forward`` keeps for ``backward``, where that is differentiated again.

Its arguments and results have a history then; what it computes besides has none, as autograd does not see forward.
"""

import pytest
import torch

from thunder_frontend import jit


class KeepsIntermediates(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.grown, ctx.shrunk = x.exp(), (-x).exp()
        return (ctx.grown - ctx.shrunk) / 2

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.grown + ctx.shrunk) / 2


class SavesIntermediates(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        cosine = x.cos()
        ctx.save_for_backward(x, cosine)
        return x * x.sin()

    @staticmethod
    def backward(ctx, g):
        x, cosine = ctx.saved_tensors
        return g * (x.sin() + x * cosine)


class SavesAView(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.view(-1))
        return x**2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].view_as(g) * 2


class SavesItsArgument(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().float()
        ctx.x = x
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return g * ctx.x * ctx.saved_tensors[0] * 3


class SavesItsResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y


def twice(function, x):
    (first,) = torch.autograd.grad((function(x) * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * torch.arange(1.0, 4.0)).sum(), x)
    return first.detach(), second


FUNCTIONS = [KeepsIntermediates, SavesIntermediates, SavesAView, SavesItsArgument, SavesItsResult]


@pytest.mark.parametrize("cls", FUNCTIONS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("inside", [True, False], ids=["in the program", "around it"])
def test_second_derivatives_are_those_of_eager(cls, inside):
    x = torch.tensor([0.3, 0.7, -0.2], requires_grad=True)
    expected = twice(cls.apply, x)
    found = jit(lambda x: twice(cls.apply, x))(x) if inside else twice(jit(lambda x: cls.apply(x)), x)
    torch.testing.assert_close(found, expected)


def test_a_gradient_of_what_forward_computes_has_no_derivative():
    x = torch.ones(3, requires_grad=True)
    (first,) = torch.autograd.grad(jit(lambda x: KeepsIntermediates.apply(x))(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(first.sum(), x)
