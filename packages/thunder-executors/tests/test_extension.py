"""The worked extension of the documentation, without PyTorch: an operator, its take-over of a prim, its derivative."""

import threading

import numpy as np
import pytest
from numpy_executor import executor as numpy_executor

import thunder_prims as prims
from thunder_autograd import forward_and_backward, get_grad, put_grads, rule_of_grad
from thunder_executors import (
    ExecutorError,
    Finish,
    OperatorExecutor,
    execution_traces,
    grad_rule,
    provide_language_of_operators,
    replacements,
    runnable,
    to_callable,
    transform_for_execution,
)
from thunder_ir import Tensor, TensorProxy, trace_of
from thunder_ir.passes import verifying


@pytest.fixture
def mine():
    with verifying():
        yield OperatorExecutor("mine")


def split(function, executors, count=2):
    names = ("x", "y")[:count]
    trace = trace_of(function, *[Tensor((3,), "float64", requires_grad=True) for _ in names])
    return forward_and_backward(trace, rule_of=lambda bound: grad_rule(bound, executors, rule_of_grad))


def run(made, executors, *args):
    output, saved = to_callable(made.forward, executors)(*args)
    return output, to_callable(made.backward, executors)(*saved, np.ones(3))


def ids(trace):
    return [f"{b.symbol.executor.name}.{b.symbol.name}" for b in trace.bound_symbols if b.symbol.executor]


X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])


def test_an_operator_like_a_prim_is_called_and_differentiated_through(mine):
    multiply = mine.register_operator("multiply", like=prims.mul, fn=np.multiply)
    executors = [mine, numpy_executor]
    made = split(lambda x, y: prims.add(multiply(x, y), x), executors)
    output, (dx, dy) = run(made, executors, X, Y)

    np.testing.assert_allclose(output, X * Y + X)
    np.testing.assert_allclose(dx, Y + 1)
    np.testing.assert_allclose(dy, X)


def test_an_operator_like_a_function_in_operators(mine):
    provide_language_of_operators(prims.strict)
    fused = mine.register_operator("fused", like=lambda a, b: a * b + a, fn=lambda a, b: a * (b + 1))
    trace = trace_of(lambda x, y: fused(x, y), Tensor((3,), "float64"), Tensor((3,), "float64"))

    np.testing.assert_allclose(to_callable(trace, [mine])(X, Y), X * Y + X)
    assert trace.bound_symbols[0].subsymbols[0].symbol is prims.mul


def test_it_takes_over_a_prim_by_a_checker_and_an_execution_transform(mine):
    multiply = mine.register_operator("multiply", like=prims.mul, fn=np.multiply)

    def both_tensors(a, b):
        return isinstance(a, TensorProxy) and isinstance(b, TensorProxy)

    mine.register_implementation(prims.mul, checker=both_tensors, execution_transform=lambda a, b: multiply(a, b))
    trace = trace_of(lambda x, y: prims.mul(prims.mul(x, y), 2.0), Tensor((3,)), Tensor((3,)))

    assert ids(transform_for_execution(trace, [mine, numpy_executor])) == ["mine.multiply", "numpy.multiply"]


def test_it_brings_a_derivative_of_its_own(mine):
    multiply = mine.register_operator("multiply", like=prims.mul, fn=np.multiply)

    def multiply_grad(a, b):
        product = multiply(a, b)
        gradient = get_grad(product)
        put_grads((a, b), (multiply(gradient, b), multiply(gradient, a)))
        return product

    mine.register_implementation(prims.mul, multiply, grad_transform=multiply_grad)
    executors = [mine, numpy_executor]
    made = split(lambda x, y: prims.mul(x, y), executors)
    _, (dx, dy) = run(made, executors, X, Y)

    assert ids(made.backward) == ["mine.multiply", "mine.multiply"]
    np.testing.assert_allclose(dx, Y)
    np.testing.assert_allclose(dy, X)


def test_a_derivative_belongs_to_who_runs_the_call(mine):
    mine.register_implementation(prims.mul, np.multiply, checker=lambda a, b: False, grad_transform=lambda a, b: None)
    (bound,) = trace_of(lambda x: prims.mul(x, x), Tensor((3,))).bound_symbols

    assert grad_rule(bound, [mine, numpy_executor]) is None


