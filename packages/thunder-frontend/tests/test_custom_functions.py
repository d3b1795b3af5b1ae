"""``torch.autograd.Function`` inside of programs: what forward writes, what backward is given and gives."""

import pytest
import torch
from against_eager import same_as_eager
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from thunder_frontend import AcquisitionError, jit


def randn(*shape, **options):
    return torch.randn(*shape, **options)


class Doubling(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Positive(Function):
    @staticmethod
    def forward(ctx, x):
        mask = (x > 0).float()
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(mask)
        return x * 2, mask

    @staticmethod
    def backward(ctx, gradient, of_mask):
        (mask,) = ctx.saved_tensors
        return gradient * 2 * mask + of_mask.sum()


class WithoutZeros(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, 3, x * 3

    @staticmethod
    def backward(ctx, first, of_number, second):
        assert of_number is None
        if first is None:
            return second * 3 + 5
        return first * 2 + 7 if second is None else first * 2 + second * 3


class Product(Function):
    @staticmethod
    def forward(ctx, x, y, factor=2):
        ctx.factor = factor
        ctx.save_for_backward(x, y)
        return x * y * factor

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return gradient * y * ctx.factor if needs[0] else None, gradient * x * ctx.factor if needs[1] else None, None


class WritesUnmarked(Function):
    @staticmethod
    def forward(ctx, x, y):
        y.add_(1)
        return x * y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


class Alias(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Flat(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(3, 1)


class Sum(Function):
    @staticmethod
    def forward(x, y):
        return x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


def is_the_argument(x):
    y = x * 1
    return y, Doubling.apply(y) is y


def writes_to_the_alias(x):
    y = Flat.apply(x)
    y.add_(1)
    return x, y


def has_second_derivatives(x):
    (gradient,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    return gradient


@pytest.mark.parametrize(
    "program",
    [
        lambda x: Doubling.apply(x * 1), is_the_argument, Doubling.apply, Positive.apply, WithoutZeros.apply,
        lambda x: WithoutZeros.apply(x)[0], lambda x: WithoutZeros.apply(x)[2], Alias.apply,
        lambda x: Alias.apply(x * 2) + x, lambda x: Product.apply(x, x.detach()), lambda x: Product.apply(x, x * 2, 3),
        lambda x: Sum.apply(x, torch.ones(3, 2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("requires_grad", [False, True])
def test_custom_functions_do_what_they_do_in_eager(program, requires_grad):
    same_as_eager(program, randn(3, 1, requires_grad=requires_grad))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_forward_writes_without_saying_so_is_written(requires_grad):
    same_as_eager(lambda x, y: (WritesUnmarked.apply(x, y), y), randn(3, requires_grad=requires_grad), randn(3))


def test_a_view_that_forward_returns_is_a_view():
    same_as_eager(writes_to_the_alias, randn(3, 1))


def test_gradients_broadcast_as_autograd_brings_them_to_shape():
    same_as_eager(Sum.apply, randn(3, requires_grad=True), randn(2, 3, requires_grad=True, dtype=torch.float64))


def test_a_custom_backward_is_differentiated_again():
    same_as_eager(has_second_derivatives, randn(3, requires_grad=True))


class WritesToTheGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        made = gradient.clone().transpose(0, 1)
        made[:, 1:].mul_(3)
        return made.transpose(0, 1) * 2


def test_backward_writes_to_views_of_a_copy_of_its_gradient():
    same_as_eager(WritesToTheGradient.apply, randn(3, 4, requires_grad=True))


def test_a_function_may_be_defined_where_it_is_called():
    def program(x):
        class Tripled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 3

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 5

        return Tripled.apply(x)

    x = torch.ones(3, requires_grad=True)
    compiled = jit(program)
    for _ in range(2):
        y = compiled(x)
        assert torch.equal(y, x * 3) and torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full((3,), 5.0))


class Talks(torch.autograd.Function):
    said = []

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        Talks.said.append(1)
        return grad * 2


class Prints(Talks):
    @staticmethod
    def backward(ctx, grad):
        print(grad)
        return grad * 2


@pytest.mark.parametrize("function", [Talks, Prints])
def test_a_backward_that_changes_the_outside_is_refused(function):
    with pytest.raises(AcquisitionError, match=f"{function.__name__}.backward prints, warns or changes objects"):
        jit(lambda x: function.apply(x))(torch.ones(2, requires_grad=True))
    assert not Talks.said
