"""Views at places that tensors say: aliased and written through as in eager, wherever the place is on each call."""

import pytest
import torch
from against_eager import same_as_eager
from torch import randn

from thunder_frontend import compile_data, jit


def writes(x, i):
    y = x[i]
    y.mul_(2)
    return y, x + 1


def writes_part(x, i):
    y = x[i, 1:]
    y.zero_()
    return y, x


def of_an_intermediate(x, i):
    y = x * 2
    y[i].mul_(2)
    return y, y[i]


def moves_on(x, i):
    y = x[i]
    i.add_(1)
    y.zero_()
    return y, x


def selects(x, i):
    return torch.select(x, dim=-1, index=i).mul_(2), x.select(0, i), x


def assigns(x, i):
    x[i] = 5
    x[i - 1] += 1
    return x


def at_two_places(x, i):
    y = x[i, -i]
    y.zero_()
    return x, y, x[i, torch.tensor([0, 1])]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
@pytest.mark.parametrize(
    "program", [writes, writes_part, of_an_intermediate, moves_on, selects, assigns, at_two_places]
)
def test_a_tensor_of_one_integer_is_a_place(program, dtype):
    same_as_eager(program, randn(5, 4), torch.tensor(1, dtype=dtype), calls=3)


def test_gradients_go_through_a_place():
    same_as_eager(lambda x, i: (x[i] * 2, x[i, 0]), randn(3, 4, requires_grad=True), torch.tensor(-1))


def test_a_place_outside_is_an_index_error():
    same_as_eager(writes, randn(3, 4), torch.tensor(5))


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("used", torch.tensor(0))

    def forward(self, row):
        self.rows[self.used] = row
        self.used.add_(1)
        return self.rows[self.used - 1], self.rows.sum()


def test_one_program_fills_a_cache():
    cache, twin = Cache(), Cache()
    compiled = jit(cache)
    for step in range(4):
        row = torch.full((3,), float(step))
        for ours, eagers in zip(compiled(row), twin(row), strict=True):
            assert torch.equal(ours, eagers)
    assert torch.equal(cache.rows, twin.rows) and len(compile_data(compiled).compiled) == 1
