"""``x.data = y``: a tensor gets the memory of another and stays the tensor that it is, in autograd and to the caller."""

import pytest
import torch
from against_eager import compare, copied, module_same_as_eager, same_as_eager
from torch import randn

from thunder_frontend import AcquisitionError, jit


def of_a_new_value(x, y):
    x.data = y * 2
    return x * 3


def and_writes(x, y):
    new = y * 2
    x.data = new
    x.data.add_(1)
    with torch.no_grad():
        x[0] = 5
    return x * 2, new


def shared_with_another_argument(x, y):
    x.data = y.detach()
    return x * y, x[1:]


def and_views_of_before_and_after(x, y):
    before = x[0]
    x.data = y * 2
    after = x[0]
    with torch.no_grad():
        x[1:].mul_(2)
    return before, after, x.view(-1)


def twice(x, y):
    x.data = y * 2
    first = x[1:]
    x.data = y * 3
    return first, x[1:]


def of_its_own(x, y):
    x.data = x.data
    x.data = x.data.flip(0)
    return x + y


def read_before(x, y):
    z = x * y
    x.data = x.data * 2
    return z, x * y


def of_an_intermediate(x, y):
    z = x * 2
    row = z[0]
    z.data = y + 1
    z.data.mul_(2)
    return z, row, z * z


def of_a_leaf_made_inside(x, y):
    leaf = torch.nn.Parameter(x.detach() * 2)
    leaf.data = leaf.data.clamp(-1, 1)
    return leaf, leaf * y


def exchanged(x, y):
    x.data, y.data = y.data, x.data
    return x * 2, y * 3


def of_a_transposed_one(x, y):
    x.data = y.t().contiguous().t() * 1
    return x, x.stride(), x.is_contiguous()


def then_metadata(x, y):
    x.data = y * 2
    x.detach_()
    x.add_(1)
    return x


PROGRAMS = [
    of_a_new_value, and_writes, shared_with_another_argument, and_views_of_before_and_after, twice, of_its_own,
    read_before, of_an_intermediate, of_a_leaf_made_inside, exchanged, of_a_transposed_one, then_metadata,
]  # fmt: skip


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_tensor_gets_other_memory(program, requires_grad):
    same_as_eager(program, randn(3, 3, requires_grad=requires_grad), randn(3, 3), calls=3)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_tensor_with_a_history_gets_other_memory(program):
    gradients, results = [], []
    leaf, y = randn(3, 3, requires_grad=True), randn(3, 3)
    for function in (program, jit(program)):
        x, other = leaf * 1, y.clone()
        result = function(x, other)
        found = [r for r in (*(result if isinstance(result, tuple) else (result,)), x) if isinstance(r, torch.Tensor)]
        results.append((found, other))
        with_gradient = [f for f in found if f.requires_grad]
        total = sum([(i + 1) * f.sum() for i, f in enumerate(with_gradient)])
        gradients.append(torch.autograd.grad(total, leaf, allow_unused=True) if with_gradient else None)
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(gradients[1], gradients[0])


def test_what_the_caller_kept_of_the_memory_of_before_holds_what_was_written_before():
    def program(x):
        x.add_(1)
        x.data = x * 2
        x.mul_(3)

    compiled = jit(program)
    ours, eagers = randn(3), None
    eagers = ours.clone()
    for _ in range(3):
        kept, also = ours.data, eagers.data
        compiled(ours)
        program(eagers)
        assert torch.equal(kept, also) and torch.equal(ours, eagers)
        assert kept.data_ptr() != ours.data_ptr()


