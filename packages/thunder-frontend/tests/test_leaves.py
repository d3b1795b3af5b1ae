"""Leaves that a program makes: what autograd and the caller see of them is what eager shows."""

import copy

import pytest
import torch
from against_eager import module_same_as_eager, same_as_eager
from torch import randn

from thunder_frontend import AcquisitionError, cache_misses, jit


def returned_alone(x):
    return torch.zeros(3).requires_grad_()


def by_the_factory(x):
    leaf = torch.ones(3, requires_grad=True)
    return leaf, leaf * x, leaf.is_leaf, leaf.grad


def of_a_detached_input(x):
    leaf = x.detach().requires_grad_()
    return leaf, leaf * 2, torch.autograd.grad((leaf * leaf).sum(), leaf)[0]


def begun_and_ended(x):
    leaf = torch.zeros(3).requires_grad_()
    leaf.requires_grad_(False)
    return leaf.add_(1)


def written_unseen(x):
    leaf = (x * 2).detach().requires_grad_()
    part = leaf[1:]
    with torch.no_grad():
        part.add_(1)
    return leaf, part, leaf * x


def a_parameter_of_an_input(x):
    parameter = torch.nn.Parameter(x.detach())
    with torch.no_grad():
        parameter.add_(1)
    return parameter, parameter * 2, x + 1


def parameters_without_gradients(x):
    return torch.nn.Parameter(x.detach(), requires_grad=False), torch.nn.Parameter(x * 2, requires_grad=False)


def descends(x):
    weights = torch.zeros(3).requires_grad_()
    for _ in range(3):
        (gradient,) = torch.autograd.grad(((weights - x) ** 2).sum(), weights)
        with torch.no_grad():
            weights -= 0.1 * gradient
    return weights


def a_module_made_inside(x):
    module = torch.nn.Linear(3, 3)
    gradients = torch.autograd.grad(module(x).sum(), list(module.parameters()))
    return module.weight, module(x), [g.detach() for g in gradients]


def gradient_penalty(x):
    mixed = (x * 2).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(mixed.sin().sum(), mixed, create_graph=True)
    return (gradient.norm() - 1) ** 2 + x.sum()


def written(x):
    return torch.zeros(3).requires_grad_().add_(x)


def view_written(x):
    torch.zeros(3).requires_grad_()[1:].add_(1)


def of_integers(x):
    return torch.zeros(3, dtype=torch.int64).requires_grad_()


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        returned_alone, by_the_factory, of_a_detached_input, begun_and_ended, written_unseen, a_parameter_of_an_input,
        parameters_without_gradients, descends, a_module_made_inside, gradient_penalty, written, view_written,
        of_integers,
    ],
)  # fmt: skip
def test_leaves_made_inside_are_eagers(program, requires_grad):
    same_as_eager(program, randn(3, requires_grad=requires_grad))


def test_gradients_reach_a_leaf_made_inside():
    compiled = jit(by_the_factory)
    for _ in range(2):
        leaf, result, *_ = compiled(torch.tensor([1.0, 2.0, 3.0]))
        (result * 2).sum().backward()
        assert torch.equal(leaf.grad, torch.tensor([2.0, 4.0, 6.0]))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (torch.rand(3), torch.rand(3))[1],
        lambda x: (torch.nn.functional.dropout(x), torch.rand(3))[1],
        lambda x: (torch.zeros(3).normal_(), torch.rand(3))[1],
        lambda x: (torch.nn.init.xavier_normal_(torch.zeros(3, 3)), torch.rand(3))[1],
        lambda x: (torch.rand(3), x * 2)[1] * torch.nn.functional.dropout(x),
    ],
)
def test_numbers_drawn_for_nothing_are_drawn_all_the_same(program):
    same_as_eager(program, randn(3, requires_grad=True))


def begins_after_it_was_read(x):
    before, view = x * 2, x.view(-1)
    x.requires_grad_()
    return before, x * 3, before + x * x, view.detach(), x


def begins_and_ends(x):
    x.requires_grad_()
    y = x * 3
    x.requires_grad_(False)
    return y.detach(), x * 2, x.requires_grad, x.is_leaf


def ends(x):
    y = x * 2
    x.requires_grad_(False)
    return y.detach(), x * 3, x.requires_grad


def ends_and_begins(x):
    y = x * 2
    x.requires_grad = False
    z = x * 3
    x.requires_grad = True
    return y, z, x * 4


def differentiates_an_input(x):
    x.requires_grad_(True)
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return gradient, x.is_leaf


def steps_on_an_input(x):
    x.requires_grad_(True)
    (x**2).sum().backward()
    with torch.no_grad():
        x -= 0.1 * x.grad
    x.grad = None
    return x * 2


