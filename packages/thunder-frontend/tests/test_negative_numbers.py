"""Numbers below 0 that change from call to call: slices from the end, shifts, offsets."""

import pytest
import torch
from torch.nn import functional as F

from thunder_frontend import cache_misses, jit

X = torch.randn(40, 12)


def written(x, n):
    y = x.clone()
    y[n:] = 0
    y[:n] += 1
    return y


CALLS = {
    "the last": (lambda x, n: x[n:] * 2, 1),
    "all but the last": (lambda x, n: x[:n] * 2, 1),
    "turned": (lambda x, n: x[-n:] * 2, 1),
    "in two dimensions": (lambda x, n: x[n:, :n].sum(0), 1),
    "one": (lambda x, n: x[n] * 2, 1),
    "by steps": (lambda x, n: x[n::2] * 2, 1),
    "between": (lambda x, n: x[n - 1 : n] * 2, 1),
    "written": (written, 1),
    "roll": (lambda x, n: x.roll(n, 0), 1),
    "pad": (lambda x, n: F.pad(x, (0, n)), 1),
    "tril": (lambda x, n: x.tril(n), 1),
    "diagonal": (lambda x, n: x.diagonal(n) * 2, 1),
    "arange": (lambda x, n: torch.arange(n, 20) * 2, 1),
    "full": (lambda x, n: torch.full((3,), n) + x[0, 0], 1),
    "computed with": (lambda x, n: x * n + abs(n) + (n % 3) + n // 2, 1),
    "narrow": (lambda x, n: x.narrow(0, n, -n) * 2, 1),
    "a size": (lambda x, n: x.new_zeros(2 - n) + x.sum(), 1),
}


@pytest.mark.parametrize("cache", ["symbolic values", "auto"])
@pytest.mark.parametrize("name", CALLS)
def test_negative_numbers_are_dynamic(name, cache):
    function, programs = CALLS[name]
    compiled = jit(function, cache=cache)
    for n in (-2, -3, -4, -7, -9):
        ours, eagers = (X.clone().requires_grad_() for _ in range(2))
        results = [callee(x, n) for callee, x in ((compiled, ours), (function, eagers))]
        torch.testing.assert_close(*results)
        for result in results:
            if result.requires_grad:
                (result * torch.linspace(0, 1, result.numel()).reshape(result.shape)).sum().backward()
        torch.testing.assert_close(ours.grad, eagers.grad)
    assert cache_misses(compiled) <= programs + (cache == "auto")


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_all_signs_give_what_eager_gives(name):
    function, _ = CALLS[name]
    compiled = jit(function)
    for n in (5, 3, -2, -3, 0, 1, -1, 11, 12, 13, -12, -13, 39, 40, 41, -39, -40, -41, -4):
        try:
            expected = function(X, n)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(X, n)
        else:
            torch.testing.assert_close(compiled(X, n), expected)


@pytest.mark.parametrize("name", ["sum", "unsqueeze", "softmax", "transpose"])
def test_dimensions_counted_from_the_end(name):
    calls = {
        "sum": lambda x, d: x.sum(d), "unsqueeze": lambda x, d: x.unsqueeze(d), "softmax": lambda x, d: x.softmax(d),
        "transpose": lambda x, d: x.transpose(d, 0) * 2,
    }  # fmt: skip
    compiled = jit(calls[name])
    for d in (-1, -2, -1, 0, 1, -2):
        torch.testing.assert_close(compiled(X, d), calls[name](X, d))
