"""Integers that a program makes of floats which only the run tells: open, and looked at where Python needs their values."""

import enum
import math

import pytest
import torch

from thunder_frontend import cache_misses, jit

TABLE = (5.0, 6.0, 7.0, 8.0, 9.0)


def same_as_eager(compiled, program, sums):
    for total in sums:
        x = torch.tensor([total / 2, total / 2], requires_grad=True)
        found, expected = compiled(x), program(x)
        torch.testing.assert_close(found, expected, equal_nan=True)
        gradients = [torch.autograd.grad(r.sum(), x)[0] for r in (found, expected)]
        torch.testing.assert_close(*gradients, equal_nan=True)


@pytest.mark.parametrize("function", [int, math.floor, math.ceil, math.trunc, round])
def test_there_is_a_program_for_each_integer_that_python_indexes_with(function):
    def program(x):
        return x * TABLE[function(x.sum().item())]

    compiled = jit(program)
    same_as_eager(compiled, program, (0.6, 1.4, 2.6, 0.7, 1.2, -1.6, 2.7))
    assert cache_misses(compiled) == len({function(s) for s in (0.6, 1.4, 2.6, 0.7, 1.2, -1.6, 2.7)})


def test_one_program_serves_all_integers_that_python_only_computes_with():
    def program(x):
        n = int(x.sum().item() * 2)
        return x * n + torch.ones(n + 1).sum()

    compiled = jit(program)
    same_as_eager(compiled, program, (0.6, 1.4, 2.6, 30.0))
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize("first", [math.nan, 1.0])
def test_a_float_that_is_no_integer_raises_as_in_eager(first):
    def program(x):
        try:
            return x * TABLE[int(x.sum().item())]
        except (ValueError, OverflowError) as error:
            return x * len(str(error))

    same_as_eager(jit(program), program, (first, math.inf, 2.0, math.nan, 1.0, -math.inf))


def test_a_choice_by_a_number_that_is_drawn():
    def program(x):
        return x * TABLE[int(torch.empty(1).uniform_(0.0, 4.0).item())]

    compiled = jit(program)
    for seed in range(8):
        results = []
        for run in (compiled, program):
            torch.manual_seed(seed)
            results.append((run(torch.ones(2)), torch.get_rng_state()))
        torch.testing.assert_close(*results)
    assert cache_misses(compiled) <= 4


class Width(enum.IntEnum):
    NARROW = 2
    WIDE = 3


class Length(int):
    pass


FACTORIES = {
    "zeros": lambda n: torch.zeros(n),
    "ones": lambda n: torch.ones((n, 2)),
    "full": lambda n: torch.full((n,), n),
    "eye": lambda n: torch.eye(n),
    "empty": lambda n: torch.empty(n, n).fill_(1),
    "new_zeros": lambda n: torch.ones(1).new_zeros(n),
    "layer": lambda n: torch.nn.Linear(n, n),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_sizes_of_classes_derived_from_int_are_integers(name):
    def program(n):
        made = FACTORIES[name](n)
        return made.weight * 0 if name == "layer" else made

    compiled = jit(program, fallback="error")
    for n in (Width.NARROW, Length(2), Width.WIDE, Length(3), 2):
        torch.testing.assert_close(compiled(n), program(n))
