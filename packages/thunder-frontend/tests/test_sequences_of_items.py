"""Objects that are iterated over by ``__getitem__`` alone, as lists of parameters in libraries are."""

import itertools

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit


class Factors(nn.Module):
    def __init__(self, count=3):
        super().__init__()
        self.names = [f"factor_{i}" for i in range(count)]
        for name in self.names:
            self.register_parameter(name, nn.Parameter(torch.randn(2, 2)))

    def __getitem__(self, index):
        return getattr(self, self.names[index])

    def __len__(self):
        return len(self.names)


def looped(factors, x):
    for factor in factors:
        x = x @ factor
    return x


def begun_by_hand(factors, x):
    rest = iter(factors)
    x = x @ next(rest)
    for factor in rest:
        x = x + factor
    return x * (next(rest, None) is None) * (type(rest) is type(iter(factors)))


def starred(factors, x):
    first, *rest = factors
    return x @ first + sum(rest)


def given(factors, x):
    return (lambda *all_of_them: x @ torch.stack(all_of_them).sum(0))(*factors)


def delegated(factors, x):
    def each():
        yield from factors

    return x @ torch.stack([*each()]).prod(0)


def zipped(factors, x):
    for factor, scale in zip(factors, itertools.count(1), strict=False):
        x = x @ factor * scale
    return x


PROGRAMS = {
    "looped": looped,
    "begun by hand": begun_by_hand,
    "starred": starred,
    "given": given,
    "delegated": delegated,
    "zipped": zipped,
    "list": lambda factors, x: x @ list(factors)[-1] + len(tuple(factors)),
    "comprehension": lambda factors, x: sum([x @ factor for factor in factors]),
    "enumerated": lambda factors, x: sum(i * (x @ factor) for i, factor in enumerate(factors)),
    "mapped": lambda factors, x: x @ sum(map(torch.exp, factors)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_iterated_over_by_getitem(name):
    program, factors, x = PROGRAMS[name], Factors(), torch.randn(2, 2)
    compiled = jit(program, fallback="error")
    for _ in range(2):
        wanted = torch.autograd.grad(program(factors, x).sum(), list(factors.parameters()), allow_unused=True)
        found = torch.autograd.grad(compiled(factors, x).sum(), list(factors.parameters()), allow_unused=True)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(compiled(factors, x), program(factors, x))
    assert cache_misses(compiled) == 1
    factors.names.reverse()
    factors.factor_0 = nn.Parameter(torch.ones(2, 2))
    torch.testing.assert_close(compiled(factors, x), program(factors, x))
