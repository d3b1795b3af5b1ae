"""PyTorch's functions called with all of their arguments by name."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from against_eager import same_as_eager

from thunder_frontend import cache_misses, jit


def writes_to_a_transposed(x):
    y = torch.transpose(input=x, dim0=0, dim1=1)
    y.add_(1)
    y[0] = 5
    return x + 1, y


def writes_to_a_narrowed(x):
    torch.narrow(input=x, dim=0, start=0, length=1).mul_(2)
    return x


def writes_to_parts(x):
    first, *_ = torch.split(tensor=x, split_size_or_sections=2)
    last = torch.unbind(input=x)[-1]
    first.zero_()
    last.fill_(value=3)
    return x


def writes_in_place(x):
    torch.relu_(input=x)
    F.leaky_relu(input=x, negative_slope=0.2, inplace=True)
    x[0].copy_(other=x[1])
    torch.add(input=x, other=x, out=x)
    torch.nn.init.constant_(tensor=x[2], val=7.0)
    return x


@pytest.mark.parametrize("program", [writes_to_a_transposed, writes_to_a_narrowed, writes_to_parts, writes_in_place])
def test_what_is_written_is_seen(program):
    same_as_eager(program, torch.randn(3, 3))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: F.linear(input=x, weight=x, bias=x[0]),
        lambda x: torch.addcmul(input=x, tensor1=x, tensor2=x, value=2),
        lambda x: torch.flip(input=x, dims=(0,)),
        lambda x: torch.reshape(input=x, shape=(9,)),
        lambda x: torch.where(condition=x > 0, input=x, other=-x),
        lambda x: torch.max(input=x, dim=1).values,
        lambda x: torch.add(x1=x, x2=x),
        lambda x: torch.cat(tensors=[x, x], dim=1),
        lambda x: torch.einsum("ij,jk", x, x) + torch.arange(start=0, end=3),
    ],
)
def test_results_and_gradients_are_eagers(program):
    same_as_eager(program, torch.randn(3, 3, requires_grad=True))


@pytest.mark.parametrize(
    "name", ["type", "args", "kwargs", "miss", "held", "holds", "computation", "map", "tuple", "len", "ValueError"]
)
def test_arguments_may_have_any_name(name):
    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x, /, **named):
            return self.linear(x) + named[name]

    module = Sum()
    compiled = jit(module)
    x = torch.ones(2, 2)
    for other in (torch.ones(2, 2), torch.ones(2, 2), torch.ones(2)):
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, **{name: other}), module(x, **{name: other}))
    assert cache_misses(compiled) == 2


def test_too_many_arguments_are_counted_without_defaults():
    def scaled(x, *, by=2, and_by=()):
        return x * by

    for call in (scaled, lambda x, y: scaled(x, y), lambda x, y: scaled(x, y, by=3)):
        messages = []
        for run in (call, jit(call)):
            with pytest.raises(TypeError) as raised:
                run(torch.ones(2), torch.ones(2))
            messages.append(str(raised.value))
        assert messages[0] == messages[1]
