"""Autocast, defaults, grad mode and attention backends that hold while a program is traced become part of it."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import OpTags, dtypes, record
from thunder_torch import call, proxy_of, torch_language
from thunder_torch.state import Within


def traced(function, *tensors, **kwargs):
    proxies = [proxy_of(t, f"a{i}") for i, t in enumerate(tensors)]
    return record(lambda *a: call(function, a, kwargs), proxies, language=torch_language)


def run(trace, *tensors):
    with torch.no_grad():
        return to_callable(trace, [executor])(*tensors)


AUTOCAST = [
    (torch.matmul, (torch.randn(2, 3), torch.randn(3, 2))),
    (F.linear, (torch.randn(2, 3), torch.randn(4, 3), torch.randn(4))),
    (F.conv2d, (torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3))),
    (F.scaled_dot_product_attention, (torch.randn(2, 4, 8),) * 3),
    (torch.add, (torch.randn(2), torch.randn(2))),
    (torch.cat, ((torch.randn(2), torch.randn(2, dtype=torch.bfloat16)),)),
    (F.mse_loss, (torch.randn(2, dtype=torch.bfloat16), torch.randn(2, dtype=torch.bfloat16))),
    (torch.linalg.inv, (torch.eye(2, dtype=torch.bfloat16),)),
    (torch.fft.fft, (torch.randn(4),)),
    (torch.einsum, ("ij,jk->ik", torch.randn(2, 3), torch.randn(3, 2))),
    (torch.einsum, ("ij->i", torch.randn(2, 3))),
    (torch.einsum, ("ij,j->ij", torch.randn(2, 3), torch.randn(3))),
    (torch.einsum, ("ij,k->k", torch.randn(2, 3), torch.randn(3))),
    (torch.einsum, ("ij,kj,kj->i", torch.randn(2, 3), torch.randn(4, 3), torch.randn(4, 3))),
    (torch.gru_cell, (torch.randn(2, 3), torch.randn(2, 4), torch.randn(12, 3), torch.randn(12, 4))),
    (torch.rnn_tanh_cell, (torch.randn(2, 3), torch.randn(2, 4), torch.randn(4, 3), torch.randn(4, 4))),
    (F.multi_head_attention_forward, None),
    (torch.nn.functional.bilinear, (torch.randn(2, 3), torch.randn(2, 4), torch.randn(5, 3, 4))),
    (torch.matmul, (torch.randn(2, 3, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64))),
]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("function", "args"), [c for c in AUTOCAST if c[1] is not None], ids=[c[0].__name__ for c in AUTOCAST if c[1]]
)
def test_autocast_casts_as_eager_does(function, args, dtype):
    with torch.autocast("cpu", dtype):
        expected = function(*args)
    tensors = [t for a in args for t in (a if isinstance(a, tuple) else (a,)) if isinstance(t, torch.Tensor)]
    proxies = [proxy_of(t, f"a{i}") for i, t in enumerate(tensors)]

    def program(*given):
        left = iter(given)
        full = [
            tuple(next(left) for _ in a) if isinstance(a, tuple) else next(left) if isinstance(a, torch.Tensor) else a
            for a in args
        ]
        with torch.autocast("cpu", dtype):
            return call(function, tuple(full), {})

    trace = record(program, proxies, language=torch_language)
    result = run(trace, *tensors)
    assert result.dtype == expected.dtype
    torch.testing.assert_close(result, expected)


def test_nested_autocast_that_is_off_casts_nothing():
    a = torch.randn(2, 2)
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        assert traced(torch.matmul, a, a).output.dtype is dtypes.float32


def test_default_device_and_dtype_become_explicit():
    with torch.device("meta"):
        trace = record(lambda: call(torch.zeros, (2,), {}), [])
    assert trace.output.device.type == "meta"
    assert "device=" in str(trace)
    torch.set_default_dtype(torch.float64)
    try:
        trace = record(lambda: call(torch.ones, (2,), {}), [])
    finally:
        torch.set_default_dtype(torch.float32)
    assert run(trace).dtype is torch.float64


def test_what_runs_without_gradients_is_tagged():
    a = torch.randn(2, requires_grad=True)
    with torch.no_grad():
        (bound,) = traced(torch.exp, a).bound_symbols
    assert bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and not bound.output.requires_grad
    (bound,) = traced(torch.exp, a).bound_symbols
    assert not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and bound.output.requires_grad


def test_attention_backends_that_are_chosen_stay_chosen():
    a = torch.randn(2, 4, 8)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        trace = traced(F.scaled_dot_product_attention, a, a, a)
        expected = F.scaled_dot_product_attention(a, a, a)
    (bound,) = trace.bound_symbols
    assert bound.symbol.origin == Within(F.scaled_dot_product_attention, sdpa=("MATH",))
    torch.testing.assert_close(run(trace, a, a, a), expected)
