"""Operations within a ``try`` statement that raise for some values: what Python catches, it catches as in eager."""

import contextlib
import random

import pytest
import torch

from thunder_frontend import cache_misses, jit


def solved(x):
    try:
        return torch.linalg.cholesky(x) * 2
    except torch.linalg.LinAlgError as error:
        return x - 1, type(error).__name__


def reshaped(x):
    try:
        return x.sin().view(int((x > 0).sum()), -1)
    except RuntimeError:
        return x.flatten() + torch.rand(4) * random.random()


def inverted(x):
    return torch.linalg.inv(x)


def caught_further_out(x):
    state = []
    for step in range(2):
        with torch.no_grad():
            try:
                with contextlib.nullcontext():
                    state.append(step)
                    x = inverted(x - step * torch.eye(2))
            except (ValueError, RuntimeError):
                state.append("singular")
                x = x + 2
            finally:
                state.append("done")
    return x, state


def written_before(x):
    x.mul_(2)
    try:
        y = torch.linalg.cholesky(x)
    except RuntimeError:
        y = None
    x.add_(1)
    return y


def chosen_before(x):
    x.mul_(2)
    try:
        torch.cond(x.sum() > 0, lambda t: torch.linalg.cholesky(t).sum(), lambda t: t.sum(), (x,))
    except RuntimeError:
        x.sub_(3)
    x.add_(1)


GOOD, BAD = torch.eye(2) * 2, torch.tensor([[1.0, 1.0], [-1.0, 1.0]])
WORSE = torch.tensor([[1.0, -3.0], [-3.0, 6.0]])


@pytest.mark.parametrize("program", [solved, reshaped, caught_further_out, written_before, chosen_before])
@pytest.mark.parametrize("order", [(GOOD, -GOOD, BAD, WORSE, GOOD), (-GOOD, BAD, torch.zeros(2, 2), WORSE, GOOD)])
def test_what_python_catches_is_caught_as_in_eager(program, order):
    compiled = jit(program)
    for seed, given in enumerate(order):
        results = []
        for run in (compiled, program):
            torch.manual_seed(seed)
            random.seed(seed)
            x = given.clone()
            results.append((run(x), x, torch.get_rng_state(), random.random()))
        assert repr(results[0]) == repr(results[1])
    assert cache_misses(compiled) <= 2


def test_what_nothing_catches_is_raised_by_the_program():
    compiled = jit(inverted)
    compiled(GOOD)
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(torch.zeros(2, 2))


def test_what_a_handler_does_not_catch_is_raised_as_in_eager():
    def program(x):
        try:
            return torch.linalg.inv(x)
        except KeyError:
            return x

    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        jit(program)(torch.zeros(2, 2))


def viewed(x):
    rows = int((x > 0).sum())
    try:
        return x.view(rows, -1)
    except RuntimeError:
        return x.flatten() + 1


def unread(x):
    x.view(int((x > 0).sum()), -1)
    return x + 1


def attempt(program, x):
    try:
        return program(x)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("program", [viewed, unread])
def test_a_view_of_an_argument_for_which_the_number_of_rows_is_wrong_raises_as_in_eager(program):
    compiled = jit(program)
    for positive in (4, 2, 3, 8):
        x = torch.arange(8.0) - 8 + positive + 0.5
        assert repr(attempt(compiled, x)) == repr(attempt(program, x))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Linear(2, 2, bias=False)
        torch.nn.init.eye_(self.scale.weight)

    def forward(self, x):
        return torch.linalg.cholesky(self.scale(x))


class Blocks(torch.nn.Module):
    """The second block is like the first, but within a try statement."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x, y):
        x, y = self.first(x * 1), y * 1
        try:
            z = self.second(y)
        except RuntimeError:
            return x - 1
        return x + z


@torch.no_grad()
def test_what_a_repeated_block_raises_within_a_try_statement_is_caught():
    model = Blocks()
    compiled = jit(model)
    for second in (GOOD.clone(), -GOOD, BAD, GOOD + 1):
        torch.testing.assert_close(compiled(GOOD, second), model(GOOD, second))
    assert cache_misses(compiled) == 1


def refused_below_zero(x):
    if x.min() < 0:
        raise RuntimeError("below zero")
    return x.sqrt()


@pytest.fixture
def operator_of_ones_own():
    with torch.library._scoped_library("tried", "FRAGMENT"):
        own = torch.library.custom_op("tried::root", refused_below_zero, mutates_args=(), schema="(Tensor x) -> Tensor")
        own.register_fake(torch.empty_like)
        yield own


@pytest.mark.parametrize("is_read", [True, False])
def test_what_an_operator_of_ones_own_raises_is_caught_before_anything_is_written(operator_of_ones_own, is_read):
    def program(x, y):
        x.mul_(2)
        try:
            z = operator_of_ones_own(y)
        except RuntimeError:
            z = y
        x.add_(z if is_read else 1)

    compiled = jit(program)
    for value in (1.0, -1.0, 4.0):
        x, y = torch.ones(2, 2), torch.full((2, 2), value)
        expected = x.clone()
        compiled(x, y)
        program(expected, y)
        torch.testing.assert_close(x, expected)
