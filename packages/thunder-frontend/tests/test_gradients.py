"""Gradients as functions."""

import copy

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from against_eager import same_as_eager

from thunder_frontend import cache_misses, explain_misses, grad, jit, last_traces, value_and_grad


def test_gradients_of_a_compiled_function():
    compiled = jit(lambda a, b: (a * b).sin())
    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    torch.testing.assert_close(grad(compiled)(a, b), ((a * b).cos() * b, (a * b).cos() * a))


@pytest.mark.parametrize("transform", [grad, value_and_grad], ids=lambda f: f.__name__)
@pytest.mark.parametrize("made", [lambda f: f, jit], ids=["function", "compiled function"])
def test_what_is_compiled_for_gradients_can_be_looked_at(transform, made):
    differentiated = transform(made(lambda a: (a * a).sum()))
    for _ in range(2):
        differentiated(torch.randn(3, requires_grad=True))
    assert "mul" in str(last_traces(differentiated)[0]) and cache_misses(differentiated) == 1


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


class Steep(torch.autograd.Function):
    """The exponential, with twice its derivative."""

    @staticmethod
    def forward(ctx, a):
        y = a.exp()
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, y = ctx.saved_tensors
        return dy * (a.exp() + y)


def test_derivatives_of_custom_functions_are_the_users_in_any_order():
    def through(function):
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        y, found = function(x), []
        for _ in range(3):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            found.append(y)
        return found

    torch.testing.assert_close(through(jit(lambda a: Steep.apply(a) * a)), through(lambda a: Steep.apply(a) * a))


def test_derivatives_of_custom_functions_inside_are_the_users():
    def function(x):
        y = Steep.apply(x) * x
        (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y + gradient

    same_as_eager(function, torch.randn(3, dtype=torch.float64, requires_grad=True))


def test_gradients_switched_on_inside_are_recorded():
    def function(x):
        y = x.cos()
        with torch.enable_grad():
            z = x.sin()
        return y * 2, z * 1, z

    x = torch.randn(3, requires_grad=True)
    with torch.no_grad():
        expected, found = function(x), jit(function)(x)
    assert [t.requires_grad for t in found] == [t.requires_grad for t in expected]
    torch.testing.assert_close(torch.autograd.grad(found[2].sum(), x), torch.autograd.grad(expected[2].sum(), x))


@pytest.mark.parametrize(
    "read", [lambda x, buffer: x * buffer, lambda x, buffer: (x * buffer.view(-1).contiguous()).sin()]
)
def test_what_backward_reads_of_a_written_input_is_what_it_was(read):
    def function(x, buffer):
        y = read(x, buffer)
        buffer.add_(1)
        return y

    x, buffer = torch.randn(4, requires_grad=True), torch.arange(4.0)
    expected = torch.autograd.grad(read(x, buffer.clone()).sum(), x)
    torch.testing.assert_close(torch.autograd.grad(jit(function)(x, buffer).sum(), x), expected)
    assert torch.equal(buffer, torch.arange(4.0) + 1)


def test_running_statistics_are_not_copied():
    compiled = jit(torch.nn.BatchNorm1d(4))
    compiled(torch.randn(3, 4)).sum().backward()
    assert "clone" not in str(last_traces(compiled)[-1])


def cubed(x):
    return (x**3).sum()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (grad(grad(cubed)), lambda x: 6 * x),
        (grad(grad(grad(cubed))), lambda x: torch.full_like(x, 6)),
        (jit(grad(cubed)), lambda x: 3 * x**2),
        (jit(grad(grad(cubed))), lambda x: 6 * x),
        (jit(lambda x: grad(jit(cubed))(x * 2)), lambda x: 12 * x**2),
    ],
    ids=["twice", "three times", "compiled", "twice, compiled", "inside"],
)
def test_gradients_of_gradients(function, expected):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        torch.testing.assert_close(function(x)[0].detach(), expected(x.detach()))


def test_gradients_need_no_gradients_switched_on():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(grad(cubed)(x)[0], torch.full((3,), 3.0))


def test_arguments_may_be_nested():
    x, y = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    gradients = grad(lambda a, *, scale: (a["x"] * 2).sum() + (a["y"][0] * scale).sum())
    torch.testing.assert_close(
        gradients({"x": x, "y": [y]}, scale=y), (torch.full((3,), 2.0), torch.ones(2) * 2, torch.ones(2) * 2)
    )


def test_a_result_without_gradient_is_refused():
    with pytest.raises(TypeError, match="nothing that was returned has a gradient"):
        grad(lambda x: x.argmax())(torch.ones(2, requires_grad=True))


