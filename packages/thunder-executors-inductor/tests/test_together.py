"""Kernels of a program that are compiled before it first runs, all at once."""

import contextvars
import threading

import pytest
import torch
from torch._inductor import async_compile
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import LambdaFuture
from torch.testing import assert_close

import thunder_torch as ltorch
from thunder_autograd import forward_and_backward
from thunder_executors import execution_traces, runnable
from thunder_executors_inductor import InductorExecutor, entry
from thunder_executors_inductor.together import compile_together
from thunder_executors_inductor.turns import in_parallel
from thunder_ir import IntegerProxy, Tensor, record, trace_of


@pytest.fixture
def executor():
    return InductorExecutor("mine")


@pytest.fixture
def several_cores(monkeypatch):
    monkeypatch.setattr(async_compile, "get_compile_threads", lambda: 2)  # with one core nothing is waited for


@pytest.fixture
def compiled_together(monkeypatch):
    """How many kernels each call of Inductor compiled."""
    counts = []
    together, alone = entry.compile_traces, entry.compile_trace

    def count(traces, settings):
        counts.append(len(traces))
        return together(traces, settings)

    def count_one(trace, settings):
        counts.append(1)
        return alone(trace, settings)

    monkeypatch.setattr(entry, "compile_traces", count)
    monkeypatch.setattr(entry, "compile_trace", count_one)
    return counts


def traced(function, *examples):
    return trace_of(function, *examples, language=ltorch.torch_language)


def turned(x, w):
    """Two regions; the second one reads a tensor that is not laid out in order, as its meta function does not say."""
    y = (x.exp() * 2).transpose(0, 1) @ w
    return (y.transpose(0, 1) * 3).tanh() + 1


def kernels(trace, executor):
    return [b.symbol.implementation for b in trace.bound_symbols if b.symbol.executor is executor]


def test_kernels_of_a_program_are_compiled_together_for_the_strides_that_then_come(executor, compiled_together):
    stages = execution_traces(traced(turned, Tensor((6, 4)), Tensor((6, 6))), [executor, "torch"])
    run = runnable(stages, [executor, "torch"])
    x, w = torch.randn(6, 4), torch.randn(6, 6)
    assert_close(run(x, w), turned(x, w))
    assert compiled_together == [2]
    assert [k.compilations for k in kernels(stages[-1], executor)] == [1, 1]


def test_cotangents_are_thought_to_be_laid_out_in_order(executor, compiled_together):
    x, w = torch.randn(6, 4, requires_grad=True), torch.randn(6, 6, requires_grad=True)
    inputs = [ltorch.proxy_of(x, "x"), ltorch.proxy_of(w, "w")]
    split = forward_and_backward(record(turned, inputs, language=ltorch.torch_language))
    forward, backward = [
        runnable(execution_traces(t, [executor, "torch"]), [executor, "torch"]) for t in (split.forward, split.backward)
    ]
    expected = turned(x, w)
    with torch.no_grad():
        result, saved = forward(x, w)
        for cotangent in (torch.randn(6, 4), torch.randn(4, 6).t()):
            gradients = torch.autograd.grad(expected, (x, w), cotangent, retain_graph=True)
            assert_close(tuple(backward(*saved, cotangent)), gradients)
    assert_close(result, expected.detach())
    assert compiled_together == [2, 2, 1]  # the last one for another layout, when it came


def test_sizes_at_hand_are_those_that_open_kernels_are_compiled_for(executor, compiled_together):
    n = IntegerProxy(6, "n")
    stages = execution_traces(traced(turned, Tensor((n, 4)), Tensor((n, n))), [executor, "torch"])
    run = runnable(stages, [executor, "torch"])
    for size in (6, 9):
        x, w = torch.randn(size, 4), torch.randn(size, size)
        assert_close(run(size, x, w), turned(x, w))
    assert compiled_together == [2]


def test_what_fails_to_compile_is_left_to_its_call(executor, monkeypatch):
    stages = execution_traces(traced(turned, Tensor((6, 4)), Tensor((6, 6))), [executor, "torch"])

    def fail(trace):
        raise RuntimeError(trace.name)

    monkeypatch.setattr(entry, "_compile", fail)
    assert compile_together(stages[-1]) is stages[-1]
    assert not any(k.compilations for k in kernels(stages[-1], executor))
    with pytest.raises(RuntimeError, match="region"):
        runnable(stages, [executor, "torch"])(torch.randn(6, 4), torch.randn(6, 6))


@pytest.mark.usefixtures("several_cores")
def test_a_thread_that_waits_for_kernels_lets_another_one_compile():
    second = threading.Event()

    def waits():
        scope = {"kernel": LambdaFuture(lambda: second.wait(60))}
        AsyncCompile().wait(scope)
        return scope["kernel"]

    assert in_parallel([waits, second.set], threads=2) == [True, None]


@pytest.mark.usefixtures("several_cores")
def test_what_waits_elsewhere_meanwhile_waits_as_ever():
    outside = []

    def job():
        thread = threading.Thread(target=contextvars.Context().run, args=(elsewhere,))
        thread.start()
        thread.join()

    def elsewhere():
        scope = {"kernel": LambdaFuture(lambda: "made")}
        AsyncCompile().wait(scope)
        outside.append(scope["kernel"])

    in_parallel([job, lambda: None], threads=2)
    assert outside == ["made"]