class Clips(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        self.inner.weight.data = self.inner.weight.data.clamp(-0.1, 0.1)
        self.scale.data = self.scale.data * 2
        return self.inner(x) + self.scale


class FollowsAverages(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.online, self.target = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3).requires_grad_(False)

    def forward(self, x):
        for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
            slow.data = 0.9 * slow.data + 0.1 * fast.data
        return self.target(x), self.online(x)


class Swaps(FollowsAverages):
    def forward(self, x):
        a, b = self.online.weight, self.target.weight
        a.data, b.data = b.data, a.data
        return self.target(self.online(x).relu())


class Copies(FollowsAverages):
    def forward(self, x):
        for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
            slow.data = fast.data
        return self.target(x) * self.online(x)


class ManagesGradients(FollowsAverages):
    def forward(self, x):
        for parameter in self.online.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
        self.online.bias.grad = None
        self.target.weight.grad = self.online.weight.data * 2
        return self.target(self.online(x))


class ClampsAfterUse(FollowsAverages):
    def forward(self, x):
        y = self.online(x)
        for parameter in self.online.parameters():
            parameter.data.clamp_(-0.2, 0.2)
        return y.detach(), self.online.weight.data[0], self.online.bias * 2


@pytest.mark.parametrize("make", [Clips, FollowsAverages, Swaps, Copies, ManagesGradients, ClampsAfterUse])
def test_parameters_and_buffers_get_other_memory(make):
    module_same_as_eager(make, randn(2, 3))


def test_set_takes_the_memory_of_another_tensor():
    same_as_eager(lambda x, y: (x.set_(y * 2), x[0]), randn(3), randn(3))
    same_as_eager(lambda x, y: ((x * 1).set_(y), y.add_(1)), randn(3), randn(3))
    with pytest.raises(AcquisitionError, match="use .data"):
        jit(lambda x: (x * 1).set_(x))(randn(3, requires_grad=True))
    with pytest.raises(AcquisitionError, match="pass a tensor"):
        jit(lambda x: x.set_())(randn(3))


def test_shapes_may_change_where_there_is_no_gradient():
    same_as_eager(lambda x, y: (setattr(x, "data", y), x.shape, x + 1), randn(3), randn(2, 3), calls=3)
    with pytest.raises(AcquisitionError, match="another shape"):
        jit(lambda x, y: setattr(x, "data", y))(randn(3, requires_grad=True), randn(2, 3))


def test_views_that_require_grad_get_no_other_memory():
    with pytest.raises(AcquisitionError, match="a view that requires grad"):
        jit(lambda x, y: setattr(x[0], "data", y))(randn(2, 3, requires_grad=True) * 1, randn(3))


def test_intermediates_are_given_gradients():
    def program(x):
        y = x * 2
        y.grad = x * 3
        return y, y.grad + 1

    for result in (jit(program)(randn(3)), jit(program)(torch.ones(3))):
        assert torch.equal(result[0].grad + 1, result[1])


def test_other_dtypes_are_refused():
    with pytest.raises(AcquisitionError, match="another dtype"):
        jit(lambda x: setattr(x, "data", x.data.double()))(randn(3))


def test_an_exception_while_the_program_runs_leaves_the_memory_as_it_was():
    def program(x, index):
        x.data = x.data * 2
        return x[index]

    compiled = jit(program)
    x = torch.arange(3.0)
    compiled(x, torch.tensor([0]))
    before, where = x.clone(), x.data_ptr()
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7]))
    assert torch.equal(x, before) and x.data_ptr() == where


def test_results_of_two_calls_do_not_share_memory():
    def program(x):
        x.data = x.data + 1
        return x.detach()

    compiled, x = jit(program), torch.zeros(2)
    first = compiled(x)
    second = compiled(x)
    compare((first, second), (torch.ones(2), torch.full((2,), 2.0)), copied(x), copied(x))


def test_transformed_functions_exchange_no_memory():
    def program(x):
        def inner(row):
            row.data = row.data * 2
            return row

        return torch.vmap(inner)(x)

    with pytest.raises(AcquisitionError, match="transform"):
        jit(program)(randn(2, 3))


class Replaces(FollowsAverages):
    def forward(self, x):
        self.online.weight = torch.nn.Parameter(self.online.weight.detach() * 0.5)
        self.target.bias = torch.nn.Parameter(self.target.bias.data + 1, requires_grad=False)
        return self.target(self.online(x))


