"""Lists of numbers that PyTorch's functions are given as a whole: one program serves the numbers that change."""

import pytest
import torch
from torch.nn import functional

from thunder_frontend import cache_misses, jit


@torch.library.custom_op("thunder_tests::shifted", mutates_args=())
def shifted(x: torch.Tensor, by: list[int]) -> torch.Tensor:
    return x + sum(by)


shifted.register_fake(lambda x, by: torch.empty_like(x))

X = torch.randn(4, 8)
GIVEN = {
    "zeros": (lambda x, s: x.sum() + torch.zeros(s), lambda i: (i, i + 1)),
    "full": (lambda x, s: x.sum() + torch.full(s, 2.0), lambda i: [i, i + 1]),
    "new_zeros": (lambda x, s: x.sum() + x.new_zeros(size=s), lambda i: [i, i + 1]),
    "expand": (lambda x, s: x.sum().expand(s), lambda i: (i, i + 1)),
    "reshape": (lambda x, s: torch.ones(24).reshape(s) + x[0, 0], lambda i: ([2, 3, 4, 6, 8, 12][i - 2], -1)),
    "tensor": (lambda x, s: x + torch.tensor(s).sum(), lambda i: [i + 0.5, 1.5]),
    "tensor of lists": (lambda x, s: x + torch.tensor(s).sum(), lambda i: [[i + 0.5, 1.5], [2.0, i / 7]]),
    "tensor of integers": (lambda x, s: x * (torch.arange(8) < torch.tensor(s)[:, None]), lambda i: [i, i + 1, 3, 4]),
    "as_tensor": (lambda x, s: x + torch.as_tensor(s, dtype=torch.float64).sum(), lambda i: (i, 1)),
    "new_tensor": (lambda x, s: x + x.new_tensor(s).sum(), lambda i: [i + 0.5, 1.5]),
    "pad": (lambda x, s: functional.pad(x, s), lambda i: (i, i + 1)),
    "interpolate": (lambda x, s: functional.interpolate(x[None, None], size=s), lambda i: (i, i + 1)),
    "split": (lambda x, s: x.split(s, 1)[0].sum(), lambda i: [i, 8 - i]),
    "tile": (lambda x, s: x.tile(s), lambda i: [i, 2]),
    "custom operator": (lambda x, s: shifted(x, s), lambda i: [i, i + 1]),
    "overload": (lambda x, s: torch.ops.thunder_tests.shifted.default(x, by=s), lambda i: [i, i + 1]),
    "read by lists": (lambda x, s: x[s], lambda i: [i % 4, (i + 1) % 4]),
    "read by lists beside slices": (lambda x, s: x[:, s], lambda i: [i % 8, (i + 3) % 8]),
    "sum of a list and another": (lambda x, s: x * sum(s + [2.5]), lambda i: [i + 0.5, 1.5]),
    "sum of a list several times": (lambda x, s: x * sum(s * 2), lambda i: [i + 0.5, 1.5]),
}


@pytest.mark.parametrize("name", GIVEN)
def test_two_programs_serve_all_numbers(name):
    function, make = GIVEN[name]
    compiled = jit(function)
    for i in range(2, 8):
        torch.testing.assert_close(compiled(X, make(i)), function(X, make(i)))
    assert cache_misses(compiled) == 2


def test_lists_of_objects_are_read_as_those_of_the_call():
    class Holder:
        sizes = [2, 3]

    def f(x, holder):
        holder.sizes[0] += 1
        return x + torch.zeros(holder.sizes).sum() + len(holder.sizes)

    compiled, ours, eager = jit(f), Holder(), Holder()
    ours.sizes, eager.sizes = [2, 3], [2, 3]
    for _ in range(5):
        assert torch.equal(compiled(X, ours), f(X, eager))
        assert ours.sizes == eager.sizes
    assert cache_misses(compiled) == 2


def test_what_is_written_at_a_list_of_places_is_of_the_call():
    def f(x, rows):
        y = x * 1
        y[rows] = 1.0
        return y

    compiled = jit(f)
    for rows in ([0, 1], [2, 3], [3, 1], [1, 1], [0, 3]):
        assert torch.equal(compiled(X, rows), f(X, rows))
    assert cache_misses(compiled) == 2


def test_lists_in_a_joined_list_are_the_very_same():
    rows = [[1.0, 2.0], [3.0, 4.0]]

    def f(x):
        joined = rows + [[5.0]]
        joined[0].append(6.0)
        return x, joined

    compiled = jit(f)
    for count in (3, 4):
        _, joined = compiled(X)
        assert joined[0] is rows[0] and len(rows[0]) == count


def test_a_list_that_was_appended_to_is_read_as_it_is_in_each_call():
    class Model:
        def __init__(self):
            self.sizes = [2, 3]

    def f(x, model):
        model.sizes.append(4)
        model.sizes = [model.sizes[0] % 3 + 1, 3]
        return x

    compiled, ours, eager = jit(f), Model(), Model()
    for _ in range(6):
        f(X, eager)
        compiled(X, ours)
        assert ours.sizes == eager.sizes


def test_a_tuple_of_lists_from_outside_is_read_as_it_is():
    compiled = jit(lambda x, place: x[place])
    for place in ((0, [1, 2]), (1, [1, 3]), (slice(0, 2), [3, 4]), ([0, 1], [1, 2])):
        assert torch.equal(compiled(X, place), X[place])
