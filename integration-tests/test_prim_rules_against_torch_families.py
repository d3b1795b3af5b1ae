"""Reductions, scans, sorting, indexing, linear algebra, networks and transforms derive as PyTorch derives them."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import Symbol, Tensor, trace_of
from thunder_ir.trees import flatten, unflatten

GENERATOR = torch.Generator().manual_seed(3)
INF = float("inf")


def rand(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=GENERATOR, dtype=dtype)


def gradients_of(symbol, arguments, cotangents):
    """The outputs of an operation and its gradients for the tensors among ``arguments``, run by PyTorch."""
    leaves, structure = flatten(list(arguments))
    places = [i for i, a in enumerate(leaves) if isinstance(a, torch.Tensor)]

    def program(*tensors):
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=False):
            filled[place] = tensor
        given = list(tensors[len(places) :])
        output, pullback = vjp_rule[symbol](*unflatten(structure, filled))
        outputs = output if isinstance(output, tuple) else (output,)
        gradients = pullback(*[given.pop(0) if o.dtype.is_inexact else None for o in outputs])
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        flat = [gradients[i] if i < len(gradients) else None for i in range(len(arguments))]
        return outputs, tuple([g for a, g in zip(arguments, flat, strict=True) if isinstance(a, torch.Tensor)])

    tensors = [leaves[i] for i in places] + list(cotangents)
    examples = [Tensor(t.shape, str(t.dtype).removeprefix("torch.")) for t in tensors]
    return to_callable(trace_of(program, *examples), [executor])(*tensors)


def check(symbol, function, *arguments, rtol=1e-8):
    """Compare outputs and gradients with those of ``function``."""
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    tracked = [
        a.clone().requires_grad_(a.is_floating_point() or a.is_complex()) if isinstance(a, torch.Tensor) else a
        for a in arguments
    ]
    expected = function(*tracked)
    expected = tuple(expected) if isinstance(expected, (tuple, list)) else (expected,)
    inexact = [e for e in expected if e.is_floating_point() or e.is_complex()]
    cotangents = [rand(*e.shape, dtype=e.dtype) for e in inexact]
    wanted = [a for a in tracked if isinstance(a, torch.Tensor) and a.requires_grad]
    of_torch = torch.autograd.grad(inexact, wanted, cotangents, allow_unused=True)
    outputs, gradients = gradients_of(symbol, arguments, cotangents)
    for have, want in zip(outputs, expected, strict=True):
        torch.testing.assert_close(have, want.detach(), rtol=rtol, atol=rtol, equal_nan=True)
    gradients = [g for g, a in zip(gradients, tensors, strict=True) if a.is_floating_point() or a.is_complex()]
    for have, want, a in zip(gradients, of_torch, wanted, strict=True):
        zero = torch.zeros_like(a)
        torch.testing.assert_close(
            zero if have is None else have, zero if want is None else want, rtol=rtol, atol=rtol, equal_nan=True
        )


A = rand(3, 4, 5)
ZEROS = torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 0.0]], dtype=torch.float64)
TIES = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], dtype=torch.float64)

REDUCTIONS = {
    "sum": (prims.sum, torch.sum, A, (0, 2)),
    "prod": (prims.prod, lambda a, dims: torch.prod(a, dims[0]), A, (1,)),
    "prod of zeros": (prims.prod, lambda a, dims: torch.prod(a, dims[0]), ZEROS, (1,)),
    "amax of ties": (prims.amax, torch.amax, TIES, (1,)),
    "amin of ties": (prims.amin, torch.amin, TIES, (0, 1)),
    "var": (prims.var, lambda a, d, c: torch.var(a, d, correction=c), A, (0, 2), 1),
    "std of equals": (prims.std, lambda a, d, c: torch.std(a, d, correction=c), TIES, (1,), 0),
    "var_mean": (prims.var_mean, lambda a, d, c: torch.var_mean(a, d, correction=c), A, (1,), 1),
    "cumsum": (prims.cumsum, torch.cumsum, A, 1),
    "cumprod of zeros": (prims.cumprod, torch.cumprod, ZEROS, 1),
    "logcumsumexp": (prims.logcumsumexp, torch.logcumsumexp, A, 2),
    "logcumsumexp of extremes": (
        prims.logcumsumexp, torch.logcumsumexp, torch.tensor([-1e3, 1e3, 1e3 + 1], dtype=torch.float64), 0,
    ),
    "cummax of ties": (prims.cummax, torch.cummax, TIES, 1),
    "cummin of ties": (prims.cummin, torch.cummin, TIES, 1),
    "sort": (prims.sort, lambda a, d, o, s: torch.sort(a, stable=s, dim=d, descending=o), A, 1, True, True),
    "topk": (prims.topk, torch.topk, A, 2, 1, False, True),
}  # fmt: skip

ROWS = torch.tensor([2, 0, 2])
PLACES = torch.randint(0, 4, (2, 6, 5), generator=GENERATOR)
INDEXING = {
    "take": (prims.take, lambda a, i, d: torch.index_select(a, d, i), A, ROWS, 1),
    "take of narrow indices": (prims.take, lambda a, i, d: a[:, i.long()], A, ROWS.to(torch.uint8), 1),
    "take of pairs": (prims.take, lambda a, i, d: a[:, i], A, torch.tensor([[0, 1], [3, 3]]), 1),
    "index_add": (prims.index_add, lambda a, i, v, d: torch.index_add(a, d, i, v), A, ROWS, rand(3, 3, 5), 1),
    "index_copy": (prims.index_copy, lambda a, i, v, d: torch.index_copy(a, d, i, v), A, ROWS[:2], rand(3, 2, 5), 1),
    "gather": (prims.gather, lambda a, i, d: torch.gather(a, d, i), A, PLACES, 1),
    "scatter_add": (
        prims.scatter_add, lambda a, i, s, d: torch.scatter_add(a, d, i, s), A, PLACES[:, :2], rand(2, 2, 5), 1,
    ),
    "scatter a number": (prims.scatter, lambda a, i, s, d: torch.scatter(a, d, i, s), A, PLACES, 0.5, 1),
    "slice_scatter": (
        prims.slice_scatter,
        lambda a, v, *_: torch.slice_scatter(a, v, 1, 1, 4, 2), A, rand(3, 2, 5), (0, 1, 0), (3, 4, 5), (1, 2, 1),
    ),
}  # fmt: skip


def mixed(*shape):
    return rand(*shape, dtype=torch.complex128)


def hermitian(a):
    return a @ a.mH + torch.eye(a.shape[-1], dtype=a.dtype)


REGULAR = rand(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64)
COMPLEX = mixed(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64)
LINALG = {
    "matmul": (prims.matmul, torch.matmul, rand(2, 3, 4), rand(2, 4, 5)),
    "matmul of complex": (prims.matmul, torch.matmul, mixed(2, 3, 4), mixed(2, 4, 5)),
    "linear": (prims.linear, F.linear, rand(2, 3, 4), rand(5, 4), rand(5)),
    "linear of one row": (prims.linear, F.linear, rand(4), rand(5, 4), None),
    "solve": (prims.solve, torch.linalg.solve, COMPLEX, mixed(2, 3, 2)),
    "inverse": (prims.inverse, torch.linalg.inv, COMPLEX),
    "cholesky": (prims.cholesky, torch.linalg.cholesky, hermitian(rand(2, 3, 3))),
    "det": (prims.det, torch.linalg.det, COMPLEX),
    "slogdet": (prims.slogdet, torch.linalg.slogdet, COMPLEX),
    "slogdet of reals": (prims.slogdet, torch.linalg.slogdet, REGULAR),
    "triangular_solve": (
        prims.triangular_solve,
        lambda a, b, u, left, unit: torch.linalg.solve_triangular(a, b, upper=u, left=left, unitriangular=unit),
        COMPLEX, mixed(2, 4, 3), True, False, True,
    ),
    "svd": (prims.svd, partial(torch.linalg.svd, full_matrices=False), rand(4, 3)),
    "wide svd": (prims.svd, partial(torch.linalg.svd, full_matrices=False), rand(3, 4)),
    "qr": (prims.qr, torch.linalg.qr, mixed(4, 3)),
    "wide qr": (prims.qr, torch.linalg.qr, rand(3, 4)),
}  # fmt: skip

INDICES = torch.tensor([[0, 2, 2], [1, 2, 4]])


def convolution(a, w, b, *parameters):
    return torch.convolution(a, w, b, *parameters)


def embedding(i, w, p, s):
    return F.embedding(i, w, None if p < 0 else p, scale_grad_by_freq=s)


def extended(a, padding, mode):
    flat = [n for pair in reversed(padding[1:]) for n in pair]
    return F.pad(a, flat, mode=mode)


def max_pool(a, *windows):
    return F.max_pool2d(a, *windows, return_indices=True)


def attended(q, k, v, mask, causal, scale):
    scores = q @ k.mT * scale
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -INF)
    return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)


NETWORKS = {
    "embedding": (prims.embedding, embedding, INDICES, rand(5, 4), -1, False),
    "embedding with padding": (prims.embedding, embedding, INDICES, rand(5, 4), 2, True),
    "convolution": (
        prims.convolution, convolution, rand(2, 4, 7, 6), rand(6, 2, 3, 2), rand(6),
        (2, 1), (1, 0), (1, 2), False, (0, 0), 2,
    ),
    "transposed convolution": (
        prims.convolution, convolution, rand(2, 4, 5), rand(4, 3, 3), rand(6), (2,), (1,), (2,), True, (1,), 2,
    ),
    "max_pool": (prims.max_pool, max_pool, rand(2, 3, 7, 6), (3, 2), (2, 2), (1, 0), (1, 2), True),
    "avg_pool": (prims.avg_pool, F.avg_pool2d, rand(2, 3, 7, 6), (3, 2), (2, 2), (1, 0), True, False, None),
    "avg_pool1d": (
        prims.avg_pool, lambda a, w, s, p, c, i, _: F.avg_pool1d(a, w, s, p, c, i), rand(2, 3, 7),
        (3,), (2,), (1,), False, True, None,
    ),
    "adaptive_avg_pool": (prims.adaptive_avg_pool, F.adaptive_avg_pool2d, rand(2, 3, 7, 6), (3, 4)),
    "reflect": (prims.extend, extended, rand(2, 3, 4, 5), ((0, 0), (0, 0), (1, 2), (3, 0)), "reflect"),
    "replicate": (prims.extend, extended, rand(2, 3, 4, 5), ((0, 0), (0, 0), (1, 2), (7, 0)), "replicate"),
    "circular": (prims.extend, extended, rand(2, 3, 4, 5), ((0, 0), (0, 0), (1, 2), (5, 0)), "circular"),
    "attention": (prims.attention, attended, rand(2, 3, 4, 5), rand(2, 3, 6, 5), rand(2, 3, 6, 2), None, True, 0.4),
    "attention with bias": (
        prims.attention, attended, rand(2, 4, 5), rand(2, 6, 5), rand(2, 6, 2), rand(2, 4, 6), False, 0.4,
    ),
}  # fmt: skip

NORMS = {"none": "backward", "root": "ortho", "full": "forward"}
TRANSFORMS = {
    "fft_c2c": (
        prims.fft_c2c, lambda a, d, n, _: torch.fft.fftn(a, dim=d, norm=NORMS[n]), mixed(3, 4, 5), (0, 2), "root", True,
    ),
    "fft_r2c": (prims.fft_r2c, lambda a, d, n: torch.fft.rfftn(a, dim=d, norm=NORMS[n]), A, (0, 2), "none"),
    "even fft_r2c": (prims.fft_r2c, lambda a, d, n: torch.fft.rfftn(a, dim=d, norm=NORMS[n]), A, (2, 1), "full"),
    "fft_c2r": (
        prims.fft_c2r, lambda a, d, n, m: torch.fft.irfftn(a, s=(3, m), dim=d, norm="forward"), mixed(3, 4, 3),
        (0, 2), "none", 5,
    ),
}  # fmt: skip

CASES = REDUCTIONS | INDEXING | LINALG | NETWORKS | TRANSFORMS


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_values_and_gradients_are_those_of_torch(case):
    symbol, function, *arguments = case
    assert isinstance(symbol, Symbol)
    check(symbol, function, *arguments)


def test_the_second_derivative_of_a_convolution_is_that_of_torch():
    _, _, a, w, b, *parameters = NETWORKS["convolution"]
    a, w, b = (x.clone().requires_grad_() for x in (a, w, b))
    y = convolution(a, w, b, *parameters)
    dy, xa, xw, xb = (rand(*x.shape) for x in (y, a, w, b))
    dy.requires_grad_()
    gradients = torch.autograd.grad(y, (a, w, b), dy, create_graph=True)
    expected = torch.autograd.grad(gradients, (dy, a, w), (xa, xw, xb))

    def program(dy, a, w, *cotangents):
        _, pullback = vjp_rule[prims.convolution_backward](dy, a, w, *parameters, (True, True, True))
        return pullback(*cotangents)

    tensors = [x.detach() for x in (dy, a, w, xa, xw, xb)]
    examples = [Tensor(t.shape, "float64") for t in tensors]
    actual = to_callable(trace_of(program, *examples), [executor])(*tensors)
    for have, want in zip(actual, expected, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-9)
