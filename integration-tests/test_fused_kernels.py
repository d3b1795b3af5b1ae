"""Functions of PyTorch in kernels compiled by LLVM, with their gradients, are as near to the truth as eager's."""

import pytest
import torch
import torch.nn.functional as F

import thunder
from thunder_executors_llvm import executor

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")


def outcome(function, tensors, cast):
    """Return the result of a function and the gradients of its floating-point inputs, in float64."""
    leaves = [t.to(cast).requires_grad_() if t.is_floating_point() else t for t in tensors]
    y = function(*leaves)
    gradients = torch.autograd.grad(y.sum(), [t for t in leaves if t.requires_grad])
    return [t.detach().double() for t in (y, *gradients)]


def check(function, *tensors, dtype=torch.float32):
    """Compare a function in kernels with eager, both with what it is in float64."""
    compiled = thunder.jit(function, executors=["llvm"])
    found = [outcome(f, tensors, cast) for f, cast in ((compiled, dtype), (function, dtype), (function, torch.float64))]
    for trace in (thunder.last_traces(compiled)[-1], thunder.last_backward_traces(compiled)[-1]):
        assert any([b.symbol.executor is executor for b in trace.bound_symbols])
    for have, other, true in zip(*found, strict=True):
        slack = 4 * torch.finfo(dtype).eps * true.abs().max().item()
        assert (have - true).abs().max() <= (other - true).abs().max() + slack


@pytest.mark.parametrize(
    ("shape", "reduction", "weighted", "dtype"),
    [
        ((1, 1), "sum", False, torch.float32),
        ((3, 5), "none", True, torch.float64),
        ((7, 1000), "mean", True, torch.float32),
        ((2, 32000), "mean", False, torch.float32),
        ((5, 6, 4), "mean", True, torch.float32),
    ],
    ids=str,
)
def test_cross_entropy(shape, reduction, weighted, dtype):
    torch.manual_seed(0)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    if target.numel() > 2:
        target.view(-1)[1] = -100
    weight = torch.rand(shape[1], dtype=dtype) if weighted else None

    def loss(x, target):
        return F.cross_entropy(x * 0.5, target, None if weight is None else weight.to(x.dtype), reduction=reduction)

    check(loss, torch.randn(shape, dtype=dtype) * 5, target, dtype=dtype)
