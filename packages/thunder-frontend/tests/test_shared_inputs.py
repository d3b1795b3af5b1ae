"""Writes to inputs that share memory: values, histories and gradients are eager's, whichever of them is written."""

import pytest
import torch

from thunder_frontend import AcquisitionError, cache_misses, jit


def leaf(*shape):
    return torch.linspace(-1, 2, torch.Size(shape).numel()).reshape(shape).clone().requires_grad_()


def twice():
    base = leaf(2, 3)
    tensor = base * 1
    return (tensor, tensor), base


def base_and_row():
    base = leaf(2, 3)
    tensor = base * 1
    return (tensor, tensor[1]), base


def row_and_base():
    base = leaf(2, 3)
    tensor = base * 1
    return (tensor[1], tensor), base


def base_and_transpose():
    base = leaf(3, 3)
    tensor = base * 1
    return (tensor, tensor.t()), base


def overlapping_parts():
    base = leaf(6)
    tensor = base * 1
    return (tensor[:4], tensor[2:]), base


def parts_of_a_transposed():
    base = leaf(4, 3)
    tensor = base.t() * 2
    return (tensor[:, 1:], tensor[1:]), base


def base_and_detached():
    base = leaf(2, 3)
    tensor = base * 1
    return (tensor, tensor.detach()), base


def detached_and_part():
    base = leaf(6)
    tensor = base * 1
    return (tensor.detach()[1:], tensor[:3]), base


def base_and_another_type():
    base = leaf(2, 3)
    tensor = base * 1
    return (tensor, tensor.detach().view(torch.int32)), base


def without_gradients():
    base = leaf(2, 3)
    tensor = base.detach().clone()
    return (tensor[0], tensor), base


def parameter_and_part():
    parameter = torch.nn.Parameter(leaf(2, 3).detach())
    return (parameter, parameter.detach()[1:]), parameter


ARGUMENTS = [
    twice, base_and_row, row_and_base, base_and_transpose, overlapping_parts, parts_of_a_transposed, base_and_detached,
    detached_and_part, base_and_another_type, without_gradients, parameter_and_part,
]  # fmt: skip


def writes_the_first(x, y):
    x.mul_(2)
    return (y * y,)


def writes_the_second(x, y):
    y.add_(1)
    return x * x, y


def writes_both(x, y):
    before = x * 3
    x.mul_(2)
    y.add_(x.sum().to(y.dtype))
    return before, x * y.sum()


def writes_unseen(x, y):
    with torch.no_grad():
        x.mul_(2)
        y.add_(1)
    return x * x, y * y


def writes_through_data(x, y):
    x.data.mul_(2)
    return x * x, y * 2


def writes_views(x, y):
    first, other = x[0], y.view(-1)
    first.mul_(3)
    other[:2].add_(1)
    return first, other, x * x


def gives_a_history(x, y):
    x.mul_(torch.full((), 2.0, requires_grad=True))
    return x * 2, y * 2


def flips(x, y):
    x.requires_grad_()
    return x * 2, y * 3


def detaches(x, y):
    y.detach_()
    x.add_(1)
    return x * 2, y * 3


PROGRAMS = [
    writes_the_first, writes_the_second, writes_both, writes_unseen, writes_through_data, writes_views,
    gives_a_history, flips, detaches,
]  # fmt: skip


def attempt(function, make, calls):
    """Return what calls leave behind: results, arguments, gradients, or the exception."""
    arguments, base = make()
    try:
        for _ in range(calls):
            results = function(*arguments)
    except (RuntimeError, IndexError) as error:
        return type(error).__name__
    tensors = [*results, *arguments]
    state = [(t.detach().clone(), t.requires_grad, t.stride()) for t in tensors]
    given = [t for t in tensors if t.requires_grad]
    total = sum([(i + 1) * t.sum() for i, t in enumerate(given)]) if given else None
    gradient = torch.autograd.grad(total, base, allow_unused=True) if given and base.requires_grad else None
    return state, gradient


