"""Results that keep their gradients, as the program or its caller says, and that the caller then writes to."""

import pytest
import torch

from thunder_frontend import jit


def linked(x):
    y = x * 3
    return y * 2, y


def apart(x):
    return x.sin(), x * 3


def viewed(x):
    y = x * 3
    return y * 2, y, y[0] * 2, y


def retaining(x):
    y = x * 3
    y.retain_grad()
    return y + 1, y


WRITES = {
    "nothing": lambda t: None,
    "whole": lambda t: t.mul_(2),
    "part": lambda t: t[0].zero_(),
    "twice": lambda t: (t[0].zero_(), t.mul_(2)),
    "detached": lambda t: t.detach_(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("which", [[1], [0, 1]], ids=["second", "both"])
@pytest.mark.parametrize("program", [linked, apart, viewed, retaining])
def test_results_that_keep_their_gradients_may_be_written_to(program, which, write, dtype):
    def called(function):
        leaf = torch.arange(6.0).to(dtype).reshape(2, 3).requires_grad_()
        results = function(leaf)
        for i in which:
            results[i].retain_grad()
        write(results[1])
        sum([(i + 1) * t.abs().square().sum() for i, t in enumerate(results)]).backward()
        return [leaf.grad, *[t.grad for t in results if t.retains_grad]]

    compiled = jit(program, fallback="error")
    for _ in range(2):
        torch.testing.assert_close(called(compiled), called(program))


@pytest.mark.parametrize("program", [linked, apart])
def test_hooks_on_results_that_are_written_to_see_what_came_to_the_results_before(program):
    def called(function):
        leaf, seen = torch.ones(2, 3, requires_grad=True), []
        results = function(leaf)
        results[1].register_hook(lambda gradient: seen.append(gradient))
        results[1].mul_(2)
        results[1].register_hook(lambda gradient: seen.append(gradient))
        (results[0].sum() + results[1].sum()).backward()
        return [leaf.grad, *seen]

    torch.testing.assert_close(called(jit(program, fallback="error")), called(program))


def test_numbers_that_change_are_no_tensors():
    def program(x, counter):
        counter["calls"] += 1
        y = x * 3
        return y.sum(), y

    counter, compiled = {"calls": 0}, jit(program, fallback="error")
    for _ in range(4):
        leaf = torch.ones(3, requires_grad=True)
        total, y = compiled(leaf, counter)
        (total + y[0]).backward()
    assert counter == {"calls": 4}
    torch.testing.assert_close(leaf.grad, torch.tensor([6.0, 3.0, 3.0]))


def unseen(x):
    y = x * 3
    z = y * 5
    with torch.no_grad():
        y.add_(1)
    return z, y


def unseen_twice(x):
    y = x * 3
    z = y * 5
    with torch.no_grad():
        y[0].mul_(2)
    w = y * 7
    y.data.mul_(2)
    return y, z, w, y[0]


def unseen_after_a_copy(x):
    y = x * 3
    y.retain_grad()
    z = torch.nn.functional.dropout(y, 0.0)
    with torch.no_grad():
        y.copy_(torch.ones(3))
    return z, y, y.detach()


@pytest.mark.parametrize("program", [unseen, unseen_twice, unseen_after_a_copy])
def test_results_written_behind_autograds_back_get_gradients_of_what_was_computed_of_them(program):
    def called(function):
        leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
        results = function(leaf)
        for result in results:
            if result.requires_grad:
                result.retain_grad()
        with torch.no_grad():
            results[1].add_(1)
        values = [t.detach().clone() for t in results]
        sum([(i + 1) * t.sum() for i, t in enumerate(results) if t.requires_grad]).backward()
        return [leaf.grad, values, *[t.grad for t in results if t.retains_grad]]

    compiled = jit(program, fallback="error")
    for _ in range(2):
        torch.testing.assert_close(called(compiled), called(program))


QUOTIENTS = {
    "of itself": lambda x: (x / (x.abs() + 1),),
    "by an input": lambda x: (x.sin() / x,),
    "and what is computed of it": lambda x: ((y := x * 3), (y * 2).sin()),
    "and what is computed of a view of it": lambda x: ((y := x * 3), (y.t() * 2).exp()),
}


@pytest.mark.parametrize("program", QUOTIENTS.values(), ids=QUOTIENTS)
def test_results_that_eager_does_not_keep_may_be_written_to_before_the_backward_pass(program):
    def called(function):
        leaf = torch.arange(1.0, 7).reshape(2, 3).requires_grad_()
        results = function(leaf)
        results[0].add_(1)
        with torch.no_grad():
            results[0].mul_(2)
        sum([t.square().sum() for t in results]).backward()
        return leaf.grad

    compiled = jit(program, fallback="error")
    torch.testing.assert_close(called(compiled), called(program))
