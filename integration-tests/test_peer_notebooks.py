"""What the notebooks of Lightning Thunder do, in other words and sizes, with the same names: what runs unchanged."""

import numpy as np
import pytest
import torch

import thunder
import thunder.torch as ltorch
from thunder.core.devices import DeviceType
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.core.transforms import get_grad, grad, put_grads
from thunder.dynamo import thunderfx
from thunder.extend import OperatorExecutor, register_executor


@pytest.fixture
def executor():
    made = OperatorExecutor("twofold", version="0.1")
    register_executor(made)
    yield made
    thunder.extend.deregister_executor(made)


@pytest.fixture
def twofold(executor):
    """Two products in one call, by NumPy."""
    return executor.register_operator(
        "twofold", like=lambda a, b, c, d: (a * b, c * d), fn=lambda a, b, c, d: (np.multiply(a, b), np.multiply(c, d))
    )


def only_one(twofold):
    return lambda a, b: twofold(a, b, 0, 0)[0]


def on_cpu(*tensors):
    return all(t.device.devicetype == DeviceType.CPU for t in tensors if isinstance(t, TensorProxy))


def names(trace):
    return [b.sym.name for b in trace.bound_symbols]


def leaves():
    return [torch.randn(2, 2, requires_grad=True) for _ in range(2)]


class TestExtend:
    """``dev_tutorials/extend``."""

    def test_an_operator_with_like_is_called_and_differentiated(self, executor, twofold):
        a, b = leaves()
        compiled = thunder.jit(lambda a, b: twofold(a, b, a, a), executors=[executor])
        with torch.no_grad():
            first, second = compiled(a, b)
        torch.testing.assert_close((first, second), (a * b, a * a))
        assert "twofold" in names(thunder.last_traces(compiled)[-1])
        gradients = grad(thunder.jit(lambda a, b: twofold(a, b, a, a)[0], executors=[executor]))(a, b)
        torch.testing.assert_close(tuple(gradients), (b, a))

    def test_an_operation_is_run_by_it_and_its_gradient_by_one_call(self, executor, twofold):
        executor.register_implementation(ltorch.mul, checker=on_cpu, execution_transform=only_one(twofold))
        a, b = leaves()
        compiled = thunder.jit(lambda a, b: a * b, executors=[executor])
        torch.testing.assert_close(compiled(a.detach(), b.detach()), a * b)
        assert "twofold" in names(thunder.last_traces(compiled)[-1])

        def gradient(a, b):
            forward = a * b
            g = get_grad(forward)
            put_grads((a, b), twofold(b, g, a, g))
            return forward

        executor.register_implementation(
            ltorch.mul, checker=on_cpu, execution_transform=only_one(twofold), grad_transform=gradient
        )
        differentiated = grad(thunder.jit(lambda a, b: a * b, executors=[executor]))
        torch.testing.assert_close(tuple(differentiated(a, b)), (b, a))
        assert names(thunder.last_traces(differentiated)[-1]).count("twofold") == 1

    def test_a_transform_may_use_other_operations_before(self, executor, twofold):
        def transform(a, b):
            return twofold(a.contiguous(), b.contiguous(), 0, 0)[0]

        executor.register_implementation(ltorch.mul, checker=on_cpu, execution_transform=transform)
        a, b = (t.detach() for t in leaves())
        compiled = thunder.jit(lambda a, b: a * b, executors=[executor])
        torch.testing.assert_close(compiled(a.t(), b), a.t() * b)
        assert {"contiguous", "twofold"} <= set(names(thunder.last_traces(compiled)[-1]))


