"""What the kernels of a program will be called with, told before it runs."""

import torch

import thunder_torch as ltorch
from thunder_executors import FusionExecutor, execution_traces, to_callable
from thunder_ir import IntegerProxy, Tensor, trace_of
from thunder_torch.foresee import foreseen


class Kernel:
    def __init__(self, region):
        self.eager = to_callable(region.trace("region"), [])

    def __call__(self, *inputs):
        seen.append([layout(t) for t in inputs])
        return self.eager(*inputs)


class Kernels(FusionExecutor):
    def can_fuse(self, bound):
        return bound.symbol.name in ("exp", "mul", "tanh", "add")

    def fuse(self, region, name):
        return self.fused(region, name, Kernel(region))


seen = []
kernels = Kernels("kernels", checks=False)


def layout(value):
    return (tuple(value.shape), value.stride()) if isinstance(value, torch.Tensor) else value


def program_of(function, *examples):
    trace = trace_of(function, *examples, language=ltorch.torch_language)
    return execution_traces(trace, [kernels, "torch"])[-1]


def agrees(trace, *inputs):
    """How many calls were foreseen, after comparing them with those that come."""
    told = [[layout(t) for t in inputs] for _, inputs in foreseen(trace, Kernel)]
    seen.clear()
    trace.python_callable()(*inputs)
    assert told == [call for call in seen if call in told] and told
    return len(told), len(seen)


def turned(x, w):
    return (((x.exp() * 2).transpose(0, 1) @ w).transpose(0, 1) * 3).tanh()


def test_calls_are_foreseen_with_the_strides_that_come():
    trace = program_of(turned, Tensor((6, 4)), Tensor((6, 6)))
    assert agrees(trace, torch.randn(6, 4), torch.randn(6, 6)) == (2, 2)


def test_open_sizes_have_the_values_at_hand():
    n = IntegerProxy(6, "n")
    trace = program_of(turned, Tensor((n, 4)), Tensor((n, n)))
    assert agrees(trace, 6, torch.randn(6, 4), torch.randn(6, 6)) == (2, 2)


def test_what_depends_on_data_is_not_foreseen():
    def program(x):
        y = x.exp() * 2
        return ltorch.call(torch.nonzero, (y,), {}).exp() + y.sum()

    assert agrees(program_of(program, Tensor((6, 4))), torch.randn(6, 4)) == (1, 2)


def test_nothing_is_drawn_for_it():
    def program(x):
        return ltorch.call(torch.nn.functional.dropout, (x.exp() * 2,), {}).transpose(0, 1).tanh() * 3

    state = torch.get_rng_state()
    foreseen(program_of(program, Tensor((6, 4))), Kernel)
    assert torch.equal(torch.get_rng_state(), state)
