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


GOOD, BAD = torch.eye(2) * 2, torch.tensor([[1.0, 1.0], [-1.0, 1.0]])


@pytest.mark.parametrize("program", [solved, reshaped, caught_further_out, written_before])
@pytest.mark.parametrize("order", [(GOOD, -GOOD, BAD, GOOD), (-GOOD, BAD, torch.zeros(2, 2), GOOD)])
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
