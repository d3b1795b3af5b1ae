"""Hooks on gradients: of the compiled module, of its parts, and of tensors inside of a program."""

import pytest
import torch
from torch import nn

from thunder_frontend import AcquisitionError, cache_misses, jit


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


class Pair(nn.Module):
    """Takes and returns several things."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3).double()

    def forward(self, a, b, index, scale=None):
        picked = a[index]
        return self.linear(picked) * b, picked + 1, 5, b if scale is None else b * scale


class Around(nn.Module):
    """Calls a :class:`Pair`."""

    def __init__(self, pair):
        super().__init__()
        self.pair = pair

    def forward(self, a, b):
        first, _, count, last = self.pair(a * 2, b, torch.arange(2), scale=a)
        return first.sum() + last.sum() * count


def seen_by_hooks(module, compiled, seen):
    """Return what hooks saw and the gradients, of two calls."""
    torch.manual_seed(1)
    for _ in range(2):
        x = leaf(2, 3)
        (compiled(x, x.detach().square()) if isinstance(module, Around) else compiled(x)).sum().backward()
        seen.append(x.grad)
    return seen, [p.grad for p in module.parameters()]


def on_a_part(module, seen):
    module[1].register_full_backward_hook(lambda m, dx, dy: seen.append((dx, dy)))


def on_the_whole(module, seen):
    module.register_full_backward_hook(lambda m, dx, dy: seen.append((dx, dy)))
    module.register_full_backward_pre_hook(lambda m, dy: seen.append(dy))


def changing(module, seen):
    module[1].register_full_backward_hook(lambda m, dx, dy: (dx[0] * 2 + dy[0].sum(),))
    module[2].register_full_backward_pre_hook(lambda m, dy: (dy[0] * 3,))
    module.register_full_backward_hook(lambda m, dx, dy: (dx[0].cos(),))


def several(module, seen):
    module[1].register_full_backward_hook(lambda m, dx, dy: (dx[0] * 2,))
    module[1].register_full_backward_hook(lambda m, dx, dy: seen.append(dx))
    module[1].register_full_backward_hook(lambda m, dx, dy: (dx[0] + 1,), prepend=True)


def without_gradients_of_inputs(module, seen):
    module[0].requires_grad_(False)
    module[1].requires_grad_(False)
    module[2].register_full_backward_hook(lambda m, dx, dy: seen.append((dx, dy)))


@pytest.mark.parametrize("register", [on_a_part, on_the_whole, changing, several, without_gradients_of_inputs])
def test_hooks_see_and_change_what_they_do_in_eager(register):
    found = []
    for wrap in (lambda m: m, jit):
        torch.manual_seed(0)
        module, seen = network(), []
        compiled = wrap(module)
        register(module, seen)
        found.append(seen_by_hooks(module, compiled, seen))

    torch.testing.assert_close(found[1], found[0])


def test_hooks_see_all_arguments_and_results():
    found = []
    for wrap in (lambda m: m, jit):
        torch.manual_seed(0)
        module, seen = Around(Pair()), []
        module.pair.register_full_backward_hook(lambda m, dx, dy, seen=seen: seen.append((dx, dy)))
        found.append(seen_by_hooks(module, wrap(module), seen))

    assert [type(g) for g in found[1][0][0][1]] == [type(g) for g in found[0][0][0][1]]
    torch.testing.assert_close(found[1], found[0])


def test_hooks_registered_on_the_compiled_module_are_called():
    seen = []
    compiled = jit(network())
    compiled.register_full_backward_hook(lambda m, dx, dy: seen.append(dy))
    compiled(leaf(2, 3)).sum().backward()

    torch.testing.assert_close(seen, [(torch.ones(2, 2, dtype=torch.float64),)])


def test_hooks_of_all_modules_are_called():
    seen = []
    handle = nn.modules.module.register_module_full_backward_hook(lambda m, dx, dy: seen.append(type(m).__name__))
    try:
        jit(network())(leaf(2, 3)).sum().backward()
    finally:
        handle.remove()

    assert seen == ["Linear", "Tanh", "Linear", "Sequential"]


def test_blocks_that_repeat_have_hooks_of_their_own():
    blocks = nn.Sequential(*[nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(4)]).double()
    seen = []
    for block in blocks:
        block.register_full_backward_hook(lambda m, dx, dy: seen.append(m))
    jit(blocks)(leaf(2, 3)).sum().backward()

    assert [id(m) for m in seen] == [id(m) for m in reversed(blocks)]


def test_hooks_may_come_and_go():
    module = network()
    compiled, x = jit(module), leaf(2, 3)

    def gradient():
        return torch.autograd.grad(compiled(x).sum(), x)[0]

    plain = gradient()
    for factor in (2, 3):
        handle = module[0].register_full_backward_hook(lambda m, dx, dy, factor=factor: (dx[0] * factor,))
        torch.testing.assert_close(gradient(), plain * factor)
        handle.remove()
        torch.testing.assert_close(gradient(), plain)
    assert cache_misses(compiled) == 3


def test_hooks_of_an_embedding_are_called_though_its_input_has_no_gradient():
    module, seen = nn.Embedding(5, 3), []
    module.register_full_backward_hook(lambda m, dx, dy: seen.append((dx, dy)))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        jit(module)(torch.arange(4)).sum().backward()

    torch.testing.assert_close(seen, [((None,), (torch.ones(4, 3),))])


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        (lambda m, dx, dy: (dx[0], dx[0]), "invalid number of grad_input"),
        (lambda m, dx, dy: (dx[0].sum(),), "changed the size of value"),
        (lambda m, dx, dy: (dx[0].float(),), "changed the type of value"),
    ],
)
def test_hooks_that_return_something_wrong_are_refused(hook, error):
    module = network()
    module[1].register_full_backward_hook(hook)
    with pytest.raises(RuntimeError, match=error):
        jit(module)(leaf(2, 3)).sum().backward()


def test_what_passes_hooks_may_not_be_written_to_as_in_eager():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True)).double()
    module[1].register_full_backward_hook(lambda m, dx, dy: None)
    for run in (module, jit(module)):
        with pytest.raises(RuntimeError, match="is being modified inplace"):
            run(leaf(2, 3))


def test_second_derivatives_through_hooks_are_refused():
    module = network()
    module[1].register_full_backward_hook(lambda m, dx, dy: None)
    x = leaf(2, 3)
    with pytest.raises(RuntimeError, match="a second derivative would run thunder_tracing.call_hooks again"):
        torch.autograd.grad(jit(module)(x).sum(), x, create_graph=True)


def test_hooks_of_the_old_kind_are_refused():
    module = network()
    module[1].register_backward_hook(lambda m, dx, dy: None)
    with pytest.raises(AcquisitionError, match="use register_full_backward_hook"):
        jit(module)(leaf(2, 3))


SEEN = []


def hooked_inside(x):
    y = x.sin()
    z = y * 2
    y.register_hook(lambda g: g * 3)
    y.register_hook(SEEN.append)
    y.register_hook(lambda g: g + 1)
    return z + y


def test_hooks_on_tensors_inside_are_called_in_order():
    x = leaf(3)
    found = []
    for function in (hooked_inside, jit(hooked_inside)):
        SEEN.clear()
        found.append([torch.autograd.grad(function(x).sum(), x)[0] for _ in range(2)] + SEEN)

    torch.testing.assert_close(found[1], found[0])


def reads_a_tensor_of_the_program(x):
    y = x.sin()
    y.register_hook(lambda g: g * y.detach())
    return y


def on_an_input(x):
    x.register_hook(lambda g: g * 2)
    return x.sin()


@pytest.mark.parametrize(
    ("function", "error"),
    [(reads_a_tensor_of_the_program, "reads what the compiled program made"), (on_an_input, "register it outside")],
)
def test_hooks_inside_that_have_no_place_are_refused(function, error):
    with pytest.raises(AcquisitionError, match=error):
        jit(function)(leaf(3))


def test_a_hook_on_what_has_no_gradient_is_refused_as_in_eager():
    def function(x):
        x.sin().register_hook(lambda g: g)

    for run in (function, jit(function)):
        with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
            run(torch.ones(3))


def test_hooks_on_saved_tensors_inside_are_refused_rather_than_passed_over():
    def function(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
            return x.sin()

    with pytest.raises(AcquisitionError, match="saved_tensors_hooks inside of a compiled program"):
        jit(function)(leaf(3))


def test_where_saved_tensors_are_kept_is_up_to_the_program():
    def function(x):
        with torch.autograd.graph.save_on_cpu():
            y = x.sin()
        return y * x

    x = leaf(3)
    torch.testing.assert_close(
        torch.autograd.grad(jit(function)(x).sum(), x), torch.autograd.grad(function(x).sum(), x)
    )


def test_hooks_on_results_of_which_others_are_computed_change_what_they_do_in_eager():
    def program(x):
        y = x * x
        return y, (y * 3).sum() + x.sum()

    found, compiled = [], jit(program)
    for function in (program, compiled, compiled):
        x, seen = torch.ones(3, requires_grad=True), []
        y, total = function(x)
        y.register_hook(lambda gradient: gradient * 10)
        y.register_hook(seen.append)
        total.backward()
        found.append([x.grad, *seen])
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


def test_hooks_on_results_that_are_gone_are_called():
    found = []
    for function in (with_dropout, jit(with_dropout)):
        torch.manual_seed(0)
        x = torch.ones(3, requires_grad=True)
        loss, h = function(x)
        h.register_hook(lambda gradient: gradient * 10)
        del h
        loss.backward(retain_graph=True)
        loss.backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


def with_dropout(x):
    h = torch.nn.functional.dropout(x.sin(), 0.5)
    return (h * h).sum() + x.sum(), h


def test_hooks_on_results_that_others_view_are_called():
    def program(x):
        y = x * x
        return y, y[1:]

    found = []
    for function in (program, jit(program)):
        x = torch.ones(3, requires_grad=True)
        y, part = function(x)
        y.register_hook(lambda gradient: gradient * 10)
        part.sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("written", [1, 2])
def test_writes_to_results_that_view_one_another_are_written_to_all_of_them(written):
    def program(x):
        first = x * 2
        y = first.sin()
        return first, y, y.view(9)

    found = []
    for function in (program, jit(program)):
        x = torch.ones(3, 3, requires_grad=True)
        results = function(x)
        results[written].mul_(3)
        results[2].sum().backward()
        found.append((x.grad, *[r.detach() for r in results]))
    torch.testing.assert_close(found[1], found[0])


def test_results_computed_of_a_view_that_was_written_are_differentiated():
    def program(x):
        y = x * x
        return y, (part := y.view(9)), part.sum()

    found = []
    for function in (program, jit(program)):
        x = torch.ones(3, 3, requires_grad=True)
        y, _, total = function(x)
        y.mul_(2)
        found.append(torch.autograd.grad(total, x))
    torch.testing.assert_close(found[1], found[0])


def twice(result):
    result.sum().backward(retain_graph=True)
    result.square().sum().backward()
    return result.detach()


def twice_through_a_tensor(x, w):
    y = (x * w).sin()
    y.register_hook(lambda g: g * 2)
    return twice(y * x)


def twice_through_a_module(x, w):
    module = nn.Tanh()
    module.register_full_backward_pre_hook(lambda m, dy: (dy[0] * 2,))
    module.register_full_backward_hook(lambda m, dx, dy: (dx[0] + 1,))
    return twice(module(x * w))


@pytest.mark.parametrize("function", [twice_through_a_tensor, twice_through_a_module])
def test_two_gradients_inside_pass_the_same_hooks(function):
    x, found = torch.randn(3, dtype=torch.float64), []
    w = leaf(3)
    for run in (function, jit(function)):
        w.grad = None
        found.append([(run(x, w), w.grad.clone()) for _ in range(3)])
    torch.testing.assert_close(found[1], found[0])


def test_hooks_see_the_gradients_of_what_was_computed_before_a_write_that_autograd_did_not_see():
    def program(x, w):
        y = x * w
        before = y + 1
        with torch.no_grad():
            y.mul_(2)
        y.register_hook(lambda g: g * 3)
        return before + y

    x, found = torch.randn(3, dtype=torch.float64), []
    for run in (program, jit(program)):
        torch.manual_seed(0)
        w = leaf(3)
        found.append([torch.autograd.grad(run(x, w).sum(), w)[0] for _ in range(3)])
    torch.testing.assert_close(found[1], found[0])


def on_what_is_read(x, w):
    y = (x * w).exp()
    (y * 2).sum().backward(retain_graph=True)
    y.register_hook(lambda g: g * 3)
    return y * 3


def on_the_result_alone(x, w):
    y = (x * w).exp()
    y.sum().backward(retain_graph=True)
    y.register_hook(lambda g: g * 3)
    return y.detach()


def between_two_gradients(x, w):
    y = (x * w).exp()
    y.register_hook(lambda g: g * 2)
    y.sum().backward(retain_graph=True)
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    return y.detach()


@pytest.mark.parametrize("function", [on_what_is_read, on_the_result_alone, between_two_gradients])
def test_gradients_inside_do_not_pass_hooks_that_are_registered_later(function):
    x, found = torch.randn(3, dtype=torch.float64), []
    w = leaf(3)
    if function is not between_two_gradients:  # of which the first one is written out where it stands
        with pytest.raises(AcquisitionError, match="behind a backward"):
            jit(function)(x, w)
    for run in (function, jit(function, fallback="split")):
        w.grad, seen = None, []
        for _ in range(3):
            result = run(x, w)
            seen.append((result, w.grad.clone()))
            if result.requires_grad:
                result.sum().backward()
                seen.append(w.grad.clone())
        found.append(seen)
    torch.testing.assert_close(found[1], found[0])