def test_a_derivative_without_an_adapter_says_what_is_missing(mine):
    mine.register_implementation(prims.sin, np.sin, grad_transform=lambda a: a)
    (bound,) = trace_of(lambda x: prims.sin(x), Tensor((3,))).bound_symbols

    with pytest.raises(ExecutorError, match="executor mine, operation prims.sin: its grad_transform needs an adapter"):
        mine.find(bound).rule(bound, None)


def test_registering_again_replaces_and_may_prepare_operands(mine):
    multiply = mine.register_operator("multiply", like=prims.mul, fn=np.multiply)
    contiguous = mine.register_operator("contiguous", meta=lambda a: a.like(), fn=np.ascontiguousarray)
    mine.register_implementation(prims.mul, multiply)
    mine.register_implementation(prims.mul, execution_transform=lambda a, b: multiply(contiguous(a), contiguous(b)))
    trace = transform_for_execution(trace_of(lambda x, y: prims.mul(x, y), Tensor((2, 3)), Tensor((2, 3))), [mine])

    assert ids(trace) == ["mine.contiguous", "mine.contiguous", "mine.multiply"]
    assert trace.python_callable()(np.ones((3, 2), np.float32).T, np.ones((2, 3), np.float32)).flags.c_contiguous


def test_an_operator_can_stand_in_for_a_function_of_the_user(mine):
    def users_function(a):
        return a

    operator = mine.register_operator("operator", meta=lambda a: a.like(), fn=np.abs, replaces=users_function)
    others = replacements([])
    assert users_function not in others
    assert replacements([mine]) == {**others, users_function: operator}


@pytest.mark.parametrize("options", [{}, {"like": prims.mul, "meta": lambda a: a}], ids=["neither", "both"])
def test_an_operator_needs_either_like_or_meta(mine, options):
    with pytest.raises(ValueError, match="operator 'op' of executor mine needs either like= or meta="):
        mine.register_operator("op", fn=np.abs, **options)


def test_an_implementation_needs_an_operator_or_a_transform(mine):
    with pytest.raises(ValueError, match="executor mine needs op= or execution_transform= to run prims.mul"):
        mine.register_implementation(prims.mul)


def multiplies_twice():
    return trace_of(lambda x: prims.mul(prims.mul(x, x), x), Tensor((3,), "float64"))


def without_calls(trace):
    return trace.replace(bound_symbols=(), output=trace.inputs[0])


def test_a_program_is_finished_when_it_was_called_often_enough(mine):
    seen = []

    def look(trace):
        seen.append([b.symbol.name for b in trace.bound_symbols])
        return without_calls(trace) if len(seen) == 2 else None

    mine.finishing.append(Finish(look, after=2))
    stages = execution_traces(multiplies_twice(), [mine, numpy_executor])
    run, before = runnable(stages, [mine, numpy_executor]), len(stages)
    x = np.full(3, 2.0)
    assert [run(x)[0] for _ in range(5)] == [8, 8, 8, 2, 2]  # it was asked at the third call, and again at the fourth
    assert seen == [["multiply", "multiply", "del"]] * 2
    assert len(stages) == before + 1 and not stages[-1].bound_symbols


def test_small_programs_are_not_finished(mine):
    mine.finishing.append(Finish(without_calls, fewest=4))
    assert to_callable(multiplies_twice(), [mine, numpy_executor])(np.full(3, 2.0))[0] == 8


def test_a_program_whose_finish_fails_stays_as_it_is(mine):
    def fail(trace):
        raise KeyboardInterrupt

    mine.finishing.append(Finish(fail, after=1))
    run, x = to_callable(multiplies_twice(), [mine, numpy_executor]), np.full(3, 2.0)
    assert run(x)[0] == 8
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(x)


def test_one_thread_finishes_a_program_while_others_run_its_text(mine):
    entered, go_on = threading.Event(), threading.Event()

    def wait(trace):
        entered.set()
        assert go_on.wait(60)
        return without_calls(trace)

    mine.finishing.append(Finish(wait, after=1))
    run, x, found = to_callable(multiplies_twice(), [mine, numpy_executor]), np.full(3, 2.0), []
    run(x)
    thread = threading.Thread(target=lambda: found.append(run(x)[0]))
    thread.start()
    assert entered.wait(60)
    assert run(x)[0] == 8
    go_on.set()
    thread.join()
    assert found == [2] and run(x)[0] == 2
