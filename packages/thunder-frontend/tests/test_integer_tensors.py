"""Tensors of one integer where PyTorch and Python take a number, with gradients and without."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import thunder_prims as prims
from thunder_frontend import jit
from thunder_torch.torch_versions import LISTS_OF_ONE_TENSOR

CALLS = {
    "multinomial": lambda w, n: w[torch.multinomial(torch.ones(8), n)],
    "topk": lambda w, n: w.topk(n, 0)[0],
    "randint": lambda w, n: w[torch.randint(0, n, (3,))],
    "sum": lambda w, n: w.sum(n - 2),
    "roll": lambda w, n: w.roll(n, 0),
    "softmax": lambda w, n: w.softmax(n - 2),
    "cumsum": lambda w, n: w.cumsum(n - 2),
    "tril": lambda w, n: w.tril(n),
    "kthvalue": lambda w, n: w.kthvalue(n, 0)[0],
    "chunk": lambda w, n: w.chunk(n)[0],
    "narrow": lambda w, n: w.narrow(0, 0, n),
    "by name": lambda w, n: torch.topk(input=w, k=n, dim=0)[0],
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_tensor_of_one_integer_is_a_number_where_pytorch_takes_one(call, requires_grad):
    if call in (CALLS["sum"], CALLS["roll"]) and not LISTS_OF_ONE_TENSOR:
        pytest.skip("this PyTorch takes a tensor for an empty list")
    compiled = jit(call)
    for n in (2, 3, 2):
        w = torch.randn(8, 4, requires_grad=requires_grad)
        torch.manual_seed(n)
        expected = call(w, torch.tensor(n))
        torch.manual_seed(n)
        found = compiled(w, torch.tensor(n))
        torch.testing.assert_close(found, expected)
        if requires_grad:
            wanted, have = (torch.autograd.grad(y.square().sum(), w)[0] for y in (expected, found))
            torch.testing.assert_close(have, wanted)


@pytest.mark.parametrize("value", [torch.tensor(7), torch.tensor(True), torch.tensor([4])], ids=["int", "bool", "one"])
@pytest.mark.parametrize(
    "function", [math.sqrt, math.floor, math.exp, math.log2, math.isfinite], ids=lambda f: f.__name__
)
def test_functions_of_math_take_integer_tensors(function, value):
    compiled = jit(lambda x: x * function(x.sum()))
    for x in (value, value + value, value):
        torch.testing.assert_close(compiled(x), x * function(x.sum()))


def test_a_prim_called_with_none_runs_under_autocast():
    def program(x, w):
        with torch.autocast("cpu", torch.bfloat16):
            return prims.linear(x, w, None) + F.linear(x, w)

    x, w = torch.randn(2, 4), torch.randn(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        expected = torch.mm(x.double(), w.T.double()).float() + F.linear(x, w)
    torch.testing.assert_close(jit(program)(x, w), expected)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("bias", [None, torch.ones(3)], ids=["plain", "bias"])
def test_convolutions_of_no_channels_have_pytorchs_shape_and_gradients(dims, bias):
    convolve = getattr(F, f"conv{dims}d")
    x = torch.randn(2, 0, *(5,) * dims, requires_grad=True)
    weight = torch.randn(3, 0, *(2,) * dims, requires_grad=True)
    expected, found = convolve(x, weight, bias), jit(lambda x, w: convolve(x, w, bias))(x, weight)
    assert found.shape == expected.shape
    for y in (expected, found):
        gradients = torch.autograd.grad(y.sum(), (x, weight))
        assert [g.shape for g in gradients] == [x.shape, weight.shape]