def test_an_input_that_the_program_makes_require_grad():
    def forces(positions, weight):
        positions.requires_grad_(True)
        energy = (positions @ weight).tanh().sum()
        (gradient,) = torch.autograd.grad(energy, positions, create_graph=True)
        return energy, -gradient

    weight = torch.randn(3, 3, requires_grad=True)
    compiled = jit(forces)
    for _ in range(2):
        start = torch.randn(4, 3)
        found = []
        for function in (forces, compiled):
            positions = start.clone()
            energy, force = function(positions, weight)
            assert positions.requires_grad and positions.is_leaf
            found.append((energy, force, *torch.autograd.grad(force.pow(2).sum() + energy, (positions, weight))))
        torch.testing.assert_close(found[1], found[0])
    assert cache_misses(compiled) == 1
    compiled(positions, weight)
    assert "requires_grad True" in explain_misses(compiled)[0][0]


def gradients_by(function, *make):
    given = [m() for m in make]
    return torch.autograd.grad(function(*given).sum(), [t for t in given if t.requires_grad], allow_unused=True)


def leaf(*shape):
    return lambda: torch.arange(float(torch.Size(shape).numel())).reshape(shape).requires_grad_()


def leaf_in_columns(*shape):
    return lambda: leaf(*shape[::-1])().detach().t().requires_grad_()


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (lambda x: x.mean(), [leaf(2, 3)]),
        (lambda x: x.sum(), [leaf(2, 3)]),
        (lambda x: (x * 2).sum(1), [leaf(2, 3)]),
        (lambda x: x.mean((2, 3)) * 2, [leaf(1, 2, 4, 4)]),
        (lambda x, y: x @ y.t(), [leaf(2, 3), leaf(4, 3)]),
        (lambda x, y: x @ y, [leaf_in_columns(2, 3), leaf(3, 4)]),
        (F.linear, [leaf_in_columns(2, 3), leaf(4, 3)]),
        (F.linear, [leaf(5, 3), leaf_in_columns(4, 3)]),
        (lambda x: x * 2, [leaf_in_columns(2, 3)]),
    ],
    ids=["mean", "sum", "of doubles", "of images", "transposed", "columns", "linear", "weight in columns", "doubled"],
)
def test_gradients_are_laid_out_as_eagers(function, make):
    expected, found = gradients_by(function, *make), gradients_by(jit(function), *make)
    torch.testing.assert_close(found, expected)
    assert [g.stride() for g in found] == [g.stride() for g in expected]


@pytest.mark.parametrize(
    "write",
    [
        lambda y, w: y.copy_(w),
        lambda y, w: y.copy_(w.detach()),
        lambda y, w: y.__setitem__(slice(None), w),
        lambda y, w: y.__setitem__(..., 1),
        lambda y, w: y.zero_(),
        lambda y, w: y[0].copy_(w[0]),
        lambda y, w: y.data.copy_(w),
    ],
    ids=["copy", "of a constant", "all", "a number", "zero", "a part", "data"],
)
def test_what_was_written_over_has_zeros_for_its_gradient(write):
    def program(x, w):
        y = x * 1
        write(y, w)
        return y * w

    expected, found = [gradients_by(f, leaf(3), leaf(3)) for f in (program, jit(program))]
    assert [g is None for g in found] == [g is None for g in expected]
    torch.testing.assert_close(found, expected)


def test_a_gradient_by_what_is_not_used_is_refused_in_eagers_words():
    def program(x, y):
        return torch.autograd.grad((x * 2).sum(), (x, y))

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    expected = str(pytest.raises(RuntimeError, program, x, y).value)
    assert str(pytest.raises(RuntimeError, jit(program), x, y).value) == expected


def test_a_power_of_doubles_is_not_written_to_floats():
    def program(x):
        return x.float_power_(2)

    same_as_eager(program, torch.arange(3.0))
    same_as_eager(program, torch.arange(3.0).double())


@pytest.mark.parametrize(
    "listed",
    [lambda m: m.parameters(), lambda m: map(torch.Tensor.requires_grad_, m.parameters()), lambda m: iter([m.weight])],
    ids=["parameters", "map", "iterator"],
)
def test_gradients_by_what_is_listed_once(listed):
    module = torch.nn.Linear(3, 1)

    def program(x):
        return torch.autograd.grad((y for y in (module(x).square().sum(),)), listed(module))

    x = torch.randn(4, 3)
    torch.testing.assert_close(jit(program)(x), program(x))


