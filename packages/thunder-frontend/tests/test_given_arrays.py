"""Arrays of NumPy that differ from call to call: one program computes with what each call brings."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit

X = torch.randn(64, 4, dtype=torch.float64)


def same(found, expected):
    """Whether results are alike, arrays, numbers and tensors in containers among them."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[k], v) for k, v in expected.items())
    if isinstance(expected, (tuple, list)):
        return type(found) is type(expected) and all(map(same, found, expected))
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=True)
    if isinstance(expected, torch.Tensor):
        return found.dtype == expected.dtype and torch.equal(found, expected)
    return type(found) is type(expected) and found == expected


def check(program, calls, programs, **options):
    """Compare each call with eager, and what it leaves in its arrays; return what is compiled."""
    compiled = jit(program, fallback="error", **options)
    for args in calls:
        mine = copy.deepcopy(args)
        expected = program(*args)
        assert same(compiled(*mine), expected)
        assert all(map(same, mine, args))
    assert cache_misses(compiled) == programs
    return compiled


def indices(count=5, size=32):
    return [(X, np.random.RandomState(seed).permutation(64)[:size]) for seed in range(count)]


def written(x, rows):
    x = x.clone()
    x[rows] += 1
    return x


INDEXED = {
    "rows": lambda x, i: x[i] * 2,
    "elements": lambda x, i: x[i, i % 4] if type(i) is torch.Tensor else x[i, 0],
    "columns": lambda x, i: x.T[:, i],
    "none and rows": lambda x, i: x[None, i],
    "twice": lambda x, i: x[i] + x.cos()[i],
    "written": written,
}


@pytest.mark.parametrize("name", INDEXED)
def test_tensors_are_indexed_by_what_each_call_brings(name):
    check(INDEXED[name], indices(), 1)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_of_all_widths_are_indices(dtype):
    check(lambda x, i: x[i], [(x, i.astype(dtype)) for x, i in indices(3)], 1)


