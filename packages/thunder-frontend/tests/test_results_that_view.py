"""Results that view what a program computes, and inputs that keep their gradients: autograd knows them as eager's."""

import pytest
import torch

from thunder_frontend import AcquisitionError, jit


def base_and_view(x):
    y = x * 3
    return y, y.view(2, 2)


def written_inside(x):
    y = x * 3
    y.view(2, 2)[0].mul_(2)
    return y, y.view(2, 2)


def view_alone(x):
    return (x * 3).view(2, 2)


def overlapping(x):
    y = x * 3
    a = y[:2]
    a.mul_(2)
    return a, y[1:]


def detached(x):
    y = x * 3
    return y, y.detach()


def view_without_gradients(x):
    y = x * 3
    with torch.no_grad():
        v = y.view(2, 2)
    return y, v


def several_at_once(x):
    return (x * 3).split(2)


def transposed(x):
    y = x * 3
    return y.view(2, 2).t(), y


def view_of_what_is_replaced(x):
    y = x * 3
    v = y.view(2, 2)
    y = y + 1
    return v, y


def sum_of_the_base(x):
    y = x * 3
    return y[1:], y, y.sum()


def sum_of_the_view(x):
    y = x * 3
    return y[1:], y[1:].sum()


def product_of_the_view(x):
    y = x * 3
    v = y.view(2, 2)
    return y, v, v * 2


def product_of_one_of_two_views(x):
    y = x * 3
    u, v = y[:2], y[1:]
    return u, v, v * u.sum()


def product_of_a_view_of_a_view(x):
    y = x * 3
    v = y.view(2, 2)
    w = v.t()
    return v, w, y, w * v, w[0] * 2


def product_of_a_view_written_inside(x):
    y = x * 3
    v = y.view(2, 2)
    z = v * 5
    v[0].mul_(2)
    return y, z, v, v * y.view(2, 2)


def product_of_a_view_written_unseen(x):
    y = x * 3
    z = y * 5
    v = y.view(2, 2)
    with torch.no_grad():
        v.add_(1)
    return v, y, z, v * 2


def product_of_a_hooked_view(x):
    y = x * 3
    v = y.view(2, 2)
    v.register_hook(lambda gradient: gradient * 10)
    return y, v, v * 2


def view_of_a_hooked_view(x):
    y = x * 3
    v = y.view(2, 2)
    v.register_hook(lambda gradient: gradient * 10)
    return y, v[0], v * 2


def hook_and_write(results):
    results[0].register_hook(lambda gradient: gradient * 7)
    results[1 % len(results)].mul_(2)
    results[0].register_hook(lambda gradient: gradient * 11)


ACTIONS = {
    "nothing": lambda results: None,
    "write to the last": lambda results: results[-1].mul_(2) is None,
    "write to the first": lambda results: results[0].mul_(2) is None,
    "write to the second": lambda results: results[1 % len(results)].mul_(2) is None,
    "write to a view of the first": lambda results: results[0].view(-1).mul_(3) is None,
    "write unseen": lambda results: results[0].data.mul_(3) is None,
    "hook the first": lambda results: results[0].register_hook(lambda gradient: gradient * 7) is None,
    "hook the second": lambda results: results[1 % len(results)].register_hook(lambda gradient: gradient * 7) is None,
    "hook, write, hook": hook_and_write,
    "detach the first": lambda results: results[0].detach_() is None,
    "detach the last": lambda results: results[-1].detach_() is None,
}
PROGRAMS = (
    base_and_view, written_inside, view_alone, overlapping, detached, view_without_gradients, several_at_once, transposed,
    view_of_what_is_replaced, sum_of_the_base, sum_of_the_view, product_of_the_view, product_of_one_of_two_views,
    product_of_a_view_of_a_view, product_of_a_view_written_inside, product_of_a_view_written_unseen,
    product_of_a_hooked_view, view_of_a_hooked_view,
)  # fmt: skip


def outcome(act):
    try:
        return act()
    except Exception as error:
        return type(error).__name__


def session(program, action):
    """Return what comes of doing something with the results of a program, and of differentiating them then."""
    x = torch.arange(4.0, requires_grad=True)
    results = program(x)
    results = results if isinstance(results, tuple) else (results,)
    before = [t._version for t in results]
    found = [outcome(lambda: action(results))]
    for t, version in zip(results, before, strict=True):
        base = [i for i, other in enumerate(results) if t._base is other]
        facts = t._is_view(), base, t._version - version
        found.append(outcome(lambda t=t, facts=facts: (*facts, t.requires_grad, t.is_leaf)))
    total = sum([(t * t).sum() for t in results if t.requires_grad]) if found[0] in (None, False) else None
    found.append(outcome(lambda: torch.autograd.grad(total, x)[0].tolist()))
    return found, [outcome(t.tolist) for t in results]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_results_are_views_where_eagers_are(program, action):
    results = []
    for function in (program, jit(program)):
        try:
            results.append(session(function, ACTIONS[action]))
        except RuntimeError as error:  # autograd forbids it afterwards
            results.append(str(error)[:40])
    assert results[1] == results[0]


