"""Forms of calls that PyTorch still takes, and what it says of calls that it does not take."""

import pytest
import torch
from against_eager import copied, same_as_eager

from thunder_frontend import jit

FORMS = {
    "add": lambda x: torch.add(x, 2, x),
    "add in place": lambda x: (x * 1).add_(-0.5, x),
    "sub": lambda x: x.sub(2, x),
    "addcmul": lambda x: torch.addcmul(x, 2, x, x),
    "addcdiv in place": lambda x: (x * 1).addcdiv_(2, x, x + 5),
    "addmm": lambda x: torch.addmm(2, x, 3, x, x),
    "addmm with one number": lambda x: torch.addmm(2, x, x, x),
    "method addmm": lambda x: x.addmm(2, 3, x, x),
    "addr": lambda x: torch.addr(2, x, x[0], x[0]),
    "baddbmm": lambda x: torch.baddbmm(2, x[None], 3, x[None], x[None]),
    "new": lambda x: (
        x.new(x.shape).shape == x.shape,
        x.new(x.shape + (2,)).fill_(3) * x[..., None],
        x.new((3, 2)) * x[0, 0],
        x.new(torch.Size([3, 2])).zero_() * x[0, 0],
        x.new([3.0]) * x,
        x.new(2, 3).zero_() * x[0, 0],
    )[1:],
    "broadcast_to": lambda x: (x[0].broadcast_to(3, 3), x[0].broadcast_to((3, 3)), torch.broadcast_to(x[0], (3, 3))),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore:This overload")
def test_old_forms_are_taken(name):
    x = torch.arange(9.0).reshape(3, 3).requires_grad_()
    y = copied(x)
    found, expected = jit(FORMS[name])(x), FORMS[name](y)
    torch.testing.assert_close(found, expected)
    for result, leaf in ((found, x), (expected, y)):
        sum(r.sum() for r in (result if isinstance(result, tuple) else (result,))).backward()
        assert leaf.grad is not None
    torch.testing.assert_close(x.grad, y.grad)


def test_new_makes_a_tensor_of_a_size_where_the_size_changes():
    compiled = jit(lambda x: x.new(x.shape + (2,)).fill_(3) * x[..., None], fallback="error")
    for size in (2, 3, 4):
        assert torch.equal(compiled(torch.ones(size)), torch.full((size, 2), 3.0))


WRONG = {
    "round": lambda x: round(x),
    "divmod": lambda x: divmod(x, 2),
    "call": lambda x: x(1),
    "attribute": lambda x: x.no_such_thing,
    "keyword": lambda x: x.sum(no_such=1),
    "shapes": lambda x: x @ torch.ones(5),
    "a list": lambda x: torch.broadcast_tensors([x, x[0]]),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_have_the_words_of_eager(name):
    def error_of(run):
        with pytest.raises(Exception) as raised:
            run(torch.ones(3, 3))
        return raised.type, str(raised.value)

    assert error_of(jit(WRONG[name])) == error_of(WRONG[name])


KEPT = [torch.tensor(1.0), torch.tensor(2.0)]


@pytest.mark.filterwarnings("ignore:Converting a tensor:UserWarning")
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.Tensor([x.sum(), 1.0]),
        lambda x: torch.Tensor(([x[0], 2], (3.0, x[1]))),
        lambda x: torch.DoubleTensor([x[0], x[1]]),
        lambda x: torch.LongTensor([x.argmax(), 1]),
        lambda x: torch.LongTensor([x.max()]),
        lambda x: torch.BoolTensor([x[0] > 1, True]),
        lambda x: torch.Tensor(x),
        lambda x: torch.FloatTensor(x * 2),
        lambda x: torch.DoubleTensor(x),
        lambda x: torch.Tensor(KEPT),
        lambda x: torch.Tensor([1.0, 2.0]),
        lambda x: torch.Tensor(2).fill_(3),
    ],
)
def test_old_constructors_take_tensors(make, requires_grad):
    def program(x):
        made = make(x)
        return made, made * x, made.requires_grad, made.is_leaf

    same_as_eager(program, torch.arange(2.0).requires_grad_(requires_grad))


def test_what_an_outside_list_holds_is_seen_by_old_constructors():
    kept = [torch.tensor(1.0), torch.tensor(2.0)]
    compiled = jit(lambda x: torch.Tensor(kept) * x)
    x = torch.ones(2)
    assert compiled(x).tolist() == [1.0, 2.0]
    kept[0].fill_(5)
    kept[1] = torch.tensor(7.0)
    assert compiled(x).tolist() == [5.0, 7.0]
    kept[:] = [3.0, 4.0]
    assert compiled(x).tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mean(axis=-1, keepdims=True),
        lambda x: torch.mean(x, axis=0),
        lambda x: x.softmax(axis=-1).pow(2),
        lambda x: x.sum(axis=0, keepdims=True) * x.logsumexp(axis=1, keepdims=True),
        lambda x: torch.fake_quantize_per_channel_affine(
            x, torch.ones(3), torch.zeros(3), axis=0, quant_min=0, quant_max=9
        ),
        lambda x: torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 2]), axis=0),
    ],
    ids=["mean", "mean of torch", "softmax", "sum and logsumexp", "an axis of its own", "an axis by name alone"],
)
def test_numpys_names_of_arguments_have_gradients(function):
    x = torch.randn(3, 4, requires_grad=True)
    found, expected = jit(function)(x), function(x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*[torch.autograd.grad(y.sum(), x) for y in (found, expected)])
