"""``torch.autograd.Function`` inside of programs: what forward writes, what backward is given and gives."""

import pytest
import torch
from against_eager import same_as_eager
from torch import randn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from thunder_frontend import AcquisitionError, jit


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


class ClampedUnmarked(Function):
    """Returns the argument that it writes without saying so, as straight-through estimators of quantised weights do."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp_(-0.5, 0.5)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_steps_train_what_forward_writes_without_saying_so_and_returns():
    given, x = randn(3, 4), randn(2, 4)

    def trained(compiled):
        weight = torch.nn.Parameter(given.clone())

        def step(x):
            loss = torch.nn.functional.linear(x, ClampedUnmarked.apply(weight[:])).square().sum()
            loss.backward()
            with torch.no_grad():
                weight.sub_(weight.grad, alpha=0.1)
            return loss.detach()

        run = jit(step, fallback="error") if compiled else step
        return [run(x), run(x), weight.detach(), weight.grad]

    torch.testing.assert_close(trained(True), trained(False))


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


class Rounded(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 11


class Batched(Rounded):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x):
        return x + info.batch_size, in_dims[0]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.func.jvp(Rounded.apply, (x,), (x,)),
        lambda x: torch.func.jvp(torch.func.vmap(Rounded.apply), (x,), (x,)),
        lambda x: torch.func.jacfwd(Rounded.apply)(x),
        lambda x: torch.func.vmap(Batched.apply)(x),
        lambda x: torch.func.vmap(torch.func.grad(Rounded.apply))(x),
    ],
    ids=["jvp", "jvp of vmap", "jacfwd", "vmap of its own", "grad under vmap"],
)
@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_transforms_heed_what_a_function_says_of_itself(program, requires_grad):
    x = torch.tensor([1.2, 2.6], requires_grad=requires_grad)
    torch.testing.assert_close(jit(program, fallback="split")(x), program(x))


class SaysNothingOfWholeNumbers(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        constant = x * 5
        ctx.mark_non_differentiable(constant)
        return torch.arange(3), constant, x * 2, x * 3

    @staticmethod
    def backward(ctx, of_numbers, of_constant, first, second):
        assert of_numbers is None and of_constant is None
        return first * 2 if second is None else second * 3 if first is None else first * 2 + second * 3


@pytest.mark.parametrize("used", [(2,), (3,), (2, 3), (0, 1, 2)])
def test_what_has_no_derivative_has_no_gradient_where_no_zeros_are_wanted(used):
    compiled = jit(SaysNothingOfWholeNumbers.apply, fallback="error")
    gradients = []
    for function in (SaysNothingOfWholeNumbers.apply, compiled):
        x = torch.ones(3, requires_grad=True)
        results = function(x)
        gradients += torch.autograd.grad(sum([results[i].sum() for i in used]), x)
    torch.testing.assert_close(*gradients)


class OneTooMany(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient


def test_a_backward_with_more_gradients_than_arguments_is_eagers_error():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(AcquisitionError, match="returns 2 gradients for 1 arguments"):
        jit(OneTooMany.apply, fallback="error")(x)
    with pytest.warns(match="returns 2 gradients"):
        result = jit(OneTooMany.apply, fallback="split")(x)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        result.sum().backward()


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


def function(forward, backward):
    return type("Shares", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def row(gradient, index):
    return torch.zeros(2, 3).index_put((torch.tensor(index),), gradient)


def with_inner_view(ctx, x):
    twice = x * 2
    return twice, twice[0]


def two_of_one(ctx, x):
    twice = x * 2
    return twice[:, :2], twice[:, 1:]


def constant_view(ctx, x):
    flat = x.view(-1)
    ctx.mark_non_differentiable(flat)
    return flat


def writes_and_views(ctx, x):
    ctx.mark_dirty(x)
    x.mul_(2)
    return x.view(-1), x


SHARES = {
    "a view": function(lambda ctx, x: x.view_as(x), lambda ctx, g: g * 3),
    "a row": function(lambda ctx, x: x[0], lambda ctx, g: row(g * 3, 0)),
    "the argument": function(lambda ctx, x: x, lambda ctx, g: g * 3),
    "a view of views": function(lambda ctx, x: x.view(3, 2).t()[1], lambda ctx, g: torch.stack([g, g * 2])),
    "two views": function(lambda ctx, x: (x.view(-1), x[1]), lambda ctx, g, h: g.view(2, 3) * 3 + row(h, 1)),
    "a view and a value": function(lambda ctx, x: (x.view(-1), x * 2), lambda ctx, g, h: g.view(2, 3) * 3 + h),
    "a value and its view": function(with_inner_view, lambda ctx, g, h: g * 2 + row(h * 5, 0)),
    "views of one value": function(two_of_one, lambda ctx, g, h: torch.cat([g, h[:, :1]], 1) * 3),
    "a constant view": function(constant_view, lambda ctx, g: None),
    "detached": function(lambda ctx, x: x.detach(), lambda ctx, g: g * 3),
    "data": function(lambda ctx, x: x.data, lambda ctx, g: g * 3),
}


def tensors_of(results):
    return results if isinstance(results, tuple) else (results,)


def of_another(apply, x):
    return apply(x * 2)


def beside_what_it_is_of(apply, x):
    y = x * 2
    return y, apply(y), y * 3


def read(apply, x):
    y = x * 2
    return y, [r * 3 for r in tensors_of(apply(y))]


def of_a_view_and_viewed(apply, x):
    return [r.reshape(-1)[:1] for r in tensors_of(apply((x * 1).view(3, 2).view(2, 3)))]


def what_it_is_of_is_written(apply, x):
    y = x * 2
    results = tensors_of(apply(y))
    with torch.no_grad():
        y.add_(1)
    return y, [r.detach() * 1 for r in results]


def it_is_written(apply, x):
    y = x * 2
    results = tensors_of(apply(y))
    with torch.no_grad():
        results[0].add_(1)
    return y, [r.detach() * 1 for r in results]


def it_is_read_when_it_is_stale(apply, x):
    y = x * 2
    results = tensors_of(apply(y))
    y.mul_(3)
    return [r * 1 for r in results]


def it_is_written_where_autograd_sees_it(apply, x):
    results = tensors_of(apply(x * 2))
    results[-1].mul_(2)
    return results


PROGRAMS = [
    lambda apply, x: apply(x), of_another, beside_what_it_is_of, read, of_a_view_and_viewed, what_it_is_of_is_written,
    it_is_written, it_is_read_when_it_is_stale, it_is_written_where_autograd_sees_it,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", SHARES)
def test_what_custom_functions_return_of_what_they_got_shares_its_memory_with_their_own_gradients(kind, program):
    apply = SHARES[kind].apply
    same_as_eager(lambda x: program(apply, x), torch.arange(1.0, 7).view(2, 3).requires_grad_(), calls=1)


@pytest.mark.parametrize("program", [of_another, read, what_it_is_of_is_written, it_is_written])
def test_a_custom_function_returns_what_it_writes_and_a_view_of_that(program):
    apply = function(writes_and_views, lambda ctx, h, g: g * 2 + h.view(2, 3)).apply
    same_as_eager(lambda x: program(apply, x), torch.arange(1.0, 7).view(2, 3).requires_grad_(), calls=1)


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x * 2], ids=["an input", "a value"])
def test_what_custom_functions_return_of_what_they_got_is_a_view_to_autograd(of):
    x = torch.ones(2, 3, requires_grad=True)
    y = jit(lambda x: SHARES["a row"].apply(of(x)))(x)
    assert y._is_view()
    with pytest.raises(RuntimeError, match=r"This view was created inside a custom Function"):
        y.add_(1)


def test_a_tensor_that_a_custom_function_was_not_given_is_no_result():
    held = torch.ones(2, 3)
    apply = function(lambda ctx, x: held, lambda ctx, g: g).apply
    with pytest.raises(AcquisitionError, match=r"Shares returns .*held.*, which it was not given"):
        jit(lambda x: apply(x), fallback="error")(torch.ones(2, 3, requires_grad=True))


class AddsALoss(torch.autograd.Function):
    """The gradient of a loss that is added to that of whatever a model computes, where that has one."""

    @staticmethod
    def forward(ctx, x, loss):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g, torch.ones(())


class AddsToCotangents(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2, h + 5


def with_a_loss(x, y):
    return AddsALoss.apply(x * 2, (y * y).sum()), x * y


def with_a_loss_within(x, y):
    z = AddsALoss.apply(x * 2, (y * y).sum())
    return z.sum(), z * y, x.exp()


@pytest.mark.parametrize("program", [with_a_loss, with_a_loss_within, AddsToCotangents.apply])
def test_a_backward_that_adds_to_what_comes_runs_where_some_of_it_comes(program):
    compiled = jit(lambda x, y: program(x, y), fallback="error")
    for used in ((0,), (1,), (0, 1), (-1,), (1,), (0,)):
        gradients = []
        for run in (compiled, program):
            leaves = [torch.arange(1.0, 4.0).requires_grad_() for _ in range(2)]
            results = run(*leaves)
            gradients.append(torch.autograd.grad(sum(results[i].sum() for i in used), leaves, allow_unused=True))
        torch.testing.assert_close(*gradients)


class Reversed(torch.autograd.Function):
    """Computes backwards what forward kept a detached tensor of, in more than one layer."""

    @staticmethod
    def forward(ctx, x, layers):
        for layer in layers:
            x = torch.nn.functional.dropout(layer(x), 0.5)
        ctx.y, ctx.layers = x.detach(), layers
        return x

    @staticmethod
    def backward(ctx, gradient):
        y = ctx.y
        for layer in ctx.layers[::-1]:
            parts = torch.chunk(gradient, 2, dim=1)
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                (slope,) = torch.autograd.grad(layer(y), y, gradient)
            gradient = torch.cat(parts, 1) + slope
        return gradient, None


class Raises(torch.autograd.Function):
    """Has a backward that always raises."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("backward")


