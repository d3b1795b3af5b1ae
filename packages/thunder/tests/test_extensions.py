"""Extensions that replace functions of the user's, and operators of their own."""

import numpy as np
import pytest
import torch

import thunder
from thunder.core.proxies import TensorProxy
from thunder.core.transforms import get_grad, put_grads
from thunder.extend import (
    OperatorExecutor,
    TemporaryExecutor,
    deregister_executor,
    get_all_executors,
    register_executor,
    single_op_executor,
)


@pytest.fixture
def mine():
    executor = register_executor(OperatorExecutor("mine", version="1.0"))
    yield executor
    deregister_executor(executor)


def squared_distance(a, b):
    return ((a - b) ** 2).sum()


def names(compiled):
    return [bound.sym.name for bound in thunder.last_traces(compiled)[-1].bound_symbols]


def test_a_function_of_the_user_is_replaced_where_the_executor_takes_part(mine):
    mine.register_operator("distance", like=squared_distance, fn=squared_distance, replaces=squared_distance)
    a, b = torch.randn(3), torch.randn(3)

    def program(a, b):
        return squared_distance(a, b) * 2

    replaced, plain = thunder.jit(program, executors=[mine]), thunder.jit(program)
    for compiled in (replaced, plain):
        torch.testing.assert_close(compiled(a, b), program(a, b))
    assert "distance" in names(replaced) and "distance" not in names(plain)


def test_an_operator_may_be_run_by_another_and_differentiated_by_it(mine):
    first = mine.register_operator("first", like=lambda a, b: a + b, fn=torch.add)
    second = mine.register_operator("second", like=lambda a, b: a + b, fn=torch.add)

    def by_second(a, b):
        return second(a, b)

    def derivative(a, b):
        result = second(a, b)
        gradient = get_grad(result)
        put_grads((a, b), (gradient * 3, gradient * 5))
        return result

    mine.register_implementation(first, execution_transform=by_second, grad_transform=derivative)
    a, b = torch.randn(2, requires_grad=True), torch.randn(2, requires_grad=True)
    compiled = thunder.jit(lambda a, b: first(a, b), executors=[mine])
    compiled(a, b).sum().backward()
    assert "second" in names(compiled) and "first" not in names(compiled)
    assert a.grad.tolist() == [3.0, 3.0] and b.grad.tolist() == [5.0, 5.0]


def layer(a, b, c):
    return torch.relu(a @ b + c)


def test_an_executor_of_one_operation_is_found_by_name():
    executor = single_op_executor("layers", "layer", layer, lambda a, b, c: TensorProxy(like=c))
    try:
        assert executor in get_all_executors()
        a, b, c = torch.randn(4, 4), torch.randn(4, 4), torch.randn(4, 4)
        compiled = thunder.jit(lambda a, b, c: layer(a, b, c), executors=["layers"])
        torch.testing.assert_close(compiled(a, b, c), layer(a, b, c))
        assert names(compiled)[0] == "layer"
    finally:
        deregister_executor(executor)


def test_a_temporary_executor_needs_no_registration():
    executor = TemporaryExecutor()
    operator = executor.register_operator("shift", like=thunder.torch.add, fn=lambda a, b: torch.add(a, b))
    compiled = thunder.jit(lambda a: operator(a, 1), executors=[executor])
    torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert names(compiled)[0].startswith("shift")


def test_numpy_computes_inside_of_a_program(mine):
    def multiply(a, b):
        return torch.from_numpy(np.multiply(a.numpy(), b.numpy()))

    operator = mine.register_operator("multiply", meta=lambda a, b: TensorProxy(like=a), fn=multiply)
    a, b = torch.randn(2, 2), torch.randn(2, 2)
    torch.testing.assert_close(thunder.jit(lambda a, b: operator(a, b) + 1)(a, b), a * b + 1)
