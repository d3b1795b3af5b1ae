"""Methods that change a tensor's metadata in place, on tensors of the caller's: what is left is what eager leaves."""

import pytest
import torch
from against_eager import compare, copied, same_as_eager
from torch import randn

from thunder_frontend import AcquisitionError, jit


def nothing_else(x):
    x.t_()


def then_writes(x):
    x.unsqueeze_(0)
    x.squeeze_()
    x.add_(1)
    return x


def views_before_and_after(x):
    before = x[0]
    x.t_()
    between = x[0]
    x.unsqueeze_(0)
    after = x[0]
    x.mul_(2)
    between.add_(1)
    return before, between, after, x


def values_before_and_after(x):
    before = x * 3
    x.transpose_(0, 1)
    return before, x * x, x.shape, x.stride()


def of_a_view(x):
    row = x[:1]
    row.t_()
    row.zero_()
    return row, x


def detaches(x):
    y = x * 3
    x.detach_()
    return x * 2, y, x.requires_grad


@pytest.mark.parametrize(
    "program", [nothing_else, then_writes, views_before_and_after, values_before_and_after, of_a_view, detaches]
)
def test_the_callers_tensor_changes_as_in_eager(program):
    same_as_eager(program, randn(3, 2), calls=4)
    same_as_eager(lambda x: program(x * 1), randn(3, 2, requires_grad=True))


def test_a_leaf_is_detached_in_place():
    same_as_eager(detaches, randn(3, 2, requires_grad=True), calls=3)


def test_a_leaf_is_not_transposed_in_place():
    same_as_eager(nothing_else, randn(3, 2, requires_grad=True))


def test_tensors_that_share_memory_keep_to_their_own_metadata():
    def program(x, y):
        y.mul_(2)
        x.t_()
        x.add_(1)
        row = x[0]
        return x, row, y

    base = randn(4, 4)
    eagers, ours = copied(base), copied(base)
    eagers, ours = (eagers[:2], eagers[1:]), (ours[:2], ours[1:])
    compiled = jit(program)
    for _ in range(3):
        expected, result = program(*eagers), compiled(*ours)
        compare(result, expected, ours, eagers)


def test_gradients_go_through_an_input_that_is_transposed_in_place():
    def program(x):
        y, row = x * 3, x[0]
        x.t_()
        return y, row, x * x

    leaf, gradients = randn(3, 2, requires_grad=True), []
    for function in (program, jit(program)):
        x = leaf * 2
        results = [*function(x), x]
        gradients.append(torch.autograd.grad(sum([r.sin().sum() for r in results]), leaf)[0])
    torch.testing.assert_close(*gradients)


class Turning(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(6.0).reshape(2, 3))

    def forward(self, x):
        self.table.t_()
        return self.table * x


def test_a_buffer_is_transposed_by_each_call():
    module, twin = Turning(), Turning()
    compiled = jit(module)
    for _ in range(4):
        result, expected = compiled(randn(1) * 0 + 2), twin(torch.tensor([2.0]))
        assert torch.equal(result, expected) and module.table.stride() == twin.table.stride()


def test_what_was_detached_in_place_takes_a_new_history():
    def program(x, w):
        x.detach_()
        x.mul_(w)
        return x * 2

    leaf, gradients = randn(3, requires_grad=True), []
    for function in (program, jit(program)):
        x, w = leaf * 1, torch.full((3,), 2.0, requires_grad=True)
        gradients.append(torch.autograd.grad((function(x, w) + x).sum(), (leaf, w), allow_unused=True))
    assert gradients[0][0] is gradients[1][0] is None
    torch.testing.assert_close(gradients[1][1], gradients[0][1])


def test_what_was_detached_in_place_becomes_no_leaf():
    with pytest.raises(AcquisitionError, match="use detach"):
        jit(lambda x: x.detach_().requires_grad_())(randn(3, requires_grad=True) * 1)


@pytest.mark.parametrize("write", [lambda v, x: v.mul_(2), lambda v, x: v.t_(), lambda v, x: x.mul_(2)])
@pytest.mark.parametrize("make", [lambda x: x.unbind(0)[0], lambda x: torch.no_grad()(torch.Tensor.__getitem__)(x, 0)])
def test_views_whose_history_is_fixed_are_refused_as_in_eager(make, write):
    def program(x):
        x = x * 1
        view = make(x)
        write(view, x)
        return view * 2

    same_as_eager(program, randn(3, 4, 4, requires_grad=True))
    same_as_eager(program, randn(3, 4, 4))


def test_as_strided_reaches_elements_beside_those_of_an_input():
    def program(x):
        reached = torch.as_strided(x, (2,), (1,))
        x.add_(1)
        reached *= 2
        return x

    ours, eagers = torch.arange(6.0), torch.arange(6.0)
    compiled = jit(program)
    for _ in range(2):
        assert torch.equal(compiled(ours.reshape(2, 3)[:, 1]), program(eagers.reshape(2, 3)[:, 1]))
        assert torch.equal(ours, eagers)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.as_strided((2,), (1,), 4),
        lambda x: x.t().as_strided((2,), (1,), 4),
        lambda x: x.as_strided((2,), (1,), 1).add_(1),
        lambda x: (x.add_(1), x.storage_offset()),
    ],
    ids=["read", "read of a view", "written", "asked for"],
)
def test_places_counted_from_where_the_storage_starts_are_found_wherever_an_input_lies(program):
    compiled = jit(program, fallback="error")
    for rows in (slice(0, 3), slice(1, 4), slice(2, 5)):
        ours, eagers = torch.arange(15.0).view(5, 3), torch.arange(15.0).view(5, 3)
        torch.testing.assert_close(compiled(ours[rows]), program(eagers[rows]))
        assert torch.equal(ours, eagers)


def test_as_strided_beside_what_was_written_to_is_refused():
    compiled = jit(lambda x: x.mul_(2).as_strided((2,), (1,)) * 1)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(AcquisitionError, match="elements beside"):
        compiled(torch.ones(2, 2)[:, 0])


def test_as_strided_beside_the_elements_of_what_a_program_makes_is_refused_or_left_to_python():
    def program(x):
        whole = torch.zeros(6) + x.sum()
        part = torch.nn.Parameter(whole[:2].detach())
        beside = torch.as_strided(part, (4,), (1,))
        whole.add_(1)
        return beside * 1

    x = torch.ones(2)
    with pytest.raises(AcquisitionError, match=r"as_strided\(\) of what a program made shows elements beside"):
        jit(program, fallback="error")(x)
    torch.testing.assert_close(jit(program, fallback="split")(x), program(x))


def test_as_strided_beyond_the_memory_is_eagers_error():
    same_as_eager(lambda x: (x.as_strided((9,), (1,)), x)[1], randn(3))
