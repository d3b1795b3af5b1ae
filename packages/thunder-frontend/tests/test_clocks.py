"""Clocks are read by each call, where eager reads them."""

import time

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit
from thunder_frontend._lookasides.clocks import CLOCKS


@pytest.mark.parametrize("clock", CLOCKS, ids=lambda clock: clock.__name__)
def test_each_call_reads_the_clock(clock):
    def program(x):
        began = clock()
        y = x * 2
        return y, began, clock() - began

    compiled = jit(program)
    before = clock()
    for _ in range(3):
        y, began, took = compiled(torch.ones(2))
        after = clock()
        assert y.tolist() == [2, 2]
        assert type(began) is type(took) is type(before)
        assert before <= began <= after
        assert 0 <= took <= after - began
        before = after
    assert cache_misses(compiled) == 1


class Timed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.took, self.total = nn.Linear(2, 2), [], 0.0

    def forward(self, x):
        self.began = time.perf_counter()
        y = self.linear(x)
        took = time.perf_counter() - self.began
        self.took.append(took)
        self.total += took
        return y


def test_modules_keep_what_they_measure():
    model = Timed()
    compiled = jit(model)
    for _ in range(4):
        before = time.perf_counter()
        compiled(torch.ones(2)).sum().backward()
        assert before <= model.began <= time.perf_counter()
    assert len(set(model.took)) == 4
    assert model.total == sum(model.took)
    assert cache_misses(compiled) <= 2


def test_a_program_ends_when_its_time_is_up():
    def program(x, deadline):
        return x + 1 if time.monotonic() < deadline else x

    compiled = jit(program)
    assert compiled(torch.zeros(1), time.monotonic() + 1000.0).item() == 1
    assert compiled(torch.zeros(1), time.monotonic() - 1.0).item() == 0
    assert compiled(torch.zeros(1), time.monotonic() + 1000.0).item() == 1


def test_texts_tell_the_time_that_each_call_took(capsys):
    def program(x):
        began = time.perf_counter()
        print(f"took {time.perf_counter() - began:.9f} s until {time.perf_counter() + began:.9f} s")
        return x + 1

    compiled = jit(program)
    for _ in range(3):
        compiled(torch.zeros(1))
    assert len(set(capsys.readouterr().out.splitlines())) == 3
    assert cache_misses(compiled) == 1
