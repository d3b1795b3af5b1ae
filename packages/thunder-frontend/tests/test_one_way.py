"""Branches on values of which one way only raises: assertions, checks of arguments, checks for what is not finite."""

import operator

import pytest
import torch
from checking_programs import PROGRAMS, Checked, asserts

from thunder_frontend import cache_misses, jit, last_traces


def outcome(function, x):
    try:
        return function(x)
    except Exception as error:
        return type(error), str(error), type(error.__cause__)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("first", [1.0, -1.0])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_calls_raise_what_eager_raises(program, first, requires_grad):
    compiled = jit(program)
    for value in (first, 1.0, -1.0, float("nan"), 2.0, 0.0):
        x = torch.full((2, 3), value, requires_grad=requires_grad)
        ours, eagers = outcome(compiled, x), outcome(program, x)
        if isinstance(eagers, tuple):
            assert ours == eagers
            continue
        torch.testing.assert_close(ours, eagers, rtol=0, atol=0, equal_nan=True)
        assert ours.requires_grad == requires_grad
        if requires_grad:
            gradients = [torch.autograd.grad(result.sum(), x)[0] for result in (ours, eagers)]
            torch.testing.assert_close(*gradients, rtol=0, atol=0, equal_nan=True)
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize("grad", [False, True])
def test_calls_that_begin_anew_as_eager_write_everything_once(grad):
    eager, module = Checked(), Checked()
    compiled, ours, eagers = jit(module), torch.ones(2), torch.ones(2)
    with torch.set_grad_enabled(grad):
        for _ in range(4):
            results = outcome(compiled, ours), outcome(eager, eagers)
            assert results[0] == results[1] if isinstance(results[0], tuple) else torch.equal(*results)
            assert torch.equal(ours, eagers) and torch.equal(module.calls, eager.calls) and module.seen == eager.seen


def test_a_way_that_raises_may_be_caught():
    def program(x):
        try:
            if x.mean() > 0:
                raise KeyError("positive")
            return x
        except KeyError:
            return x * 100

    compiled = jit(program)
    for value in (-1.0, 1.0, -2.0):
        assert torch.equal(compiled(torch.tensor([value])), program(torch.tensor([value])))


def test_programs_show_what_they_check():
    compiled = jit(asserts)
    compiled(torch.ones(2))
    assert "Check(expected=True)" in str(last_traces(compiled)[-1])


def test_comparisons_of_numbers_that_the_run_tells_may_be_returned():
    def program(x):
        count = x.nonzero().shape[0]
        return {"all": count == 3, "some": [count > 0, count != count], "scaled": x * (x.sum().item() > 2)}

    compiled = jit(program)
    for values in ([1.0, 2, 3], [0.0, 1, 0], [0.0, 0, 0]):
        x = torch.tensor(values)
        ours, eagers = compiled(x), program(x)
        assert str(ours) == str(eagers) and type(ours["all"]) is bool
    assert cache_misses(compiled) == 1


def test_truths_of_what_the_run_tells_may_be_returned():
    def program(x):
        ours = [bool((x > 0).all()), operator.truth(x.sum()), bool(x.sum().item()), bool(x[:0].sum())]
        return ours, x * ours[0], torch.full((2,), ours[1]), isinstance(ours[2], bool)

    compiled = jit(program)
    for values in ([1.0, 2, 3], [0.0, 1, 0], [0.0, 0, 0], [float("nan"), 1, 1]):
        ours, eagers = compiled(torch.tensor(values)), program(torch.tensor(values))
        assert str(ours) == str(eagers) and {type(truth) for truth in ours[0]} == {bool}
    assert cache_misses(compiled) == 1


def test_truths_of_several_elements_are_refused_as_in_eager():
    compiled = jit(lambda x: bool(x))
    assert outcome(compiled, torch.ones(2)) == outcome(bool, torch.ones(2))
    assert compiled(torch.ones(1, 1)) is True


@pytest.mark.filterwarnings("ignore:_check_is_size")
def test_what_is_said_of_sizes_is_checked():
    def program(x):
        count = x.sum().long().item()
        torch._check_is_size(count, max=5)
        return torch.ones(count)

    compiled = jit(program)
    for value in (3.0, 0.0, 5.0, 6.0, -1.0):
        ours, eagers = outcome(compiled, torch.tensor([value])), outcome(program, torch.tensor([value]))
        assert str(ours) == str(eagers)
    assert cache_misses(compiled) == 1