def steps_on_a_leaf_made_inside(x):
    leaf = x.detach().clone().requires_grad_()
    for _ in range(2):
        (leaf**2).sum().backward()
        with torch.no_grad():
            leaf -= 0.1 * leaf.grad
        leaf.grad = None
    return leaf * 2, leaf * leaf


def an_intermediate_begins_and_ends_and_begins(x):
    y = x.detach() * 2
    y.requires_grad_()
    z = y * 3
    y.requires_grad_(False)
    w = y * 4
    y.requires_grad_()
    return y, z, w, y * 5


def detaches_after_it_began(x):
    x.requires_grad_()
    y = x * 2
    x.detach_()
    return x.add_(1), y.detach()


def detaches_a_view_that_is_a_leaf(x):
    x.detach()[None].requires_grad_()
    x[None].detach().requires_grad_().detach_()
    x.detach()[None].requires_grad_().detach_()


def ends_what_is_no_leaf(x):
    (x * 2).requires_grad_().requires_grad_(False)


def writes_after_the_end(x):
    x.requires_grad_(False)
    x.add_(1)
    return x, x * 2


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        begins_after_it_was_read, begins_and_ends, ends, ends_and_begins, differentiates_an_input, steps_on_an_input,
        an_intermediate_begins_and_ends_and_begins, detaches_after_it_began, detaches_a_view_that_is_a_leaf,
        ends_what_is_no_leaf, writes_after_the_end, steps_on_a_leaf_made_inside,
    ],
)  # fmt: skip
def test_inputs_begin_and_end_to_require_grad_as_in_eager(program, requires_grad):
    same_as_eager(program, randn(3, requires_grad=requires_grad), calls=3)


class Freezes(torch.nn.Module):
    def __init__(self, *states):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.states = states

    def forward(self, x):
        results = []
        for state in self.states:
            self.first.requires_grad_(state)
            results.append(self.second(self.first(x).relu()))
        return results


@pytest.mark.parametrize("states", [(False,), (True,), (False, True), (True, False), (False, True, False)])
def test_a_program_freezes_parts_of_a_module(states):
    module_same_as_eager(lambda: Freezes(*states), randn(2, 3))


def test_a_module_that_is_frozen_is_unfrozen_inside():
    module_same_as_eager(lambda: Freezes(True).requires_grad_(False), randn(2, 3))


def test_an_input_stays_as_it_was_if_the_program_fails():
    def program(x, index):
        return (x.requires_grad_() * 2)[index]

    compiled = jit(program)
    with pytest.raises(IndexError):
        compiled(randn(3), torch.tensor([7]))
    x = randn(3)
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7]))
    assert not x.requires_grad
    assert compiled(x, torch.tensor([0])).requires_grad and x.requires_grad


def test_a_leaf_that_was_detached_in_place_takes_no_history():
    def program(x, w):
        x.requires_grad_(False)
        x.mul_(w)

    with pytest.raises(AcquisitionError, match="use detach"):
        jit(program)(randn(3, requires_grad=True), randn(3, requires_grad=True))


def copies(x):
    x.note = 3
    parameter = torch.nn.Parameter(x.detach())
    parameter.note = 4
    other = copy.copy(parameter)
    plain = copy.copy(x)
    with torch.no_grad():
        other.add_(1)
    return parameter, other, other is parameter, other.note, plain, plain.note


def test_copies_are_tensors_of_the_same_memory_and_attributes():
    same_as_eager(copies, randn(3))
    same_as_eager(lambda x: (x, copy.copy(x)), torch.nn.Parameter(randn(3)))


def test_a_view_that_was_written_before_its_base_became_a_leaf_is_refused():
    def program(x):
        row = x[0]
        row.mul_(2)
        x.requires_grad_()
        return row

    with pytest.raises(AcquisitionError, match="after a view of it was written to"):
        jit(program)(torch.ones(2, 3))
    same_as_eager(lambda x: program(x * 2), torch.ones(2, 3))


@pytest.mark.parametrize("rows", [slice(None), slice(0, 2)])
def test_the_memory_of_a_leaf_made_of_a_leaf_is_given_to_another_tensor(rows):
    def program(x, w):
        x = x.detach().requires_grad_()
        x = x.detach().requires_grad_()
        w.data = x.data[rows]
        return x

    x, w = torch.arange(6.0).view(2, 3), torch.nn.Parameter(torch.zeros(2, 3))
    result = jit(program)(x, w)
    assert torch.equal(w, x) and torch.equal(result, x)
    assert w.data_ptr() == x.data_ptr() == result.data_ptr()


