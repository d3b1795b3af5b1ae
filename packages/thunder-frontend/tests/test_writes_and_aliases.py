"""Writes, views and aliases: what the caller can see afterwards is what eager leaves behind."""

import pytest
import torch
from against_eager import copied, same_as_eager
from torch import randn

from thunder_frontend import AcquisitionError, jit


def writes_to_an_intermediate(x):
    y = x * 2
    y.add_(1)
    y[0] = 3
    return y


def writes_to_out(x, out):
    torch.add(x, 1, out=out)
    return out * 2


def writes_to_a_chunk(x):
    a, b = x.chunk(2)
    a.zero_()
    return x + 1, b


def writes_through_data(x):
    x.data.add_(1)
    return x * 2


def writes_to_a_detached(x):
    y = (x * 2).detach()
    y.add_(1)
    return y


def writes_by_masks_and_lists(x):
    y = x.clone()
    y[y > 0] = 0
    y[0, 1] = 5
    y[:, [0, 2]] = 1
    return y


def accumulates(x, index, values):
    x.index_put_((index,), values, accumulate=True)
    return x


def changes_metadata(x):
    y = x * 2
    y.t_()
    y.unsqueeze_(0)
    y.squeeze_(0)
    y.transpose_(0, 1)
    return y


def writes_through_two_views(x):
    row, column = x[1], x[:, 2]
    row.add_(column.sum())
    column.mul_(row[0])
    return x.t(), row + 1


def writes_to_a_permuted_view(x):
    y = x.permute(1, 0)[1:]
    y.copy_(torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape))
    return y.flatten()


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (lambda x: x.view(-1), (randn(2, 3),)),
        (lambda x: (x.view(-1), x * 2), (randn(2, 3, requires_grad=True),)),
        (lambda x: (lambda y: (y, y))(x * 2), (randn(2, 3, requires_grad=True),)),
        (lambda x: (x, x + 1), (randn(2, 3, requires_grad=True),)),
        (lambda x: (lambda y: (y, y.view(-1), y[0]))(x * 2), (randn(2, 3),)),
        (lambda x: x.expand(3, 4) + 1, (randn(4),)),
        (writes_to_an_intermediate, (randn(2, 3, requires_grad=True),)),
        (writes_to_out, (randn(3), randn(3))),
        (writes_to_a_chunk, (randn(4),)),
        (writes_through_data, (randn(3),)),
        (writes_to_a_detached, (randn(3, requires_grad=True),)),
        (writes_by_masks_and_lists, (randn(3, 3),)),
        (accumulates, (randn(5), torch.tensor([0, 1, 1]), randn(3))),
        (changes_metadata, (randn(2, 3),)),
        (writes_through_two_views, (randn(3, 4),)),
        (writes_to_a_permuted_view, (randn(3, 4),)),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
def test_the_caller_sees_what_eager_shows(program, args):
    same_as_eager(program, *args)


def test_a_write_reaches_an_input_that_overlaps():
    def program(x, y):
        x.add_(1)
        return y * 2

    compiled = jit(program)
    base = randn(6)
    eagers, ours = base.clone(), base.clone()
    torch.testing.assert_close(compiled(ours[:4], ours[2:]), program(eagers[:4], eagers[2:]), rtol=0, atol=0)
    assert torch.equal(ours, eagers)


def test_a_program_compiled_for_tensors_apart_is_not_used_for_one_tensor_given_twice():
    def program(x, y):
        x.add_(1)
        return y * 2

    compiled = jit(program)
    compiled(randn(3), randn(3))
    ours, eagers = (lambda t: (t, t.clone()))(randn(3))
    assert torch.equal(compiled(ours, ours), program(eagers, eagers))
    assert torch.equal(ours, eagers)


def test_a_leaf_that_requires_grad_cannot_be_written_to():
    def program(x):
        x.add_(1)
        return x

    same_as_eager(program, randn(3, requires_grad=True))


def test_autograd_sees_a_write_to_an_input():
    def program(x):
        x.mul_(2)
        return x + 1

    compiled = jit(program)
    leaf = randn(3, requires_grad=True)
    gradients = []
    for function in (program, compiled):
        x = leaf * 1
        result = function(x)
        gradients.append(torch.autograd.grad(result.sum() + x.sum(), leaf)[0])
    torch.testing.assert_close(*gradients)


def test_running_statistics_are_kept():
    module = torch.nn.BatchNorm1d(3)
    twin = copied(module)
    compiled = jit(twin)
    for _ in range(3):
        x = randn(4, 3)
        expected, result = module(x), compiled(x)
        torch.testing.assert_close(result, expected)
        expected.sum().backward()
        result.sum().backward()
    for (name, expected), result in zip(module.state_dict().items(), twin.state_dict().values(), strict=True):
        torch.testing.assert_close(result, expected, msg=name)