def test_results_that_others_are_computed_of_get_their_gradients():
    found = []
    for function in (sum_of_the_view, jit(sum_of_the_view)):
        x = torch.arange(4.0, requires_grad=True)
        part, total = function(x)
        part.retain_grad()
        (part.sum() + total).backward()
        found.append((part.grad, x.grad))
    torch.testing.assert_close(found[1], found[0])


def read_and_written(x):
    y = x * 5
    x.mul_(2)
    return x.sum(), y, (x * x).sum()


def view_of_what_is_written(x):
    x.tanh_()
    return x.view(-1).sin() * x.sum()


def total_of_what_is_written(x):
    x.mul_(2)
    return x.sum()


def view_of_what_is_multiplied(x):
    x.mul_(2)
    return x.view(2, 2).t().sum()


def returned(x):
    x.mul_(2)
    return x, x.exp()


def retained(x):
    x.retain_grad()


def hooked(x):
    x.register_hook(lambda gradient: gradient * 7)


def written_again(x):
    x.mul_(3)


WRITING = (
    read_and_written, view_of_what_is_written, total_of_what_is_written, view_of_what_is_multiplied, returned,
)  # fmt: skip
SAVE_IT = (read_and_written, view_of_what_is_written)
"""Of what these write to autograd saves something, so that nobody may write to it again."""


@pytest.mark.parametrize(
    ("program", "after"),
    [
        (p, a)
        for p in WRITING
        for a in (None, retained, hooked, written_again)
        if p not in SAVE_IT or a != written_again
    ],
)
@pytest.mark.parametrize("before", [None, retained, hooked])
def test_what_is_computed_of_an_input_that_was_written_leads_to_it(program, before, after):
    def called(function, only_input):
        leaf = torch.linspace(0.1, 1.0, 4, requires_grad=True)
        x = leaf * 1
        if before is not None:
            before(x)
        results = function(x)
        if after is not None:
            after(x)
        results = results if isinstance(results, tuple) else (results,)
        total = sum([(i + 1) * (t * t).sum() for i, t in enumerate(results)])
        if only_input:
            (gradient,) = torch.autograd.grad(total, x, create_graph=True, allow_unused=True)
            return None if gradient is None else [gradient, *torch.autograd.grad(gradient.square().sum(), leaf)]
        total.backward()
        return [leaf.grad, x.grad if x.retains_grad else None]

    compiled = jit(program, fallback="error")
    for only_input in (False, True, False):
        torch.testing.assert_close(called(compiled, only_input), called(program, only_input))


def writes_beside_a_view(x, view):
    x.mul_(3)
    return x.sum() + view.sum()


def changes_metadata(x, view):
    x.mul_(2)
    x.t_()
    return (x * x).sum()


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("program", [writes_beside_a_view, changes_metadata], ids=lambda p: p.__name__)
def test_an_input_that_keeps_its_gradient_is_not_written_to_where_what_is_computed_of_it_does_not_lead_to_it(
    program, shares
):
    def called(function, retains=True):
        leaf = torch.linspace(-1, 1, 4, requires_grad=True)
        x = leaf.view(2, 2) * 1
        if retains:
            x.retain_grad()
        function(x, x[:1] if shares else torch.ones(2)).backward()
        return [leaf.grad, x.grad if retains else None]

    compiled = jit(program, fallback="error")
    torch.testing.assert_close(called(compiled, retains=False), called(program, retains=False))
    if shares or program is changes_metadata:
        with pytest.raises(AcquisitionError, match="which keeps its gradient"):
            called(compiled)
    torch.testing.assert_close(called(jit(program, fallback="split")), called(program))


def test_an_input_that_gets_its_history_inside_has_the_gradient_of_what_is_computed_of_it():
    def program(x, w):
        x.mul_(w)
        return (x * x).sum()

    found = []
    for function in (program, jit(program, fallback="error")):
        x, w = torch.arange(4.0), torch.arange(4.0, requires_grad=True)
        found.append(torch.autograd.grad(function(x, w), (x, w)))
    torch.testing.assert_close(found[1], found[0])


