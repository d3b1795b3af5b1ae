"""What a guide to extensions does, step by step: an executor, an operator, execution and gradient transforms."""

import numpy as np
import pytest
import torch

import thunder
import thunder.torch as ltorch
from thunder.core.devices import DeviceType
from thunder.core.proxies import TensorProxy
from thunder.core.transforms import get_grad, grad, put_grads
from thunder.extend import OperatorExecutor, deregister_executor, register_executor


def two_products(a, b, c, d):
    numbers = [x.numpy() if isinstance(x, torch.Tensor) else x for x in (a, b, c, d)]
    return torch.from_numpy(np.multiply(*numbers[:2])), torch.as_tensor(np.multiply(*numbers[2:]))


def as_products(a, b, c, d):
    return a * b, c * d


def on_cpu(a, b):
    return all(x.device.devicetype == DeviceType.CPU for x in (a, b) if isinstance(x, TensorProxy))


def product(a, b):
    return a * b


@pytest.fixture
def executor():
    made = OperatorExecutor("guide", version="0.1")
    register_executor(made)
    yield made
    deregister_executor(made)


@pytest.fixture
def products(executor):
    return executor.register_operator("two_products", like=as_products, fn=two_products)


@pytest.fixture
def operands():
    return torch.randn(2, 2), torch.randn(2, 2)


def count(function, name="two_products"):
    """Return how many calls of an operator run forward and backward."""
    last = [stages[-1] for stages in (thunder.last_traces(function), thunder.last_backward_traces(function)) if stages]
    return [bound.sym.name for trace in last for bound in trace.bound_symbols].count(name)


def test_an_operator_is_differentiated_by_what_it_is_like(executor, products, operands):
    a, b, c, d = (t.clone().requires_grad_() for t in (*operands, *operands))
    compiled = thunder.jit(lambda a, b, c, d: products(a, b, c, d), executors=[executor])
    gradients = grad(compiled)
    for ours, expected in zip(gradients(a, b, c, d), (b, a, d, c), strict=True):
        torch.testing.assert_close(ours, expected.detach())
    assert count(gradients) == 1


def test_gradients_are_run_by_execution_transforms(executor, products, operands):
    for symbol in (ltorch.mul, thunder.core.prims.mul):  # what the program calls, and what its gradients are made of
        executor.register_implementation(
            symbol, checker=on_cpu, execution_transform=lambda a, b: products(a, b, 0, 0)[0]
        )
    a, b = (t.requires_grad_() for t in operands)
    compiled = thunder.jit(product, executors=[executor])
    torch.testing.assert_close(compiled(a.detach(), b.detach()), (a * b).detach())
    assert count(compiled) == 1
    gradients = grad(compiled)
    for ours, expected in zip(gradients(a, b), (b, a), strict=True):
        torch.testing.assert_close(ours, expected.detach())
    assert count(gradients) == 3


def test_a_gradient_transform_runs_both_products_in_one_call(executor, products, operands):
    def derivative(a, b):
        forward = a * b
        g = get_grad(forward)
        put_grads((a, b), products(b, g, a, g))
        return forward

    executor.register_implementation(
        ltorch.mul,
        checker=on_cpu,
        execution_transform=lambda a, b: products(a, b, 0, 0)[0],
        grad_transform=derivative,
    )
    a, b = (t.requires_grad_() for t in operands)
    gradients = grad(thunder.jit(product, executors=[executor]))
    for ours, expected in zip(gradients(a, b), (b, a), strict=True):
        torch.testing.assert_close(ours, expected.detach())
    backward = [bound.sym.name for bound in thunder.last_backward_traces(gradients)[-1].bound_symbols]
    assert backward.count("two_products") == 1


def test_operations_of_torch_stand_beside_the_operator_in_a_transform(executor, products, operands):
    def contiguous_first(a, b):
        return products(a.contiguous(), b.contiguous(), 0, 0)[0]

    executor.register_implementation(ltorch.mul, checker=on_cpu, execution_transform=contiguous_first)
    a, b = operands
    compiled = thunder.jit(product, executors=[executor])
    torch.testing.assert_close(compiled(a.t(), b.t()), a.t() * b.t())
    assert count(compiled) == 1
    assert "contiguous" in str(thunder.last_traces(compiled)[-1])


METHODS = {
    "contiguous": lambda a: a.t().contiguous(),
    "view": lambda a: a.view(-1),
    "reshape": lambda a: a.reshape(4, 1),
    "size": lambda a: a + a.size(0) + a.size()[1],
    "stride": lambda a: a * a.stride(0) + a.stride()[1],
    "dim": lambda a: a + a.dim(),
    "numel": lambda a: a + a.numel(),
    "to": lambda a: a.to(torch.float64),
    "float": lambda a: a.double().float(),
    "type": lambda a: a.type(torch.float16),
    "masked_fill": lambda a: a.masked_fill(a > 0, 2.0),
    "softmax": lambda a: a.softmax(-1),
    "unsqueeze": lambda a: a.unsqueeze(0).transpose(0, 1).expand(2, 3, 2),
    "chunk": lambda a: a.chunk(2)[1],
    "is_contiguous": lambda a: a + int(a.is_contiguous()),
    "is_floating_point": lambda a: a + int(a.is_floating_point()),
    "element_size": lambda a: a + a.element_size(),
    "new_zeros": lambda a: a.new_zeros(3),
    "T": lambda a: a.T + a.mT,
    "index": lambda a: a[:, 0],
}


@pytest.mark.parametrize("symbol", [ltorch.sin, thunder.core.prims.sin], ids=["torch", "prims"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_methods_of_tensors_mean_in_transforms_what_they_mean_in_programs(executor, method, symbol):
    executor.register_implementation(symbol, execution_transform=lambda a: method(a).sum() + a)
    a = torch.randn(2, 2)
    compiled = thunder.jit(lambda a: symbol(a), executors=[executor])
    torch.testing.assert_close(compiled(a), method(a).sum() + a, check_dtype=False)