def writes_a_part_of_an_expanded_tensor(x):
    y = x.expand(2, *x.shape)
    y[0].add_(1)
    for i in range(2):
        y[i] = x.sum() + i
    y[1, 0].zero_()
    return y, x


def writes_a_part_of_what_is_expanded_and_transposed(x):
    y = x.t()[1:].expand(2, 2, 2)
    y[1, :, 1:].mul_(3)
    return y, x


def writes_through_strides_of_a_transposed(x):
    y = x.t() * 2
    y.as_strided((2,), (2,)).add_(1)
    y.t()[1:].as_strided((1, 3), (1, 1), 3).mul_(2)
    return y, x


def writes_an_expanded_tensor(x):
    x.mul_(2)
    return x.expand(2, *x.shape).add_(1)


def writes_a_detached_alias(x):
    y = x.detach()
    row = y[0]
    y.mul_(torch.full((3,), 2.0, requires_grad=True))
    x.add_(1)
    return x, y, row, y * 3


def writes_one_of_several_views_unseen(x):
    x = x * 1
    part = x.chunk(2)[0]
    torch.mul(part.detach(), 2, out=part.detach())
    return x


def reads_a_part_of_what_it_writes(x):
    x.view(-1)[1:].copy_(x.view(-1)[:-1])


def sets_a_part_from_what_overlaps(x):
    y = x.view(-1)
    y[1:] = y[:-1]


def writes_from_its_transpose(x):
    y = x[:2, :2]
    y.clone().copy_(y.t())
    x[:, :1].mul_(x[:, 1:2])
    return x


def writes_a_view_of_a_leaf(x):
    leaf = torch.zeros(2, 3, requires_grad=True)
    return leaf[0].as_strided((2,), (1,)).squeeze_()


@pytest.mark.parametrize(
    "program",
    [
        reads_a_part_of_what_it_writes, sets_a_part_from_what_overlaps, writes_from_its_transpose,
        writes_a_view_of_a_leaf,
    ],
)  # fmt: skip
def test_what_is_written_is_not_read_at_once(program):
    same_as_eager(program, randn(2, 3))


def test_windows_that_overlap_are_not_written():
    same_as_eager(lambda x: x.unfold(-1, 1, 1).mul_(2), randn(2, 3))
    same_as_eager(lambda x: (x.unfold(-1, 2, 1)[0, 1].add_(1), x), randn(2, 4))
    same_as_eager(lambda x: (x.unfold(-1, 2, 2).detach()[:, 1].add_(1), x), randn(2, 4))
    with pytest.raises(AcquisitionError, match="several elements lie in one place"):
        jit(lambda x: x.unfold(-1, 2, 1).detach()[0, 1].mul_(2))(randn(2, 4))
    with pytest.raises(AcquisitionError, match="several elements lie in one place"):
        jit(lambda x: x.unfold(-1, 2, 1).mul_(2))(randn(2, 3))


def test_data_counts_versions_of_its_own():
    def program(x, write):
        part = x.unbind(0)[0]
        write(x)
        return part * 2

    def unseen(x):
        x.data.mul_(3)

    compiled = jit(program)
    for function in (program, compiled):
        leaf = torch.ones(2, 3, requires_grad=True)
        x = leaf * 1
        version = x._version
        result = function(x, unseen)
        assert x._version == version and torch.equal(result, torch.full((3,), 6.0))
        (result.sum() + x.sum()).backward()
        assert torch.equal(leaf.grad, torch.tensor([[3.0] * 3, [1.0] * 3]))
    same_as_eager(lambda x: program(x * 1, lambda x: x.detach().mul_(3)), randn(2, 3, requires_grad=True))


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        writes_a_part_of_what_is_expanded_and_transposed, writes_through_strides_of_a_transposed,
        writes_a_part_of_an_expanded_tensor, writes_an_expanded_tensor, writes_a_detached_alias,
        writes_one_of_several_views_unseen,
    ],
)  # fmt: skip
def test_memory_that_is_shared_in_unusual_ways_holds_what_eagers_does(program, requires_grad):
    same_as_eager(program if not requires_grad else lambda x: program(x * 1), randn(2, 3, requires_grad=requires_grad))


def test_an_expanded_tensor_is_filled():
    def program(x):
        y = x.expand(2, *x.shape)
        y[:, :1].fill_(3)
        return y, x

    same_as_eager(program, randn(2, 3))


