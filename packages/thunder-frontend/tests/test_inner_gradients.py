"""Gradients inside of a program, by its inputs and by what it computes of them: what eager's are, and laid out so."""

import copy

import pytest
import torch
from torch.autograd import grad

from thunder_frontend import AcquisitionError, FallbackWarning, jit

PROGRAMS = []


def program(function):
    """File a program."""
    PROGRAMS.append(function)
    return function


@program
def by_a_value_and_an_input(x):
    y = x.sin()
    return grad(y.sum(), [y, x])


@program
def by_all_on_the_way(x):
    y = x.sin()
    z = y * y + x
    return grad(z, [z, y, x], grad_outputs=torch.ones_like(z))


@program
def gradients_of_gradients(x):
    y = x.sin()
    z = y * y
    found = grad(z.sum(), [y, x], create_graph=True)
    return *found, *grad((found[0] * found[1]).sum(), [x, y, found[0]], allow_unused=True)


@program
def by_what_numbers_are_drawn_for(x):
    y = x * 2
    z = torch.normal(y, 1.0) * y
    (found,) = grad(z.sum(), y, retain_graph=True)
    return z, found.detach()


@program
def some_unused(x):
    y, z = x.sin(), x.cos()
    return grad(z.sum(), [y, x], allow_unused=True)


@program
def unused_and_not_allowed(x):
    y, z = x.sin(), x.cos()
    return grad(z.sum(), [y, x])


@program
def unused_and_materialised(x):
    y, z = x.sin(), x.cos()
    return grad(z.sum(), [y, x], allow_unused=True, materialize_grads=True)


@program
def again_where_the_graph_is_kept(x):
    y = x.sin()
    first = grad((y * y).sum(), y)
    return *first, *grad((y * y * y).sum(), [y, x])


@program
def again_where_it_is_freed(x):
    y = x.sin()
    first = grad((y * y).sum(), [y, x])
    return *first, *grad((y * y * y).sum(), x)


@program
def scaled_by_a_number_and_freed(x):
    y = x * 2
    y.sum().backward()
    y.sum().backward()


@program
def by_a_view(x):
    v = x[0]
    return grad((v * v).sum(), [v, x])


@program
def by_a_view_that_is_not_used(x):
    v = x[0]
    return grad((x * x).sum() + v.detach().sum(), [v, x], allow_unused=True)


@program
def by_views_of_values(x):
    y = x * 2
    v = y[0]
    return grad((v * v).sum() + y.sum(), [v, y, x])


@program
def by_what_is_written_to(x):
    y = x * 2
    v = y[0]
    y.mul_(3)
    return grad((v * v).sum() + y.sum(), [y, x])


@program
def by_a_view_that_is_written_to(x):
    y = x * 2
    v = y[0]
    v.mul_(3)
    return grad((v * v).sum() + y.sum(), [v, y, x])


@program
def through_random_numbers(x):
    y = torch.nn.functional.dropout(x, 0.5)
    return grad((y * y).sum(), [y, x])


@program
def by_several_results_of_one_call(x):
    a, b = x.split(1)
    return grad((a * b).sum(), [a, b, x])


@program
def several_results(x):
    y = x.sin()
    return grad([y.sum(), (y * x).sum(), y], [y, x], [torch.tensor(2.0), torch.tensor(3.0), torch.ones_like(y)])


@program
def by_itself(x):
    y = x.sin()
    return *grad(y, y, torch.ones_like(y)), *grad(x, x, torch.ones_like(x) * 2), *grad((y * 2).sum(), [y, y, x])


@program
def hooked(x):
    y, z = x.sin(), x.cos()
    y.register_hook(lambda g: g * 10)
    z.register_hook(lambda g: g * 10)
    return *grad((y * y).sum(), [y, x]), *grad((z * z).sum(), z)


@program
def retained(x):
    y = x * 2
    z = y.sin()
    y.retain_grad()
    z.retain_grad()
    (y * z).sum().backward(retain_graph=True)
    first = y.grad.clone()
    y.sum().backward(gradient=torch.tensor(3.0))
    return first, y.grad, z.grad, y.retains_grad, y


