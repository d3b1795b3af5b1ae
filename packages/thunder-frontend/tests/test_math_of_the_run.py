"""Functions of ``math`` of what ``item()`` returns: computed when the program runs, by one program for all values."""

import math

import pytest
import torch

from thunder_frontend import cache_misses, explain, jit


def by_handler(x, k):
    try:
        return x * math.exp(k.add_(300).item())
    except OverflowError:
        return x - 1


KEPT = []


def with_an_effect(x, k):
    KEPT.append(math.sqrt(k.add_(1).item()))
    return x * KEPT[-1]


PROGRAMS = {
    "exp": lambda x, k: x * math.exp(k.add_(1).item()),
    "perplexity": lambda x, k: (x * 2, math.exp((x.sum() + k.add_(1)).mean().item())),
    "finite": lambda x, k: x * 2 if math.isfinite(k.add_(1).item()) else x,
    "finite tensor": lambda x, k: x * 2 if math.isfinite(k.add_(1)) else x,
    "nan": lambda x, k: x * 2 if math.isnan((k.add_(1) * float("nan")).item()) else x,
    "returned": lambda x, k: (math.isinf(k.add_(1).item()), math.cos(k.item()), x),
    "log": lambda x, k: x * math.log(k.add_(1).item()),
    "base": lambda x, k: x * math.log(k.add_(1).item(), 2),
    "power": lambda x, k: x * math.pow(0.9, k.add_(1).item()),
    "several": lambda x, k: x * math.atan2(k.add_(1).item(), 2) + math.hypot(k.item(), 1, k.item()),
    "of a tensor": lambda x, k: x * math.tanh(k.add_(1)),
    "branch": lambda x, k: x * 2 if math.sqrt(k.add_(1).item()) > 2 else x,
    "nested": lambda x, k: x * max(math.log(math.exp(k.add_(1).item())), 1.0),
    "handler": by_handler,
    "effect": with_an_effect,
}
OF_INTEGERS = {
    "sqrt": lambda x, k: x * math.sqrt(k.add_(1).item()),
    "power": lambda x, k: x * math.pow(k.add_(1).item(), 0.5),
    "isqrt": lambda x, k: x * math.isqrt(k.add_(1).item()),
    "gcd": lambda x, k: x * math.gcd(k.add_(1).item(), 6),
    "gcd of a tensor": lambda x, k: x * math.gcd(k.add_(1), 6),
    "comb": lambda x, k: x * math.comb(7, k.add_(1).item()),
    "int": lambda x, k: x * int(math.log(k.add_(1).item())),
}
CASES = [(f, torch.float32) for f in PROGRAMS.values()] + [(f, torch.int64) for f in OF_INTEGERS.values()]


@pytest.mark.parametrize(("program", "dtype"), CASES, ids=[*PROGRAMS, *[f"{name} of integers" for name in OF_INTEGERS]])
def test_each_call_computes_with_its_own_value(program, dtype):
    compiled, x = jit(program), torch.ones(3)
    mine, eagers = torch.zeros((), dtype=dtype), torch.zeros((), dtype=dtype)
    for _ in range(8):
        torch.testing.assert_close(compiled(x, mine), program(x, eagers), rtol=0, atol=0, equal_nan=True)
        assert torch.equal(mine, eagers)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("handler", "effect")])
def test_one_program_serves_all_values_of_each_branch(name):
    compiled, k = jit(PROGRAMS[name], fallback="error"), torch.zeros(())
    for _ in range(8):
        compiled(torch.ones(3), k)
    assert cache_misses(compiled) <= 2
    assert "nothing runs in Python" in str(explain(PROGRAMS[name])(torch.ones(3), torch.zeros(())))


def test_where_a_function_raises_the_user_sees_its_exception_and_what_was_written_before():
    def logarithm(x, k, log):
        log.append(k.add_(1).item())
        return x * math.log(k.item() - 3)

    compiled, x = jit(logarithm), torch.ones(3)
    mine, eagers = (torch.zeros(()), []), (torch.zeros(()), [])
    for _ in range(3):
        for run, (k, log) in ((compiled, mine), (logarithm, eagers)):
            with pytest.raises(ValueError, match="math domain error|expected a positive input"):
                run(x, k, log)
        assert mine == eagers
    for _ in range(3):
        torch.testing.assert_close(compiled(x, *mine), logarithm(x, *eagers))
    assert mine == eagers


def test_gradients_around_a_number_of_the_run():
    def loss(x):
        found = x.square().sum()
        return found * math.exp(-found.item())

    compiled = jit(loss)
    for scale in (1.0, 0.5, 0.25):
        x = torch.full((3,), scale, requires_grad=True)
        (mine,), (eagers,) = torch.autograd.grad(compiled(x), x), torch.autograd.grad(loss(x), x)
        torch.testing.assert_close(mine, eagers)
    assert cache_misses(compiled) == 1
