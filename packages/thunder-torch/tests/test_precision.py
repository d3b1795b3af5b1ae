"""Decompositions are as precise as PyTorch's kernels, in value and gradient: at most 1.5 times the error."""

import math

import pytest
import torch
import torch.nn.functional as F

from thunder_autograd import grad_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import record
from thunder_ir.passes import expand
from thunder_torch import call, proxy_of, torch_language

FLOOR = 0.2  # epsilons: the error of rounding once
HALVES = [torch.bfloat16, torch.float16]


def decomposed(function, tensors, options, seed):
    """Return value and gradients of a call as its decomposition into prims computes them."""
    proxies = [proxy_of(t, f"a{i}") for i, t in enumerate(tensors)]
    trace = record(lambda *_: call(function, tuple(proxies), options), proxies, language=torch_language)
    value = to_callable(expand(trace), [executor])(*[t.detach() for t in tensors])
    joint = expand(grad_transform_on_trace(trace.replace(output=(trace.output,))))
    gradients = to_callable(joint, [executor])(*[t.detach() for t in tensors], seed)[1]
    return [value, *[g for g in gradients if g is not None]]


def eager(function, tensors, options, seed):
    value = function(*tensors, **options)
    given = torch.ones_like(value) if seed is None else seed.to(value.dtype)
    return [value.detach(), *torch.autograd.grad(value, [t for t in tensors if t.requires_grad], given)]


def error(found, truth):
    norm = torch.linalg.vector_norm
    finite = torch.isfinite(truth.to(found.dtype))
    assert torch.equal(finite, torch.isfinite(found))
    return float(norm((found.double() - truth)[finite]) / norm(truth[finite]) / torch.finfo(found.dtype).eps)


def ratio(function, make, options, dtype, draws=4):
    """Return the worst ratio of errors, of the value and of each gradient, as the geometric mean over draws."""
    ratios = []
    for seed in range(draws):
        torch.manual_seed(seed)
        tensors = [t if t.dtype is torch.bool else t.to(dtype).requires_grad_() for t in make()]
        truth = [t if t.dtype is torch.bool else t.detach().double().requires_grad_() for t in tensors]
        upstream = torch.randn_like(function(*tensors, **options))
        triples = zip(
            decomposed(function, tensors, options, upstream),
            eager(function, tensors, options, upstream),
            eager(function, truth, options, upstream),
            strict=True,
        )
        ratios.append([(error(ours, t) + FLOOR) / (error(theirs, t) + FLOOR) for ours, theirs, t in triples])
    return max([math.exp(sum(map(math.log, column)) / draws) for column in zip(*ratios, strict=True)])


def normal(*shapes, spread=1.0, mean=0.0):
    return lambda: [torch.randn(shape) * spread + mean for shape in shapes]


QUERIES = normal((3, 24, 16), (3, 32, 16), (3, 32, 16), spread=4.0)


def with_mask(make):
    return lambda: [*make(), torch.rand(24, 32) > 0.3]


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (QUERIES, {}),
        (QUERIES, {"is_causal": True}),
        (with_mask(QUERIES), {}),
        (normal((3, 24, 16), (3, 32, 16), (3, 32, 16), (24, 32), spread=4.0), {}),
        (QUERIES, {"dropout_p": 1e-9}),
        (normal((2, 3, 24, 16), (2, 3, 32, 16), (2, 3, 32, 40), spread=4.0), {}),
    ],
    ids=["plain", "causal", "mask", "bias", "dropout", "wider values"],
)
def test_attention_is_as_precise_as_in_pytorch(make, options, dtype):
    assert ratio(F.scaled_dot_product_attention, make, options, dtype) < 1.5


CALLS = {
    "addmm": (torch.addmm, normal((6, 8), (6, 40), (40, 8)), {}),
    "addmm of a row": (torch.addmm, normal((8,), (6, 40), (40, 8)), {"alpha": 0.3, "beta": 2}),
    "baddbmm": (torch.baddbmm, normal((2, 1, 8), (2, 6, 40), (2, 40, 8)), {"alpha": 0.3}),
    "addbmm": (torch.addbmm, normal((6, 8), (2, 6, 40), (2, 40, 8)), {}),
    "addmv": (torch.addmv, normal((6,), (6, 40), (40,)), {}),
    "addcmul": (torch.addcmul, normal((64,), (64,), (64,)), {"value": 0.3}),
    "addcdiv": (torch.addcdiv, lambda: [torch.randn(64), torch.randn(64), torch.rand(64) + 0.5], {"value": 0.3}),
    "elu": (F.elu, normal((64,), spread=8.0), {}),
    "selu": (F.selu, normal((64,), spread=8.0), {}),
    "tanhshrink": (F.tanhshrink, normal((256,)), {}),
    "logit": (torch.logit, lambda: [torch.rand(256) * 0.9 + 0.05], {}),
    "huber_loss": (F.huber_loss, normal((64,), (64,)), {}),
    "smooth_l1_loss": (F.smooth_l1_loss, normal((64,), (64,)), {}),
    "std": (torch.std, normal((8, 64)), {"dim": 1}),
    "var": (torch.var, normal((8, 64)), {"dim": 1}),
    "mean": (torch.mean, normal((16, 300), mean=16.0), {"dim": 1}),
    "log_softmax": (F.log_softmax, normal((16, 300)), {"dim": 1}),
}


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_composites_are_as_precise_as_in_pytorch(name, dtype):
    try:
        found = ratio(*CALLS[name], dtype)
    except NotImplementedError as error:
        pytest.skip(f"this PyTorch lacks a kernel: {error}")
    assert found < 1.5


def test_a_mean_of_halves_is_finite_where_their_sum_is_not():
    x = torch.full((300,), 300.0, dtype=torch.float16, requires_grad=True)
    value, gradient = decomposed(torch.mean, [x], {}, torch.ones((), dtype=torch.float16))
    assert value == 300 and torch.equal(gradient, torch.full_like(x, 1 / 300))


def test_a_deviation_of_halves_is_finite_where_their_variance_is_not():
    x = (torch.randn(64) * 400).half().requires_grad_()
    seed = torch.ones((), dtype=torch.float16)
    found, expected = decomposed(torch.std, [x], {}, seed), eager(torch.std, [x], {}, seed)
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("eps", [None, 0.1])
def test_logit_has_pytorchs_slopes_outside_of_its_bounds(eps):
    x = torch.tensor([-0.5, 0.0, 0.3, 1.0, 1.5], requires_grad=True)
    seed = torch.ones(5)
    torch.testing.assert_close(
        decomposed(torch.logit, [x], {"eps": eps}, seed), eager(torch.logit, [x], {"eps": eps}, seed), equal_nan=True
    )


def test_gelu_scales_by_the_number_that_pytorch_scales_by():
    """So what knows PyTorch's formula, as Inductor does, computes one ``erf`` for value and gradient."""
    x = proxy_of(torch.ones(3))
    trace = record(lambda x: call(F.gelu, (x,), {}), [x], language=torch_language)
    assert f", {math.sqrt(0.5)!r})" in str(expand(trace))