def test_as_many_indices_as_there_are():
    check(lambda x, i: x[i].sum(0), [(X, np.arange(n)) for n in (3, 5, 9, 4)], 2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gradients_go_where_the_array_says_by_then(dtype):
    """PyTorch keeps an index of int64 as a tensor that shares the memory of the array."""
    compiled = jit(lambda x, i: (x[i] ** 2).sum(), fallback="error")
    for x, i in indices(3):
        found = []
        for function in (lambda x, i: (x[i] ** 2).sum(), compiled):
            leaf, given = x.clone().requires_grad_(), i.astype(dtype)
            loss = function(leaf, given)
            given[:] = given[0]  # as a caller does who shuffles in place
            found += torch.autograd.grad(loss, leaf)
        assert torch.equal(*found)


def changed(x, a):
    a[1] = 3
    a[2:] += 1
    return x[a % 8]


def branching(x, a):
    return x + 1 if (a > 3).all() else x - 1


COMPUTED = {
    "arithmetic": lambda x, a: x[a % 8] + torch.from_numpy(a * 2)[:, None],
    "parts": lambda x, a: x[a[2:5]] + x[a[-1]],
    "other dtypes": lambda x, a: x[: a.size] * torch.tensor(a.astype(np.float32))[:, None],
    "functions": lambda x, a: x[np.sort(a)] * np.mean(a).item(),
    "functions of several": lambda x, a: x[np.concatenate([a, a + 1]) % 64],
    "numbers": lambda x, a: x * int(a[0]) + a.tolist()[1],
    "one by one": lambda x, a: [x[v] for v in a[:3]],
    "shapes": lambda x, a: x[: len(a)].reshape(a.shape[0], -1) * a.ndim,
    "returned": lambda x, a: (x.sum(), a, a + 1),
    "changed": changed,
    "a branch": branching,
    "a mask": lambda x, a: x[: a.size][a > 20].sum(),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_numpy_computes_of_what_each_call_brings(name):
    calls = indices(4, 8)
    check(COMPUTED[name], calls, 3 if name == "a branch" else 2)
    check(COMPUTED[name], calls, 3 if name == "a branch" else 2, cache="symbolic values")


def nearest(points, means):
    return np.argmin(np.linalg.norm(points - means[:, None], axis=2), axis=0)


def descended(weights, points, targets, rate):
    errors = points @ weights - targets
    weights -= rate * 2 * points.T @ errors / len(targets)
    return weights, float((errors**2).mean())


def lived(cells):
    count = sum(np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return (count == 3) | (cells & (count == 2))


def discounted(rewards, rate):
    returns, running = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        running = returns[t] = rewards[t] + rate * running
    return torch.as_tensor(returns)


OF_NUMPY = {
    "nearest means": (nearest, lambda rng: (rng.randn(50, 3), rng.randn(4, 3))),
    "gradient descent": (descended, lambda rng: (rng.randn(3), rng.randn(9, 3), rng.randn(9), 0.1)),
    "game of life": (lived, lambda rng: (rng.rand(8, 8) > 0.5,)),
    "discounted rewards": (discounted, lambda rng: (rng.randn(10), 0.9)),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_functions_of_numpy_alone(name):
    function, given = OF_NUMPY[name]
    check(function, [given(np.random.RandomState(seed)) for seed in range(4)], 2)


def test_arrays_are_found_in_containers():
    check(lambda x, given: x[given["rows"] // 2], [(x, {"rows": i}) for x, i in indices(4)], 2)


def test_an_array_that_is_returned_is_the_caller_s():
    compiled = jit(lambda x, a: (a, x[a - 1]), fallback="error")
    for x, i in indices(4):
        found, rows = compiled(x, i)
        assert found is i and torch.equal(rows, x[i - 1])


def test_one_array_given_twice_is_one():
    def program(x, a, b):
        a += 1
        return x[b % 64], a is b

    compiled = jit(program, fallback="error")
    for apart in (False, False, False, True, True):
        i = np.random.permutation(8)
        a, b = i.copy(), i.copy()
        expected = program(X, a, b if apart else a)
        mine = i.copy()
        assert same(compiled(X, mine, i.copy() if apart else mine), expected)


def test_arrays_that_may_not_be_written_to_are_not():
    def program(x, a):
        a[0] = 5
        return x[a % 64]

    compiled = jit(program)
    for _, i in indices(3):
        compiled(X, i)
    i.flags.writeable = False
    before = i.copy()
    with pytest.raises(ValueError, match="read-only"):
        compiled(X, i)
    assert np.array_equal(i, before)


def test_arrays_of_other_kinds_have_programs_of_their_own():
    def program(x, a):
        return x[: a.shape[0]] * torch.from_numpy(a + 1).reshape(a.shape[0], -1)[:, :1]

    rng = np.random.RandomState(0)
    kinds = [
        lambda: rng.rand(4),
        lambda: rng.rand(4, 3),
        lambda: rng.rand(3, 4).T,
        lambda: rng.rand(4).astype(np.float32),
        lambda: rng.randint(0, 9, 4),
        lambda: rng.rand(5),
    ]
    check(program, [(X, kind()) for kind in kinds for _ in range(3)] * 2, 7)


def test_parts_of_arrays_that_do_not_lie_in_a_row_have_a_program_for_each():
    compiled = jit(lambda x, a: x[a % 8], fallback="error")
    for x, i in [*indices(2), *indices(2)]:
        for part in (i[::2], i[::-1], np.broadcast_to(i[:1], (4,))):
            assert torch.equal(compiled(x, part), x[part % 8])
    assert cache_misses(compiled) == 6


def test_numbers_beside_arrays_stay_dynamic():
    check(lambda x, a, n: x[a % n] * n, [(X, i, n) for (_, i), n in zip(indices(5), range(7, 12), strict=True)], 2)


class Sampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2, dtype=torch.float64)

    def forward(self, x, rows, weights):
        return self.linear(x[rows]) * torch.as_tensor(weights / weights.sum())[:, None]


def test_modules_are_given_arrays():
    rng = np.random.RandomState(0)
    check(Sampled(), [(x, i, rng.rand(32)) for x, i in indices(5)], 2)
