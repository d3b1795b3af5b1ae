"""``check="first-call"``: what it runs beside the first call leaves no traces, and what it compares."""

import functools
import threading

import pytest
import torch
from torch import nn

from thunder_frontend import DifferenceError, Transform, jit
from thunder_frontend._check import Same

STATE = {"calls": 0, "log": []}


def writes_globals(x):
    STATE["calls"] += 1
    STATE["log"].append(STATE["calls"])
    return x * STATE["calls"]


class Counts:
    def __init__(self):
        self.calls, self.lock = 0, threading.Lock()

    def __call__(self, x):
        self.calls += 1
        return x + self.calls

    def method(self, x):
        return self(x)


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.last, self.calls = nn.LazyLinear(3), None, 0

    def forward(self, x):
        self.calls += 1
        self.last = self.linear(x)
        return self.last * self.calls


def checked(function):
    return jit(function, check="first-call")


def test_variables_of_functions_are_written_once():
    log, count = [], 0

    def program(x):
        nonlocal count
        count += 1
        log.append(count)
        return x * count

    compiled = checked(program)
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]
    assert log == [1, 2, 3]


def test_globals_are_written_once():
    STATE.update(calls=0, log=[])
    compiled = checked(writes_globals)
    assert [compiled(torch.ones(1)).item() for _ in range(2)] == [1, 2]
    assert STATE == {"calls": 2, "log": [1, 2]}


@pytest.mark.parametrize("of", [lambda c: c, lambda c: c.method, lambda c: functools.partial(c.method)])
def test_objects_are_written_once(of):
    counts = Counts()
    compiled = checked(of(counts))
    assert [compiled(torch.zeros(1)).item() for _ in range(2)] == [1, 2]


def test_modules_that_keep_results_are_written_once():
    module = Remembers()
    compiled = checked(module)
    for calls in (1, 2):
        x = torch.ones(2, 4)
        assert torch.equal(compiled(x), module.linear(x) * calls)
        assert module.calls == calls
        assert module.last.requires_grad


def test_random_numbers_of_a_generator_are_drawn_once():
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]

    def program(x):
        return x + torch.rand(3, generator=generators[0])

    compiled = checked(program)
    for _ in range(2):
        assert torch.equal(compiled(torch.zeros(3)), torch.rand(3, generator=generators[1]))


class Forgets(Transform):
    """Drops what a call writes to the outside."""

    def transform_traces_pre_prologue(self, prologue_trace, computation_trace, epilogue_trace, **kwargs):
        calls = [b for b in computation_trace.bound_symbols if "add" not in b.symbol.name]
        outputs = {p.name for b in calls for p in b.outputs} | {p.name for p in computation_trace.inputs}
        kept = tuple([p if p.name in outputs else computation_trace.inputs[0] for p in computation_trace.output])
        return prologue_trace, computation_trace.replace(bound_symbols=tuple(calls), output=kept), epilogue_trace


def adds_to_a_variable():
    total = torch.full((3,), 5.0)

    def program(x):
        total.add_(x)
        return x * 2

    return program


def test_what_is_written_to_variables_is_compared():
    compiled = jit(adds_to_a_variable(), check="first-call", transforms=[Forgets()])
    with pytest.raises(DifferenceError, match="the variable total"):
        compiled(torch.ones(3))


def test_numbers_among_results_are_compared():
    Same().object("the result", (1, "a", {"b": 2.0}), (1, "a", {"b": 2.0}))
    with pytest.raises(DifferenceError, match="the result.* is 2.0, eager's 3.0"):
        Same().object("the result", (1, "a", {"b": 2.0}), (1, "a", {"b": 3.0}))
