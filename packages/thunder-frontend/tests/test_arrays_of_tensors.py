"""``tensor.numpy()`` and ``np.asarray(tensor)`` are arrays of each call, of which NumPy computes when the program runs."""

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn

from thunder_frontend import DataDependentError, FallbackWarning, cache_misses, explain, jit

READ = {
    "returned": lambda x: (x * 2).numpy(),
    "with the tensor": lambda x: (lambda y: (y, y.numpy()))(x * 2),
    "an input": lambda x: x.numpy(),
    "part of an input": lambda x: x[1:].numpy()[:, 0],
    "every other one": lambda x: (x[:, ::2].numpy(), x[:, ::2].numpy() + 1, x[:, ::2].numpy().strides),
    "transposed": lambda x: x.T.numpy() + 1,
    "a number": lambda x: x * float(x.numpy().mean()),
    "indices": lambda x: x[x.argmax(1).numpy()],
    "an integer": lambda x: int((x * 2).argmax().numpy()),
    "by a function of NumPy's": lambda x: torch.from_numpy(np.tanh(x.numpy())) * 2,
    "made an array": lambda x: (np.asarray(x * 2) + 1, np.array(x.numpy(), dtype=np.float64)),
    "chosen": lambda x: np.where(x.numpy() > 0, 1.0, x.numpy()),
    "an accuracy": lambda x: ((x.argmax(1).numpy() == 1).mean(), f"{(x.numpy() > 0).mean():.2f}"),
    "sorted": lambda x: np.take_along_axis(x.numpy(), np.argsort(-x.numpy(), axis=1)[:, :2], 1),
    "in a loop": lambda x: [value for value in x[0].numpy()],
    "by rows": lambda x: sum([row.max() for row in x.numpy()]),
    "of parts": lambda x: np.stack([part.numpy() for part in x.unbind(1)]),
    "a likelihood": lambda x: -np.log(x.softmax(-1).numpy()[np.arange(4), np.array([0, 1, 0, 2])]).mean(),
    "a permutation": lambda x: x[:, x.mean(0).argsort().numpy()],
    "a size": lambda x: torch.zeros([2, x.argmax().numpy() + 1, 3]),
    "sizes": lambda x: (x.new_ones(tuple(x.argmax(1).numpy()[:2] + 1)), x.expand([x.argmax().numpy() + 1, *x.shape])),
    "an end": lambda x: (x[: x.argmax(1).numpy()[0] + 1], x[:, x.argmax(1).numpy()[1] :]),
    "forced": lambda x: torch.complex(x, x).conj().requires_grad_().numpy(force=True),
}
WRITTEN = {
    "by NumPy": lambda x: (lambda y: (y.numpy().__setitem__(0, 5.0), y)[1])(x * 2),
    "in place by NumPy": lambda x: (lambda y: (y.numpy().__iadd__(1), y))(x * 2),
    "by PyTorch": lambda x: (lambda y, a: (y.add_(1), a + 0, a))(x, x.numpy()),
    "by both": lambda x: (lambda y, a: (y.add_(1), torch.from_numpy(a).add_(1), y, a))(
        *(lambda y: (y, y.numpy()))(x * 2)
    ),
    "where a mask says": lambda x: (x.numpy().__setitem__(x.numpy() < 0, 0), x)[1],
    "sorted in place": lambda x: (lambda y: (y.numpy().sort(axis=0), y)[1])(x * 1),
    "through out=": lambda x: (np.clip(x.numpy(), -0.5, 0.5, out=x.numpy()), x),
}


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        for pair in zip(found, expected, strict=True):
            assert_same(*pair)
    elif isinstance(expected, (np.ndarray, torch.Tensor)):
        assert found.dtype == expected.dtype
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.strides == expected.strides
        assert np.array_equal(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize("program", [*READ.values(), *WRITTEN.values()], ids=[*READ, *WRITTEN])
def test_one_program_serves_all_values(program):
    compiled = jit(program)
    for seed in range(3):
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
        given = x.clone()
        assert_same(compiled(given), program(x))
        assert torch.equal(given, x)
    assert cache_misses(compiled) == 1


def test_memory_is_shared_as_in_eager():
    tensor, array = jit(lambda x: (lambda y: (y, y.numpy()))(x * 2))(torch.ones(3))
    tensor[0] = 7
    array[1] = 8
    assert tensor.tolist() == array.tolist() == [7, 8, 2]
    x = torch.ones(3)
    jit(lambda x: x.numpy())(x)[0] = 5
    assert x[0] == 5


def test_a_branch_on_an_array_has_a_program_for_each_outcome():
    def program(x):
        return x * 2 if x.numpy().max() > 1 else x * 3

    compiled = jit(program)
    for i in range(6):
        assert torch.equal(compiled(torch.full((2,), float(i))), program(torch.full((2,), float(i))))
    assert cache_misses(compiled) == 2


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_of_changing_sizes_python_makes_the_array_and_not_a_program_for_each():
    model = nn.Linear(4, 3)

    def classes(x):
        return model(x).argmax(-1).numpy()

    compiled = jit(classes, fallback="split")
    for size in range(2, 10):
        x = torch.randn(size, 4)
        assert_same(compiled(x), classes(x))
    assert cache_misses(compiled) == 1
    assert "sizes are dynamic" in str(explain(compiled))


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.history = []

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
            self.history.append(x.detach().numpy())
        self.last = x.detach().mean().numpy()
        return x


def test_arrays_are_kept_by_modules_in_training():
    torch.manual_seed(0)
    model = Watched()
    other = copy.deepcopy(model)
    compiled = jit(other)
    for seed in range(3):
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
        for run in (model, compiled):
            run(x).sum().backward()
    assert_same(other.history, model.history)
    assert_same(other.last, model.last)
    assert [p.grad.tolist() for p in other.parameters()] == [p.grad.tolist() for p in model.parameters()]


def test_items_chosen_by_an_array_have_a_program_for_each_choice():
    names = ["a", "b"]
    compiled = jit(lambda x: [names[i] for i in x.argmax(1).numpy()])
    assert compiled(torch.eye(2)) == ["a", "b"]
    assert compiled(torch.eye(2).flip(0)) == ["b", "a"]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.requires_grad_().numpy(),
        lambda x: x.bfloat16().numpy(),
        lambda x: torch.complex(x, x).conj().numpy(),
        lambda x: torch.complex(x, x).conj().imag.numpy(),
    ],
    ids=["with a gradient", "of no dtype of NumPy's", "conjugate", "negative"],
)
def test_what_has_no_array_raises_what_eager_raises(make):
    with pytest.raises((RuntimeError, TypeError)) as expected:
        make(torch.ones(2))
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        jit(make)(torch.ones(2))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.numpy()[x.numpy() > 0],
        lambda x: np.unique((x > 0).numpy()),
        lambda x: x.numpy().tobytes(),
        lambda x: x[:1].expand(4, 3).numpy(),
        lambda x: x[:, ::2].numpy()[:, 1],
    ],
    ids=["of a shape that values tell", "distinct values", "bytes", "of spread elements", "part of what has gaps"],
)
def test_what_examples_cannot_tell_is_refused_or_runs_in_python(program):
    with pytest.raises(DataDependentError):
        jit(program)(torch.ones(4, 3))
    compiled = jit(program, fallback="split")
    with pytest.warns(FallbackWarning):
        assert_same(compiled(torch.ones(4, 3)), program(torch.ones(4, 3)))
    for x in (torch.eye(4)[:, :3], -torch.ones(4, 3)):
        assert_same(compiled(x), program(x))
