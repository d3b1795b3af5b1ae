"""Attention by the kernels that PyTorch has for CUDA: a stand-in on the CPU, and PyTorch's own metadata of them."""

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch.testing import assert_close

from thunder_executors_torch import attention
from thunder_ir import OpTags

from .cuda_attention import CUDNN, EFFICIENT, FLASH, Kernels
from .test_gradients import executed, split

KERNELS = {"flash": FLASH, "efficient": EFFICIENT, "cudnn": CUDNN}


Q, FEW, LONG = (2, 4, 17, 16), (2, 2, 17, 16), (2, 4, 21, 16)
CASES = {
    "plain": ((Q, Q, Q), None, {}),
    "causal": ((Q, Q, Q), None, {"is_causal": True}),
    "scaled": ((Q, LONG, LONG), None, {"scale": 0.3}),
    "fewer heads of keys": ((Q, FEW, FEW), None, {"enable_gqa": True, "is_causal": True}),
    "an odd width": ((*[(2, 4, 17, 12)] * 3,), None, {"is_causal": True}),
    "a mask of bools": ((Q, Q, Q), torch.ones(17, 17, dtype=torch.bool).tril(), {}),
    "a mask for each sequence": ((Q, LONG, LONG), torch.randn(2, 1, 17, 21), {}),
    "a mask of rows": ((Q, LONG, LONG), torch.randn(2, 4, 17, 1), {}),
    "a mask of columns": ((Q, LONG, LONG), torch.randn(2, 1, 1, 21), {}),
    "an aligned mask, transposed": (((2, 4, 16, 16),) * 3, torch.randn(16, 16).t(), {}),
}


def fits(kernel, name, dtype):
    """Whether PyTorch chooses a kernel for a case: flash takes no masks, and the others only aligned widths."""
    masked, odd = CASES[name][1] is not None, name == "an odd width"
    if kernel == "flash":
        return not masked and dtype is not torch.float32
    return not (odd and (kernel == "cudnn" or dtype is not torch.float32)) and (kernel, dtype) != (
        "cudnn",
        torch.float32,
    )


RUNS = [
    pytest.param(kernel, name, dtype, id=f"{kernel}, {name}, {dtype}")
    for kernel in KERNELS
    for name in CASES
    for dtype in (torch.float32, torch.bfloat16)
    if fits(kernel, name, dtype)
]


def arguments(name, dtype):
    shapes, mask, options = CASES[name]
    given = [torch.randn(s).to(dtype).requires_grad_() for s in shapes]
    if mask is None:
        return given, options
    return [*given, mask if mask.dtype is torch.bool else mask.to(dtype)], options


@pytest.mark.parametrize(("kernel", "name", "dtype"), RUNS)
def test_values_and_gradients_are_those_of_attention(kernel, name, dtype, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(attention, "_flash_on_cpu", attention._ON_CUDA[KERNELS[kernel]])
    tensors, options = arguments(name, dtype)
    made = split(F.scaled_dot_product_attention, tensors, options)
    forward, backward = (executed(t).python_callable() for t in (made.forward, made.backward))
    truth = [t.detach().double().requires_grad_() if t.dtype is not torch.bool else t for t in tensors]
    expected = F.scaled_dot_product_attention(*truth, **options)
    dy = torch.randn_like(expected)
    with torch.no_grad(), Kernels() as kernels:
        output, saved = forward(*tensors)
        found = [g for g in backward(*saved, dy.to(dtype)) if g is not None]
    wanted = torch.autograd.grad(expected, truth[:3], dy)
    size = 5e-2 if dtype is torch.bfloat16 else 1e-5
    assert_close([t.double() for t in (output, *found)], [expected.detach(), *wanted], rtol=size, atol=size)
    asked = [f"_scaled_dot_product_{kernel}_attention", f"_scaled_dot_product_{kernel}_attention_backward"]
    assert [packet.__name__ for packet in kernels.asked] == asked


def described(value):
    return (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(("kernel", "name", "dtype"), RUNS)
def test_pytorch_knows_the_calls_and_tells_the_same_of_their_results(kernel, name, dtype, monkeypatch):
    """With fake tensors on a CUDA device, on a machine without one."""
    monkeypatch.setattr(attention, "_flash_on_cpu", attention._ON_CUDA[KERNELS[kernel]])
    tensors, options = arguments(name, dtype)
    made = split(F.scaled_dot_product_attention, tensors, options)
    forward, backward = (executed(t) for t in (made.forward, made.backward))
    with FakeTensorMode(), torch.no_grad():
        there = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda") for t in tensors]
        output, saved = forward.python_callable()(*there)
        found = backward.python_callable()(*saved, torch.empty_like(output))
    outputs = forward.output[0], *forward.output[1]
    for proxy, value in zip(outputs, (output, *saved), strict=True):
        if isinstance(value, torch.Tensor):
            assert described(value) == (tuple(proxy.shape), attention.to_torch_dtype(proxy.dtype))
    assert [described(g) for g in found if g is not None] == [described(t) for t in tensors[:3]]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_calls_that_hand_on_the_state_of_random_numbers_say_so(kernel, dropout, monkeypatch):
    monkeypatch.setattr(attention, "_kernel", lambda *args: attention._ON_CUDA[KERNELS[kernel]])
    tensors, _ = arguments("plain", torch.bfloat16)
    made = split(F.scaled_dot_product_attention, tensors, {"dropout_p": dropout})
    for trace in (made.forward, made.backward):
        (call,) = [b for b in executed(trace).bound_symbols if f"{kernel}_attention" in b.symbol.path]
        assert call.has_tag(OpTags.HOST_STATE) == (dropout > 0)