@program
def retained_where_gradients_are_returned(x):
    y = x * 2
    y.retain_grad()
    s = (y * y).sum()
    first = grad(s, x, retain_graph=True)
    return *first, y.grad, *grad(s, [y, x])


@program
def retained_with_a_graph(x):
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    return y.grad.requires_grad, y.grad, *grad(y.grad.sum(), x)


@program
def retained_and_written_to(x):
    y = x.sin()
    y.retain_grad()
    y.mul_(2)
    (y * y).sum().backward()
    return y.grad


@program
def given_to_tensors_on_the_way(x):
    y = x * 2
    z = y.sin()
    z.sum().backward(inputs=[y])
    return y.grad, x.grad, z.grad


LEAVES = {
    "contiguous": lambda: torch.arange(1.0, 7).reshape(2, 3),
    "transposed": lambda: torch.arange(1.0, 7).reshape(3, 2).t(),
}


@program
def laid_out(x):
    of = (
        x.mean(), (x**2).mean(), x.mean(dim=(0, 1), keepdim=True), x.unsqueeze(0).sum(), torch.stack([x, x]).sum(),
        x.cos().sum(), x.tanh().sum(), x.relu().sum(), x.cumsum(0).sum(), x.logsumexp(0).sum(), x.diagonal().sum(),
        x.var(), x[1].sum(), x.t().sum(), x.softmax(-1)[0].sum(), torch.cat([x, x]).sum(),
    )  # fmt: skip
    return tuple([grad(t, x)[0] for t in of])


VIEWS_WRITTEN_TO = (by_what_is_written_to, by_a_view_that_is_written_to)
"""Autograd takes views of what was written to for views by ``as_strided``, whose gradients it lays out as the base."""


def outcome(function, kind):
    """Return what a program finds, with strides and flags; or what it raises."""
    x = LEAVES[kind]().requires_grad_()
    torch.manual_seed(0)
    try:
        found = function(x)
    except RuntimeError as error:
        return str(error).split(" (or ")[0].split(": ")[0], []
    found = [*(found if isinstance(found, tuple) else (found,)), x.grad]
    flags = [(t.stride(), t.requires_grad) if isinstance(t, torch.Tensor) else t for t in found]
    return [t.detach() if isinstance(t, torch.Tensor) else t for t in found], flags


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_inside_are_those_of_eager(function, kind):
    found, flags = outcome(jit(function), kind)
    expected, expected_flags = outcome(function, kind)
    if function is unused_and_materialised and expected_flags[0][1]:
        pytest.skip("this PyTorch's zeros for what is not used require gradients, though no graph was asked for")
    if isinstance(expected, str):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected)
        assert flags == expected_flags or function in VIEWS_WRITTEN_TO


def test_a_result_retains_its_gradient_if_the_program_says_so():
    def program(x):
        y = x * 2
        y.retain_grad()
        return (y * y).sum(), y

    found = []
    for function in (program, jit(program)):
        x = torch.ones(3, requires_grad=True)
        loss, y = function(x)
        loss.backward()
        found.append((y.grad, y.retains_grad, x.grad))
    torch.testing.assert_close(found[1], found[0])


def test_a_copy_of_a_leaf_has_a_copy_of_its_gradient():
    def program(x):
        y = copy.deepcopy(x)
        return y, y.grad, y.grad is x.grad

    found = []
    for function in (program, jit(program)):
        x = torch.ones(3, requires_grad=True)
        x.grad = torch.arange(3.0)
        y, gradient, same = function(x)
        found.append((y.detach(), y.grad, gradient, gradient is y.grad, same, y.requires_grad))
    torch.testing.assert_close(found[1], found[0])