def test_parameters_are_replaced_by_new_ones():
    modules = [Replaces(), Replaces()]
    compiled = jit(modules[0])
    for _ in range(3):
        x = torch.ones(2, 3)
        result, expected = compiled(x), modules[1](x)
        for value in (result, expected):
            value.sum().backward()
        torch.testing.assert_close(result, expected)
        for ours, eagers in zip(*[m.parameters() for m in modules], strict=True):
            torch.testing.assert_close(ours, eagers)
            torch.testing.assert_close(ours.grad, eagers.grad)
            assert type(ours) is type(eagers) and ours.is_leaf and ours.requires_grad == eagers.requires_grad


def after_a_square(x, w):
    y = w * w
    w.data = w.data * 2
    return y


def of_a_constant_after_a_product(x, w):
    y = x * w
    x.data = x.data * 2
    return y


def after_a_product_with_a_view_of_the_whole(x, w):
    constant = x.view_as(x)
    y = constant * w
    constant.data = x * 2
    return y


def after_an_activation(x, w):
    y = torch.nn.functional.silu(w)
    w.data = w.data * 2
    return y


@pytest.mark.parametrize(
    "program",
    [
        after_a_square,
        of_a_constant_after_a_product,
        after_a_product_with_a_view_of_the_whole,
        after_an_activation,
    ],
)
def test_what_autograd_saved_gets_no_other_memory(program):
    with pytest.raises(AcquisitionError, match=r"writes through \.data to a tensor that autograd has saved"):
        jit(program)(randn(3, 3), randn(3, 3, requires_grad=True))


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: (x + w, setattr(w, "data", w.data * 2))[0],
        lambda x, w: (x * w, setattr(w, "data", w.data * 2))[0],
        lambda x, w: (w @ x.t(), setattr(x, "data", x * 2))[0],
        lambda x, w: ((x * w).detach() + w, setattr(w, "data", w.data * 2))[0],
        lambda x, w: (lambda rows: (x * rows, setattr(w, "data", w.data * 2))[0])(w[0]),
    ],
)
def test_what_autograd_did_not_save_gets_other_memory(program):
    same_as_eager(program, randn(3, 3), randn(3, 3, requires_grad=True))


def base_and_transpose():
    leaf = torch.arange(9.0).reshape(3, 3).requires_grad_()
    base = leaf * 1
    return base, base.t(), leaf


def to_a_tensor_that_views_knew(x, y):
    x.data = torch.ones(3, 3)
    x.mul_(2)
    return y * 1


def to_a_tensor_that_a_view_inside_knew(x, y):
    row = x[0]
    x.data = torch.ones(3, 3)
    x.mul_(2)
    return row * 1


@pytest.mark.parametrize("program", [to_a_tensor_that_views_knew, to_a_tensor_that_a_view_inside_knew])
def test_writes_to_what_views_that_lie_elsewhere_know_are_refused(program):
    x, y, _ = base_and_transpose()
    with pytest.raises(AcquisitionError, match="PyTorch takes the view for one of the tensor still"):
        jit(program)(x, y)


@pytest.mark.parametrize("program", [lambda x, y: (y.mul_(2), x * 1)[1], lambda x, y: (x.mul_(2), y * 1)[1]])
def test_a_view_of_what_was_given_other_memory_since_the_last_call_is_refused(program):
    compiled, results = jit(program), []
    for function in (program, compiled):
        x, y, leaf = base_and_transpose()
        results.append(torch.autograd.grad(function(x, y).sum(), leaf)[0])
    assert torch.equal(*results)
    x, y, _ = base_and_transpose()
    x.data = torch.full((3, 3), 5.0)
    with pytest.raises(AcquisitionError, match=r"for a view of a tensor that was given other memory by \.data"):
        compiled(x, y)
    same_as_eager(lambda x, y: (y.detach().mul_(2), x * 1)[1], x, y)
