"""Under the same seed a program draws what eager execution draws, and its derivative replays it."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from thunder_autograd import grad_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import OpTags, record
from thunder_ir.passes import expand
from thunder_torch import call, proxy_of, torch_language
from thunder_torch.randomness import is_random

DRAWS = [
    (F.dropout, (), {"p": 0.3}),
    (F.alpha_dropout, (), {"p": 0.3, "training": True}),
    (F.dropout1d, (), {"p": 0.5}),
    (F.rrelu, (), {"training": True}),
    (F.gumbel_softmax, (), {"dim": -1}),
    (F.scaled_dot_product_attention, "qkv", {"dropout_p": 0.4}),
    (torch.rand_like, (), {}),
    (torch.bernoulli, (), {}),
    (torch.multinomial, (2,), {}),
    (torch.normal, (1.0,), {}),
]


def program_of(function, args, kwargs):
    def program(a):
        if args == "qkv":
            return call(function, (a, a, a), kwargs)
        return call(function, (a, *args), kwargs)

    return program


def eager(function, args, kwargs, a):
    torch.manual_seed(3)
    return function(a, a, a, **kwargs) if args == "qkv" else function(a, *args, **kwargs)


@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize(("function", "args", "kwargs"), DRAWS, ids=[d[0].__name__ for d in DRAWS])
def test_draws_what_eager_draws(function, args, kwargs, decomposed):
    a = torch.rand(4, 6)
    expected = eager(function, args, kwargs, a)
    trace = record(program_of(function, args, kwargs), [proxy_of(a, "a")], language=torch_language)
    trace = expand(trace) if decomposed else trace
    torch.manual_seed(3)
    torch.testing.assert_close(to_callable(trace, [executor])(a), expected)


@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize(("function", "args", "kwargs"), DRAWS[:6], ids=[d[0].__name__ for d in DRAWS[:6]])
def test_derivatives_meet_the_same_numbers(function, args, kwargs, decomposed):
    a = torch.rand(4, 6, requires_grad=True)
    expected = eager(function, args, kwargs, a)
    dy = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, a, dy)[0]
    trace = record(program_of(function, args, kwargs), [proxy_of(a, "a")], language=torch_language)
    joint = grad_transform_on_trace(expand(trace) if decomposed else trace)
    torch.manual_seed(3)
    with torch.no_grad():
        output, (gradient,) = to_callable(joint, [executor])(a.detach(), dy)
    torch.testing.assert_close(output, expected.detach())
    torch.testing.assert_close(gradient, wanted)
    after = torch.rand(1)
    eager(function, args, kwargs, a)
    assert torch.equal(after, torch.rand(1))  # the replay left the generator where the forward run had


def test_factories_draw_what_eager_draws():
    factories = [(torch.rand, (2, 3)), (torch.randn, ((4,),)), (torch.randint, (0, 9, (5,))), (torch.randperm, (7,))]
    for function, args in factories:
        torch.manual_seed(5)
        expected = function(*args)
        trace = record(lambda f=function, a=args: call(f, a, {}), [])
        for form in (trace, expand(trace)):
            torch.manual_seed(5)
            assert torch.equal(to_callable(form, [executor])(), expected), function


def test_an_explicit_generator_is_used():
    generator = torch.Generator().manual_seed(7)
    trace = record(lambda: call(torch.rand, (3,), {"generator": generator}), [])
    found = to_callable(trace, [executor])()
    assert torch.equal(found, torch.rand(3, generator=torch.Generator().manual_seed(7)))


def test_attention_with_dropout_is_never_merged_with_another():
    a = torch.rand(2, 4, 8)

    def program(q):
        one, two = (call(F.scaled_dot_product_attention, (q, q, q), {"dropout_p": 0.5}) for _ in range(2))
        return call(torch.sub, (one, two), {})

    trace = record(program, [proxy_of(a, "a")], language=torch_language)
    assert to_callable(trace, [executor])(a).abs().sum() > 0


def test_a_function_of_the_users_that_draws_is_replayed():
    def noisy(a):
        return a * torch.rand_like(a)

    a = torch.rand(5, requires_grad=True)
    expected = eager(noisy, (), {}, a)
    wanted = torch.autograd.grad(expected.sum(), a)[0]
    trace = record(program_of(noisy, (), {}), [proxy_of(a, "a")], language=torch_language)
    assert trace.bound_symbols[0].has_tag(OpTags.RANDOM)
    torch.manual_seed(3)
    with torch.no_grad():
        output, (gradient,) = to_callable(grad_transform_on_trace(trace), [executor])(a.detach(), torch.ones(5))
    torch.testing.assert_close((output, gradient), (expected.detach(), wanted))


def test_what_draws_is_told_by_the_tags_of_pytorchs_operators():
    tensor = torch.Tensor
    for drawn in (torch._standard_gamma, torch._sample_dirichlet, tensor.normal_, torch.poisson, torch.lstm):
        assert is_random(drawn)
    assert not any(map(is_random, (torch.sin, tensor.add_, F.linear, F.layer_norm, torch.special.gammaln)))