def same(ours, eagers):
    if isinstance(ours, str) or isinstance(eagers, str):
        assert ours == eagers
    else:
        torch.testing.assert_close(ours, eagers)


@pytest.mark.parametrize("make", ARGUMENTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_writes_reach_all_that_share_the_memory(program, make):
    for calls in (1, 2):
        same(attempt(jit(program), make, calls), attempt(program, make, calls))


def test_a_program_for_one_way_of_sharing_is_not_used_for_another():
    compiled = jit(writes_both)
    for make in (*ARGUMENTS, *ARGUMENTS):
        same(attempt(compiled, make, 1), attempt(writes_both, make, 1))
    before = cache_misses(compiled)
    attempt(compiled, overlapping_parts, 1)
    assert cache_misses(compiled) == before


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("row", self.weight.detach()[0])

    def forward(self, x):
        y = self.weight * x
        self.row.mul_(0.5)
        return y + self.weight


def test_a_buffer_that_views_a_parameter_is_written():
    results = []
    for compile in (lambda module: module, jit):
        module = Tied()
        function = compile(module)
        for _ in range(3):
            result = function(torch.ones(3))
            result.sum().backward()
        results.append((result, module.weight, module.row, module.weight.grad))
    torch.testing.assert_close(results[1], results[0])


def test_a_view_whose_history_is_fixed_is_refused():
    def program(x, y):
        y.detach().add_(1)
        return x * 2

    base = leaf(2, 3)
    tensor = base * 1
    with pytest.raises(AcquisitionError, match="pass a clone"):
        jit(program)(tensor.unbind(0)[0], tensor)


def views_made_under_no_grad(x):
    with torch.no_grad():
        view = x[0]
    return view * 2, view.requires_grad, view.is_leaf, view[1:] * x[1, 1:]


def views_made_before_a_leaf(x):
    y = x.detach() * 2
    view = y[0]
    y.requires_grad_()
    return view * 2, view.requires_grad, y, view


def writes_a_view_that_nothing_read(x):
    y = torch.zeros(2, 3)
    view = y[0]
    y[1] = x.sum()
    view.add_(1)


def writes_a_part_of_such_a_view(x):
    y = torch.zeros(2, 3)
    view = y[0]
    y[1] = x.sum()
    view[0] = 1
    return y, view


@pytest.mark.parametrize(
    "program",
    [
        views_made_under_no_grad, views_made_before_a_leaf, writes_a_view_that_nothing_read,
        writes_a_part_of_such_a_view,
    ],
)  # fmt: skip
def test_views_made_where_nothing_was_recorded_require_grad_all_the_same(program):
    found = []
    for function in (program, jit(program)):
        x = leaf(2, 3)
        try:
            results = function(x)
        except RuntimeError as error:
            found.append(type(error).__name__)
            continue
        tensors = [r for r in results if isinstance(r, torch.Tensor)]
        total = sum([t.sum() * (i + 1) for i, t in enumerate(tensors)])
        gradient = torch.autograd.grad(total, x, allow_unused=True)[0]
        found.append(([t.requires_grad for t in tensors], results, gradient if gradient is not None else 0 * x))
    same(found[1], found[0])


def writes_where_gradients_are_enabled(x, view):
    with torch.enable_grad():
        doubled = view * 2
        view.add_(1)
        return doubled, view * 3


def reads_beside_a_write(x, view):
    with torch.enable_grad():
        x.add_(1)
        return view.square(), x * 2


@pytest.mark.parametrize("program", [writes_where_gradients_are_enabled, reads_beside_a_write])
def test_views_of_inputs_keep_their_history_where_the_caller_records_nothing(program):
    found = []
    for function in (program, jit(program, fallback="error")):
        x = leaf(2, 3)
        base = x * 1
        view = base.view(-1)
        with torch.no_grad():
            results = function(base, view)
        sum([t.sum() for t in (*results, base)]).backward()
        found.append((results, base.detach(), x.grad))
    same(found[1], found[0])