def test_backward_to_some_inputs_frees_what_it_went_through_only():
    def program(x):
        y = x.sin()
        z = y.exp()
        (z**2).sum().backward(inputs=[z])
        return y, z.grad

    found = []
    for function in (program, jit(program, fallback="error")):
        x = torch.arange(3.0, requires_grad=True)
        y, gradient = function(x)
        y.sum().backward()
        found.append((gradient, x.grad))
    torch.testing.assert_close(found[1], found[0])


def test_backward_to_some_inputs_frees_them_too():
    def program(x):
        y = x.sin()
        z = y.exp()
        (z**2).sum().backward(inputs=[z])
        return z

    for function in (program, jit(program, fallback="error")):
        z = function(torch.arange(3.0, requires_grad=True))
        with pytest.raises(RuntimeError, match="second time"):
            z.sum().backward()


def writes_all(x, y):
    y *= x.mean()
    y.sum().backward()


def writes_a_part(x, y):
    y[0] = x[0] * x[1]
    y.sum().backward()


def writes_through_a_view(x, y):
    part = y.view(-1)
    part *= x
    part.sum().backward()


def writes_and_keeps_the_graph(x, y):
    y *= x.mean()
    y.sum().backward(retain_graph=True)


@pytest.mark.parametrize(
    "program", [writes_all, writes_a_part, writes_through_a_view, writes_and_keeps_the_graph], ids=lambda p: p.__name__
)
def test_an_input_written_with_a_graph_that_a_derivative_freed_has_none(program):
    found = []
    for function in (program, jit(program, fallback="error")):
        x, y = torch.linspace(0.5, 1.5, 3).requires_grad_(), torch.ones(3)
        function(x, y)
        try:
            y.sum().backward()
            refused = False
        except RuntimeError:
            refused = True
        found.append((refused, y.detach(), x.grad))
    assert found[1][0] == found[0][0]
    torch.testing.assert_close(found[1][1:], found[0][1:])


def test_backward_to_a_view_that_autograd_did_not_record_is_left_to_python():
    def program(x):
        with torch.no_grad():
            view = x.swapaxes(0, -1)
        (view**2).sum().backward(inputs=[view])
        return view.grad, x.grad

    with pytest.raises(AcquisitionError, match="a view, which was made without autograd"):
        jit(program, fallback="error")(torch.ones(2, 3, requires_grad=True))
    with pytest.warns(FallbackWarning):
        found = jit(program, fallback="split")(torch.ones(2, 3, requires_grad=True))
    expected = program(torch.ones(2, 3, requires_grad=True))
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_finds_nan_in_gradients_inside_of_a_program():
    def inside(x):
        with torch.autograd.detect_anomaly():
            (x.sqrt() * 0).sum().backward()
        return x.grad

    def around(x):
        (x.sqrt() * 0).sum().backward()
        return x.grad

    def run(function, value):
        return function(torch.tensor([value, 1.0], requires_grad=True))

    for compiled in (jit(inside), jit(around)):
        assert run(around, 0.0).isnan().any()
        with torch.autograd.set_detect_anomaly(True):
            for value in (0.0, 4.0, 0.0):
                if value:
                    assert torch.equal(run(compiled, value), torch.zeros(2))
                else:
                    with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                        run(compiled, value)
    assert run(jit(around), 0.0).isnan().any()