class TestCustomOperator:
    """``adding_custom_operator``."""

    def test_an_operator_with_a_meta_function(self, executor):
        sincos = executor.register_operator(
            "sincos", meta=lambda a: (TensorProxy(like=a), TensorProxy(like=a)), fn=lambda a: (a.sin(), a.cos())
        )

        def function(a, b):
            sin, cos = sincos(a)
            return sin + cos + b

        a, b = torch.randn(1), torch.randn(1)
        trace = thunder.trace()(function, a, b)
        assert "sincos" in [b.sym.name for b in trace.bound_symbols]
        torch.testing.assert_close(thunder.jit(function)(a, b), a.sin() + a.cos() + b)

    def test_a_symbol_that_no_executor_runs_and_then_one_does(self, executor):
        def meta(a):
            return TensorProxy(like=a), TensorProxy(like=a)

        sincos = Symbol(
            "sincos2", "notebook", meta=meta
        )  # the one line that differs: it has an `id` and `is_prim` there

        def function(a, b):
            sin, cos = sincos(a)
            return sin + cos + b

        a, b = torch.randn(1), torch.randn(1)
        with pytest.raises(RuntimeError, match="sincos"):
            thunder.jit(function)(a, b)
        executor.register_implementation(
            sincos, checker=lambda a: True, execution_transform=lambda a: (ltorch.sin(a), ltorch.cos(a))
        )
        found = thunder.jit(function, executors=[executor])(a, b)
        torch.testing.assert_close(found, a.sin() + a.cos() + b)


class TestCustomBackward:
    """``adding_custom_operator_backward``, with a loss for which no library is needed."""

    def test_forward_and_backward_operators_of_its_own(self, executor):
        forward = executor.register_operator(
            "half_square",
            meta=lambda a: (TensorProxy(like=a), TensorProxy(like=a)),
            fn=lambda a: (a * a / 2, a.clone()),
        )
        backward = executor.register_operator(
            "half_square_backward", meta=lambda g, kept: TensorProxy(like=kept), fn=lambda g, kept: g * kept
        )

        def gradient(a):
            loss, kept = forward(a)
            put_grads((a,), (backward(get_grad(loss), kept),))
            return loss

        executor.register_implementation(
            ltorch.square,
            checker=lambda a: True,
            execution_transform=lambda a: forward(a)[0] * 2,
            grad_transform=gradient,
        )
        x = torch.randn(4, requires_grad=True)
        compiled = thunder.jit(lambda a: torch.square(a), executors=[executor])
        (found,) = torch.autograd.grad(compiled(x).sum(), x)
        torch.testing.assert_close(found, x.detach())
        assert "half_square_backward" in names(thunder.last_backward_traces(compiled)[-1])


def rotate(x, cos, sin):
    """What a library has, and an executor replaces."""
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class TestZeroToThunder:
    """``zero_to_thunder``: its models are small here, and on the CPU."""

    def test_a_model_is_compiled(self):
        model = torch.nn.Sequential(torch.nn.Linear(8, 16, bias=False), torch.nn.SiLU(), torch.nn.Linear(16, 8))
        x = torch.randn(2, 8)
        compiled = thunder.jit(model)
        torch.testing.assert_close(compiled(x), model(x))
        assert compiled(x).grad_fn is not None and "linear" in names(thunder.last_traces(compiled)[-1])

    def test_a_function_of_a_library_is_replaced(self, executor):
        calls = []

        def run(x, cos, sin):
            calls.append(x.shape)
            return rotate(x, cos, sin)

        executor.register_operator("rope", like=lambda x, cos, sin: TensorProxy(like=x), fn=run, replaces=rotate)
        compiled = thunder.jit(
            lambda x, cos, sin: rotate(x, cos, sin), executors=(executor, *thunder.get_default_executors())
        )
        x, cos, sin = (torch.randn(2, 4) for _ in range(3))
        torch.testing.assert_close(compiled(x, cos, sin), rotate(x, cos, sin))
        assert len(calls) == 1 and "rope" in names(thunder.last_traces(compiled)[-1])


def test_hello_world_thunderfx():
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    compiled = thunderfx(lambda x, y: torch.sin(x) + torch.cos(y))
    torch.testing.assert_close(compiled(x, y), x.sin() + y.cos())


def test_thunder_trace_intro():
    compiled = thunder.jit(lambda x, y: torch.add(x, y))
    compiled(torch.randn(3, 3), torch.randn(3, 3, 3))
    trace = thunder.last_traces(compiled)[-1]
    (add,) = [b for b in trace.bound_symbols if b.sym.name == "add"]
    x, y = add.args
    assert (x.shape, x.ndim, y.shape) == ((3, 3), 2, (3, 3, 3)) and str(add.sym.id).endswith("add")
    assert isinstance(x, TensorProxy) and add.output.shape == (3, 3, 3)