def test_backward_reads_the_layout_of_what_forward_computed():
    layers, x = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]), torch.randn(3, 4)
    found = []
    for run in (Reversed.apply, jit(lambda x, layers: Reversed.apply(x, layers), fallback="error")):
        torch.manual_seed(0)
        leaf = x.clone().requires_grad_()
        result = run(leaf, layers)
        found.append((result.detach(), torch.autograd.grad(result.sum(), leaf)))
    torch.testing.assert_close(found[1], found[0])


def test_what_backward_raises_is_raised_when_it_runs():
    with pytest.raises(
        AcquisitionError, match="Raises.backward raises KeyError: 'backward', which autograd is to raise"
    ):
        jit(lambda x: Raises.apply(x), fallback="error")(torch.ones(3, requires_grad=True))
    result = jit(lambda x: Raises.apply(x), fallback="split")(torch.ones(3, requires_grad=True)).sum()
    with pytest.raises(KeyError, match="backward"):
        result.backward()


class Recomputed(torch.autograd.Function):
    """Runs what it computed again, and ``backward()`` of that, as reversible networks and checkpoints do."""

    @staticmethod
    def forward(ctx, x, function):
        ctx.x, ctx.function = x.detach(), function
        return function(x)

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.x
        with torch.enable_grad():
            x.requires_grad = True
            torch.autograd.backward(ctx.function(x), gradient)
        gradient, x.grad = x.grad, None
        return gradient, None


def test_backward_inside_of_backward():
    linear = torch.nn.Linear(4, 4)

    def program(x):
        return linear(Recomputed.apply(linear(x), torch.tanh)).sum()

    x, found = torch.randn(3, 4), []
    for run in (program, jit(program, fallback="error")):
        leaf = x.clone().requires_grad_()
        found.append([torch.autograd.grad(run(leaf), [leaf, linear.weight]) for _ in range(2)])
    torch.testing.assert_close(found[1], found[0])