def test_layouts_survive_writes_and_returned_aliases_are_tensors_of_their_own():
    same_as_eager(lambda x: (x.index_add_(0, torch.tensor([0]), torch.ones_like(x[:1])), x + 1), randn(3, 2).t())
    results = jit(lambda x: (lambda y: (y, y.movedim(0, -1)))(x * 2))(randn(3, requires_grad=True))
    assert results[0] is not results[1]


def test_resizing_is_refused_with_the_way_out():
    with pytest.raises(AcquisitionError, match="make a new tensor"):
        jit(lambda x: x.resize_(5))(randn(3))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x.clone().resize_(6).mul_(2), x),
        lambda x: x.resize_(3, 2).add_(1),
        lambda x: x.resize_as_(torch.ones(1, 6)),
        lambda x: x.resize_((6,)).sum(),
        lambda x: x.resize_(2, 3),
    ],
)
def test_tensors_that_keep_their_elements_are_resized(program):
    same_as_eager(program, torch.arange(6.0).view(2, 3))


def test_what_needs_other_memory_is_not_resized():
    with pytest.raises(AcquisitionError, match="make a new tensor"):
        jit(lambda x: x.t().resize_(6))(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        jit(lambda x: (x * 2).resize_(6))(torch.ones(2, 3, requires_grad=True))


def test_a_view_at_a_place_that_a_tensor_tells_is_written_there_or_not_at_all():
    same_as_eager(lambda x: x[..., torch.tensor(-1)].zero_(), randn(2, 3))
    with pytest.raises(AcquisitionError, match="expanded"):
        jit(lambda x: x[..., torch.tensor(-1)].expand(2, 2).zero_())(randn(2, 3))
    with pytest.raises(AcquisitionError, match="needs the value"):
        jit(lambda x: x + x[torch.tensor(1)].storage_offset())(randn(2, 3))


@pytest.mark.parametrize(
    "equation", ["ij->ji", "i j -> i j", "ii->i", "ji", "...i->i...", "i...->i...", "ij->i", "ii", "ij->iij", "i->i"]
)
def test_an_einsum_without_sums_is_a_view(equation):
    def program(x):
        y = torch.einsum(equation, x)
        y.mul_(2)
        return y, x + 1

    same_as_eager(program, torch.randn(3, 3))


def test_an_einsum_as_a_view_has_its_gradient():
    same_as_eager(lambda x: (torch.einsum("iji->ji", x) * 2, torch.einsum("...j->j...", x)), leaf(3, 2, 3))


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: torch.view_as_real(torch.complex(x, x))[..., 0].transpose(0, -1),
        lambda x: (x + 0).view(torch.int32)[1:],
        lambda x: torch.view_as_complex(torch.stack([x, -x], -1)).real[1:],
    ],
)
def test_as_strided_of_a_view_of_another_dtype_has_the_dtype_of_the_view(view):
    same_as_eager(lambda x: torch.as_strided(view(x), (2,), (1,)), torch.randn(3, 4))


def after_a_product(x, w):
    y = x * w
    w.data.mul_(2)
    return y


def after_a_product_of_views(x, w):
    y = x @ w.t()
    w[0].data.mul_(2)
    return y


def to_what_was_computed(x, w):
    y = x.exp()
    y.data.mul_(2)
    return y * w


def after_what_only_a_derivative_computes(x, w):
    y = w.sin()
    w.data.mul_(2)
    return y


@pytest.mark.parametrize(
    "program",
    [after_a_product, after_a_product_of_views, to_what_was_computed, after_what_only_a_derivative_computes],
)
def test_a_write_through_data_to_what_autograd_saved_is_refused(program):
    with pytest.raises(AcquisitionError, match=r"writes through \.data to a tensor that autograd has saved"):
        jit(program)(randn(3, 3).requires_grad_(), randn(3, 3).requires_grad_())


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: (w.data.mul_(2), x * w)[1],
        lambda x, w: (x + w, w.data.mul_(2))[0],
        lambda x, w: (x * 2 + (x.detach() @ w.detach().t()).argmax(-1), w.data.mul_(2))[0],
        lambda x, w: (lambda y: (y.data.mul_(2), y * w)[1])(x[0]),
    ],
)
def test_other_writes_through_data_are_done(program):
    same_as_eager(program, randn(3, 3).requires_grad_(), randn(3, 3).requires_grad_())


@pytest.mark.parametrize("write", [torch.Tensor.tril_, torch.Tensor.triu_, lambda x: x.fill_diagonal_(1)])
def test_writes_to_expanded_tensors_that_pytorch_makes_in_any_order_are_refused(write):
    with pytest.raises(AcquisitionError, match=r"(tri[lu]|fill_diagonal)\(\) to an expanded tensor.*clone\(\)"):
        jit(lambda x: write(x.clone().expand(3, 3)))(torch.ones(3))
