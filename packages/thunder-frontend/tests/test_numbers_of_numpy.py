"""Numbers that a program does not fix beside numbers of other classes: the other class answers, as in eager."""

import numpy as np
import pytest
import torch

from thunder_frontend import cache_misses, jit


class Metres(float):
    """A float with sums of its own."""

    def __add__(self, other):
        return Metres(float(self) + other)

    __radd__ = __add__


class Tired(int):
    """An integer without operators of its own."""


PROGRAMS = {
    "product": lambda n, s: n * s,
    "product from the left": lambda n, s: s * n,
    "sum": lambda n, s: n + s,
    "difference": lambda n, s: s - n,
    "quotient": lambda n, s: n / s,
    "floor": lambda n, s: n // s,
    "power": lambda n, s: n**s,
    "less": lambda n, s: n < s,
    "greater": lambda n, s: s > n,
    "equal": lambda n, s: n == s,
    "quotient and rest": lambda n, s: divmod(n, s),
    "larger": lambda n, s: max(n, s),
    "of an array": lambda n, s: n * np.full(3, s),
    "function": lambda n, s: np.sqrt(n) + s,
}
KINDS = (np.float64, np.float32, np.int64, Metres, Tired)


def kinds(value):
    """Return the type of a value, and the types in it."""
    return type(value), [type(item) for item in value] if isinstance(value, tuple) else getattr(value, "dtype", None)


def agree(compiled, eager, *args):
    """Check that a compiled callable returns what another one returns, of the same types."""
    found, expected = compiled(*args), eager(*args)
    torch.testing.assert_close(found[0], expected[0])
    for mine, theirs in zip(found[1:], expected[1:], strict=True):
        assert kinds(mine) == kinds(theirs)
        assert np.array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_number_of_a_tensor(name, kind):
    program = PROGRAMS[name]

    def eager(x):
        return x * 2, program(x.sum().item(), kind(3))

    compiled = jit(eager, fallback="split")
    for value in (1.1, 3.0, 4.7, 1.1):
        agree(compiled, eager, torch.full((), value))


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_size_and_a_number_that_change(name, kind, cache):
    program = PROGRAMS[name]

    def eager(x, n):
        return x * 2, program(x.shape[0], kind(3)), program(n, kind(3))

    compiled = jit(eager, cache=cache)
    for size, number in ((2, 2.5), (3, 3.5), (4, 3.0), (2, 2.5)):
        agree(compiled, eager, torch.ones(size), number)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_branch_on_a_comparison_has_a_program_for_each_outcome(kind):
    def eager(x):
        return x.exp() if x.sum().item() < kind(2.1) else x.tanh()

    compiled = jit(eager, fallback="error")
    for value in (1.0, 3.0, 2.1, float(np.float32(2.1)), 1.5):
        x = torch.full((), value, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), eager(x))
    assert cache_misses(compiled) == 2