@pytest.mark.filterwarnings("ignore:(torch.asarray|To copy construct|Converting a tensor):UserWarning")
@pytest.mark.parametrize("told", [{}, {"requires_grad": False}, {"requires_grad": True}], ids=str)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda x, told: torch.asarray(x, **told),
        lambda x, told: torch.asarray(x * 2, **told),
        lambda x, told: torch.asarray(x[1:], **told),
        lambda x, told: torch.asarray(obj=x * 2, copy=True, **told),
        lambda x, told: torch.asarray(x, dtype=torch.float64, **told),
        lambda x, told: torch.asarray(x, dtype=torch.float64, copy=False, **told),
        lambda x, told: torch.asarray([x.sum(), 1.0], **told),
        lambda x, told: torch.tensor(x, **told),
        lambda x, told: torch.tensor(x * 2, dtype=torch.float64, **told),
        lambda x, told: torch.tensor([x.sum(), x.max()], **told),
        lambda x, told: x.new_tensor(x * 2, **told),
        lambda x, told: x.new_tensor([x.sum(), 1.0], **told),
    ],
)
def test_what_is_made_of_tensors_requires_gradients_as_it_is_told(make, requires_grad, told):
    def program(x):
        made = make(x, told)
        return made, made * 3, x * 2, made.requires_grad, made.is_leaf, made is x

    same_as_eager(program, randn(2, requires_grad=requires_grad))


@pytest.mark.filterwarnings("ignore:To copy construct:UserWarning")
@pytest.mark.parametrize("make", [torch.tensor, lambda x: torch.as_tensor([x.sum(), 1.0])])
def test_no_derivative_flows_through_a_tensor_that_is_made_of_values(make):
    same_as_eager(lambda x: make(x) * x, randn(2, requires_grad=True))


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_inputs_of_sizes_that_change_are_made_leaves_by_one_program():
    def forces(positions, scale):
        positions.requires_grad_()
        energy = (positions.square() * scale).sum()
        (gradient,) = torch.autograd.grad(energy, positions, create_graph=True)
        return energy, -gradient

    compiled = jit(forces, fallback="error")
    for rows in (3, 4, 6, 5, 4):
        results = []
        for function in (forces, compiled):
            positions, scale = torch.linspace(-1, 1, rows * 3).view(rows, 3), torch.ones(3, requires_grad=True)
            made = function(positions, scale)
            sum(each.square().sum() for each in made).backward()
            results.append((made, positions.grad, scale.grad, positions.requires_grad))
        torch.testing.assert_close(results[1], results[0])
    assert cache_misses(compiled) == 2  # the first size, and all others


def test_a_leaf_of_a_size_that_only_the_run_tells_is_refused_or_split_off():
    def program(module, x):
        module.kept = torch.nn.Parameter(x[x > 0].detach())
        return (module.kept * 2).sum()

    with pytest.raises(AcquisitionError):
        jit(program)(torch.nn.Module(), torch.ones(2))
    compiled = jit(program, fallback="split")
    for x in (torch.ones(3), torch.tensor([1.0, -1.0, 2.0, 3.0])):
        modules = [torch.nn.Module(), torch.nn.Module()]
        for run, module in zip((compiled, program), modules, strict=True):
            run(module, x).backward()
        torch.testing.assert_close(modules[0].kept, modules[1].kept)
        torch.testing.assert_close(modules[0].kept.grad, modules[1].kept.grad)


def given_other_memory(x, y):
    y.data = x.data * 2
    x.requires_grad_()
    return y


def exchanged(x, y):
    x.data, y.data = y.data, x.data
    x.requires_grad_()
    return y


@pytest.mark.parametrize("function", [given_other_memory, exchanged])
def test_a_leaf_is_refused_of_which_a_tensor_of_other_memory_was_a_view(function):
    x = randn(2, 2)
    with pytest.raises(AcquisitionError, match="one was a view, before that was given other memory"):
        jit(function, fallback="error")(x, x.t())
    x, expected = randn(2, 2), randn(2, 2)
    assert jit(function, fallback="split")(x, x.t()).requires_grad and function(expected, expected.t()).requires_grad


@pytest.mark.parametrize("reads", [False, True])
def test_a_view_that_nothing_read_since_its_base_got_a_history_counts_as_a_leaf(reads):
    def program(x):
        base = torch.zeros(3)
        view, other = base.view(-1), base.view(-1)
        other.add_(x)
        if reads:
            view.sin()
        view.requires_grad_(False)
        return view * 2, view.requires_grad

    if reads:
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
            jit(program, fallback="error")(randn(3, requires_grad=True))
    else:
        same_as_eager(program, lambda: (randn(3, requires_grad=True),))