def test_the_type_to_which_two_equal_ones_are_promoted():
    def program(x, y):
        return x.to(torch.promote_types(x.dtype, y.dtype)), torch.result_type(x, y)

    x = torch.ones(2)
    assert jit(program)(x, x)[1] == torch.float32


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.utils.spectral_norm(torch.nn.Linear(4, 1)),
        lambda: torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 2)),
        lambda: torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)),
    ],
    ids=["spectral norm", "parametrization", "batch norm"],
)
def test_gradients_of_gradients_where_the_module_writes_to_its_buffers(make):
    eager = make()
    modules = eager, jit(copy.deepcopy(eager))
    for _ in range(3):
        x = torch.randn(5, 4)
        for module in modules:
            given = x.clone().requires_grad_()
            y = module(given)
            (gradient,) = torch.autograd.grad(y.square().sum(), given, create_graph=True)
            module(x * 2)  # writes to them once more
            (gradient.square().sum() + module(x).sum()).backward()
    results = [[[p.grad for p in m.parameters()], list(m.buffers())] for m in modules]
    torch.testing.assert_close(results[1], results[0])


def test_zeros_reach_what_was_written_over_where_only_some_results_are_differentiated():
    def program(x, y):
        y.zero_()
        return x + y.sum()

    for function in (program, jit(program)):
        x, y = leaf(2, 3)(), leaf(3)()
        torch.testing.assert_close(torch.autograd.grad(function(x, y * 1).sum(), y)[0], torch.zeros(3))


def test_relu_has_no_slope_at_zero_in_gradients_that_have_gradients():
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    (found,) = torch.autograd.grad(jit(torch.relu)(x).sum(), x, create_graph=True)
    assert found.tolist() == [0.0, 0.0, 1.0]


def test_group_normalization_with_strided_weight_and_bias():
    x = torch.randn(2, 4, 5, requires_grad=True)
    both = torch.randn(4, 2, requires_grad=True)
    same_as_eager(lambda x, both: F.group_norm(x, 2, both[:, 0], both[:, 1]), x, both)


def viewed(a, b, c):
    return (a.view(-1) + b[0] + c).sin().sum(), b


def joined(a, b, c):
    together = torch.cat([a.expand(1, 4), b], 0).view(-1)
    return (together[:8] + torch.cat([b, b]).view(-1)).cos().sum() + (c * 2).sum(), together * 2


def stacked(a, b, c):
    z = (torch.stack([a.view(-1), c]) * 2).sin()
    return z.sum() + (z[0] + b[0]).sum(), z


def unbound(a, b, c):
    return (torch.stack([a[0], c]) + b.unsqueeze(1)[0]).tanh().sum(), c.view(2, 2)


@pytest.mark.parametrize("program", [viewed, joined, stacked, unbound])
@pytest.mark.parametrize("way", ["whole", "some", "again", "watched"])
def test_gradients_that_add_up_share_no_memory(program, way):
    """What two leaves get of one tensor, such as the parts of a sum with joined tensors, is changed when more comes."""
    ours = [torch.randn(*shape, dtype=torch.double, requires_grad=True) for shape in [(1, 4), (1, 4), (4,)]]
    eagers = [t.detach().clone().requires_grad_() for t in ours]
    for run, leaves in ((jit(program), ours), (program, eagers)):
        for _ in range(3):
            loss, other = run(*leaves)
            if way == "watched" and other.requires_grad and not other.is_leaf:
                other.retain_grad()
            if way == "again":
                made = torch.autograd.grad(loss, leaves[:2], create_graph=True)
                loss = loss + sum([g.square().sum() for g in made])
            grads = [t.grad for t in leaves]
            loss.backward(inputs=leaves[:2] if way == "some" else None)
            assert all(before is None or before is t.grad for before, t in zip(grads, leaves, strict=True))
    for a, b in zip(ours, eagers, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    memories = {t.grad.untyped_storage().data_ptr() for t in ours if t.grad is not None}
    assert len(memories) == sum([t.grad is not None for t in ours])


@pytest.mark.parametrize("place", [-20, -9, -8, -1, 0, 7, 8, 9, 100])
def test_places_along_a_dimension_are_counted_round_and_round_by_gradients_too(place):
    places = torch.tensor([[3, place]])

    def gradient(run):
        x = torch.arange(8.0).reshape(1, 8).requires_grad_()
        run(x, places, 1).square().sum().backward()
        return x.grad

    try:
        expected = gradient(torch.take_along_dim)
    except RuntimeError:  # PyTorch takes such places, or does not, by its version
        with pytest.raises(RuntimeError):
            gradient(jit(torch.take_along_dim))
    else:
        assert torch.equal(gradient(jit(torch.take_along_dim)), expected)