def hooked_view(x):
    v = (x * 3).view(2, 2)
    v.register_hook(lambda gradient: gradient * 10)
    return v


def base_of_hooked_view(x):
    y = x * 3
    v = y.view(2, 2)
    v.register_hook(lambda gradient: gradient * 10)
    return y, v[0]


def view_of_hooked(x):
    y = x * 3
    y.register_hook(lambda gradient: gradient * 10)
    return y.view(2, 2)


@pytest.mark.parametrize("program", [hooked_view, base_of_hooked_view, view_of_hooked], ids=lambda p: p.__name__)
def test_hooks_on_views_are_called(program):
    found = []
    for function in (program, jit(program)):
        x = torch.arange(4.0, requires_grad=True)
        results = function(x)
        results = results if isinstance(results, tuple) else (results,)
        sum([(t * (i + 1)).sum() for i, t in enumerate(results)]).backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


def test_hooks_on_views_of_inputs_that_leave_the_program_are_refused():
    def program(x):
        v = x.view(2, 2)
        v.register_hook(lambda gradient: gradient * 10)
        return v

    with pytest.raises(AcquisitionError, match="a hook on a view of an input"):
        jit(program, fallback="error")(torch.arange(4.0, requires_grad=True) * 1)


LINEAR = torch.nn.Linear(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        LINEAR,
        lambda x: (LINEAR(x), x * 2),
        lambda x: torch.einsum("bij,kj->bik", x, LINEAR.weight),
        lambda x: torch.nn.functional.conv1d(x, LINEAR.weight[:, :, None].expand(3, 2, 1)),
    ],
    ids=["linear", "one of two", "einsum", "conv1d"],
)
def test_a_result_that_viewed_what_a_kernel_made_inside_can_be_written_to(function):
    def gradients(f):
        x = torch.linspace(-1, 1, 8).view(2, 2, 2).requires_grad_()
        found = f(x)
        first = found[0] if isinstance(found, tuple) else found
        first.mul_(2)
        first[0] = 1.0
        first.square().sum().backward()
        grads = [x.grad, *[p.grad for p in LINEAR.parameters()]]
        LINEAR.zero_grad()
        return first.detach(), grads

    compiled = jit(function, fallback="error")
    for _ in range(2):
        torch.testing.assert_close(gradients(compiled), gradients(function))


BESIDE = {
    "cat": lambda y: torch.cat([y, y]),
    "flip": lambda y: y.flip(0),
    "pad": lambda y: torch.nn.functional.pad(y, (1, 1)),
    "repeat": lambda y: y.repeat(2, 1),
    "reshape that copies": lambda y: y.t().reshape(-1),
    "reshape that views": lambda y: y.reshape(-1),
    "view of a copy": lambda y: y.t().reshape(2, 3).view(-1),
}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", BESIDE)
def test_a_result_computed_of_another_by_moving_elements_can_be_written_to(name, which):
    def program(x):
        y = x * 2
        return y, BESIDE[name](y)

    found = []
    for function in (program, jit(program, fallback="error")):
        x = torch.arange(6.0).view(2, 3).requires_grad_()
        results = function(x)
        results[which].mul_(3)
        sum([(t * (i + 1)).sum() for i, t in enumerate(results)]).backward()
        found.append((results, x.grad))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize(
    "copies", [lambda v: v[[0]], lambda v: v.t().reshape(-1), lambda v: v[v > 0]], ids=["index", "reshape", "mask"]
)
def test_a_copy_of_a_result_that_views_leads_to_it(copies):
    def program(x):
        view = torch.real(torch.complex(x, x))
        return copies(view), view

    found = []
    for function in (program, jit(program, fallback="error")):
        x = torch.arange(6.0).view(2, 3).requires_grad_()
        copy, view = function(x)
        found.append(
            (torch.autograd.grad(copy.sum(), [view, x], retain_graph=True), torch.autograd.grad(view.sum(), x))
        )
    torch.testing.assert_close(found[1], found[0])


def test_a_view_of_all_of_a_result_whose_size_changes_is_read():
    def program(x):
        view = (x * 2).expand(x.shape)
        return view, view.sqrt()

    compiled = jit(program, fallback="error")
    for size in (2, 3, 4):
        x, y = (torch.arange(1.0, size + 1).requires_grad_() for _ in range(2))
        found, expected = compiled(x), program(y)
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
        (found[0].sum() + found[1].sum()).backward()
        (expected[0].sum() + expected[1].sum()).backward()
        torch.testing.assert_close(x.grad, y.grad)