def test_backward_of_a_gradient_reaches_what_only_that_reads():
    def penalty(x, weight, other):
        y = torch.tanh(x @ other) @ weight
        (gradient,) = grad(y.sum(), x, create_graph=True)
        (gradient.norm(dim=1) - 1).square().mean().backward()
        return weight.grad, other.grad

    def leaves():
        torch.manual_seed(0)
        return [torch.randn(3, 3, requires_grad=True) for _ in range(3)]

    torch.testing.assert_close(jit(penalty, fallback="error")(*leaves()), penalty(*leaves()))


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.data.mul_(2),
        lambda t: setattr(t, "data", t.data * 2),
        lambda t: torch.no_grad()(torch.Tensor.mul_)(t, 2),
        lambda t: torch.no_grad()(torch.Tensor.zero_)(t[0]),
    ],
    ids=["data", "other data", "no_grad", "a part"],
)
@pytest.mark.parametrize("of_a_leaf", [True, False])
@pytest.mark.parametrize("asks", ["grad", "backward", "create_graph", "inputs", "retain_grad"])
def test_what_autograd_did_not_see_written_keeps_its_gradients(write, of_a_leaf, asks):
    def program(x, w):
        target = w if of_a_leaf else w + 1
        before = x + target
        if asks == "retain_grad" and not of_a_leaf:
            target.retain_grad()
        write(target)
        loss = (before + x * target).sum()
        if asks == "grad":
            return torch.autograd.grad(loss, target)
        loss.backward(create_graph=asks == "create_graph", inputs=[target] if asks == "inputs" else None)
        return target.grad.detach().clone() if target.is_leaf or target.retains_grad else None

    found = []
    for run in (program, jit(program)):
        torch.manual_seed(0)
        w = torch.randn(3, dtype=torch.float64, requires_grad=True)
        found.append([])
        for _ in range(3):
            result = run(torch.randn(2, 3, dtype=torch.float64), w)
            found[-1].append((result, w.detach().clone(), None if w.grad is None else w.grad.detach().clone()))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("write", [lambda t: t.data.mul_(2), lambda t: setattr(t, "data", t.data * 2)])
@pytest.mark.parametrize("asks", ["grad", "backward", "create_graph"])
def test_gradients_inside_of_what_was_overwritten_through_data_are_refused(write, asks):
    def program(x, w):
        y = (x * w).sum()
        write(w)
        if asks == "grad":
            return torch.autograd.grad(y, x)
        y.backward(create_graph=asks == "create_graph")
        return y.detach()

    x, w = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    with pytest.raises(AcquisitionError, match=r"writes through \.data to a tensor that autograd has saved"):
        jit(program)(x, w)


@pytest.mark.parametrize("asks", ["grad", "backward"])
def test_what_was_written_unseen_is_differentiated_again_after_a_graph_was_freed(asks):
    def program(x, w):
        with torch.no_grad():
            w.mul_(2)
        loss = (x * w).square().sum()
        if asks == "grad":
            torch.autograd.grad(loss, w)
        else:
            loss.backward()
        return (x * w).square().sum()

    found = []
    for run in (program, jit(program)):
        torch.manual_seed(0)
        x, w = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64, requires_grad=True)
        found.append([(torch.autograd.grad(run(x, w), w), w.detach().clone()) for _ in range(3)])
    torch.testing.assert_close(found[1], found[0])


def test_steps_through_data_go_on_inside_of_a_program():
    def program(x, w):
        for _ in range(3):
            (x @ w).square().sum().backward()
            w.data.sub_(w.grad, alpha=0.1)
            w.grad = None
        return (x @ w).sum().detach()

    found = []
    for run in (program, jit(program)):
        torch.manual_seed(0)
        w = torch.randn(3, dtype=torch.float64, requires_grad=True)
        found.append([(run(torch.randn(2, 3, dtype=torch.float64), w), w.detach().clone()) for _ in range(3)])
    torch.testing.assert_close(found[1], found[0])


def test_gradients_one_by_one_of_as_many_results_as_a_symbolic_size_says():
    def program(x):
        return torch.autograd.functional.jacobian(torch.sin, x, create_graph=True)

    compiled = jit(program)
    for rows in (3, 5, 4):
        x = torch.randn(rows, 2, dtype=torch.float64, requires_grad=True)
        torch.testing.assert_close(compiled(x), program(x))
        torch.testing.assert_close(grad(compiled(x).square().sum(), x), grad(program(x).square().sum(), x))


def test_a_derivative_goes_on_from_a_gradient_of_a_symbolic_size():
    def program(x):
        return grad(x.sin().reshape(-1)[1], x, create_graph=True)[0]

    compiled = jit(program)
    for rows in (3, 5, 4):
        x = torch.randn(rows, 2, dtype=torch.float64, requires_grad=True)
        torch.testing.assert_close(grad(compiled(x).square().sum(), x), grad(program(x).square().sum(), x))
