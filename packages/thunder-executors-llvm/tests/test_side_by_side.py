"""Kernels that do not depend on each other run at once, and give what they give one after the other."""

import pytest
import torch

import thunder_prims as prims
from thunder_executors import calls_of, compute_into_inputs, execution_traces, runnable
from thunder_executors_llvm import executor
from thunder_executors_llvm.side_by_side import AFTER, HELD, side_by_side
from thunder_ir import trace_of
from thunder_torch import proxy_of, symbol_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")


def stages(program, tensors, writes=None):
    """Return the stages of a program that writes some of its outputs to inputs, those after many calls last."""
    trace = trace_of(program, *[proxy_of(t, f"a{n}") for n, t in enumerate(tensors)], language=torch_language)
    targets = {trace.outputs[o].name: trace.inputs[i] for o, i in (writes or {}).items()}
    made = execution_traces(trace, [executor, "torch"], lambda t: compute_into_inputs(t, targets=targets))
    return [*made, side_by_side(made[-1], executor)]


def together(trace):
    """Return how many regions each call that is of several runs."""
    return [len(b.symbol.implementation.parts) for b in trace.bound_symbols if b.symbol.name.startswith("together")]


def steps(*tensors):
    """Momentum for pairs of weights and momenta."""
    made = []
    for weight, momentum in zip(tensors[::2], tensors[1::2], strict=True):
        momentum = prims.add(prims.mul(momentum, 0.9), prims.tanh(weight))
        made += [prims.sub(weight, prims.mul(momentum, 0.1)), momentum]
    return tuple(made)


def weights(*shapes, dtype=torch.float32):
    return [torch.randn(shape).to(dtype) for shape in shapes for _ in range(2)]


def in_place(count):
    return {n: n for n in range(2 * count)}


SHAPES = [(300, 300), (7,), (100000,), (3, 5, 7), (1,), (64, 64)]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_steps_of_many_tensors_are_one_call_with_the_same_bits(dtype, threads):
    tensors = weights(*SHAPES, dtype=dtype)
    *_, alone, joined = stages(steps, tensors, in_place(len(SHAPES)))
    assert together(alone) == [] and together(joined) == [len(SHAPES)]
    expected, got = [[t.clone() for t in tensors] for _ in range(2)]
    had = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(3):
            alone.python_callable()(*expected)
            made = joined.python_callable()(*got)
    finally:
        torch.set_num_threads(had)
    assert all(map(torch.equal, got, expected))
    assert [t.data_ptr() for t in made] == [t.data_ptr() for t in got], "the steps are computed in place"


def test_programs_are_put_together_once_they_are_called_often():
    tensors = weights(*SHAPES)
    made = stages(steps, tensors)[:-1]
    count, run = len(made), runnable(made, [executor])
    for _ in range(AFTER):
        expected = run(*tensors)
    assert len(made) == count
    assert all(map(torch.equal, run(*tensors), expected))
    assert together(made[-1]) == [len(SHAPES)]


def columns(t):
    return t.t().contiguous().t() if t.ndim == 2 else t


@pytest.mark.parametrize("change", [columns, torch.Tensor.requires_grad_, lambda t: torch.stack([t, t], -1)[..., 0]])
def test_tensors_that_lie_otherwise_are_computed_as_well(change):
    tensors = weights((40, 50), (50, 30), (8, 8), (5, 6), (30,))
    run = stages(steps, tensors)[-1].python_callable()
    expected = steps_in_torch(tensors)
    with torch.no_grad():
        for some in (tensors, [change(t.clone()) for t in tensors], tensors):
            torch.testing.assert_close(run(*some), expected)


def steps_in_torch(tensors):
    made = []
    for weight, momentum in zip(tensors[::2], tensors[1::2], strict=True):
        momentum = momentum * 0.9 + weight.tanh()
        made += [weight - momentum * 0.1, momentum]
    return tuple(made)


class Tagged(torch.Tensor):
    """More than memory."""


def negative(t):
    return torch.complex(t, -t).conj().imag


@pytest.mark.parametrize("change", [lambda t: t.as_subclass(Tagged), negative])
def test_tensors_that_are_more_than_memory_are_left_to_pytorch(change):
    tensors = weights((40, 50), (50, 30), (8, 8), (5, 6))
    run = stages(steps, tensors)[-1].python_callable()
    torch.testing.assert_close(run(*tensors), steps_in_torch(tensors))
    some = [change(t) for t in tensors]
    torch.testing.assert_close(run(*some), steps_in_torch(some))


def softmaxes(*tensors):
    return tuple([symbol_of(torch.softmax)(prims.mul(t, 2.0), -1) for t in tensors])


def test_regions_of_several_kernels_run_in_rounds():
    def normalised(*tensors):
        sums = [prims.sum(prims.exp(t), (0, 1)) for t in tensors]
        return tuple([prims.div(t, prims.broadcast_in_dim(s, t.shape, ())) for t, s in zip(tensors, sums, strict=True)])

    tensors = [torch.randn(shape) for shape in [(700, 300), (20, 30), (1, 1), (500, 501)]]
    trace = stages(normalised, tensors)[-1]
    assert together(trace) == [4]
    for got, t in zip(trace.python_callable()(*tensors), tensors, strict=True):
        torch.testing.assert_close(got, t / t.exp().sum())


def test_rows_of_nothing_are_left_to_pytorch():
    tensors = [torch.randn(4, 5) for _ in range(5)]
    run = stages(softmaxes, tensors)[-1].python_callable()
    for some in (tensors, [*tensors[:4], torch.randn(4, 5)]):
        torch.testing.assert_close(run(*some), tuple([(2 * t).softmax(-1) for t in some]))
    empty = [torch.randn(4, 5) for _ in range(4)] + [torch.randn(4, 0)]
    run = stages(softmaxes, empty)[-1].python_callable()
    torch.testing.assert_close(run(*empty), tuple([(2 * t).softmax(-1) for t in empty]))


def test_what_depends_on_others_waits_for_them():
    sort = symbol_of(torch.sort)

    def program(*tensors):
        made = list(steps(*tensors))
        ordered = [sort(m)[0] for m in made]
        return (*made, *steps(*ordered))

    tensors = weights(*[(30, 40)] * 5)
    trace = stages(program, tensors)[-1]
    assert together(trace) == [5, 5]
    first = steps_in_torch(tensors)
    expected = (*first, *steps_in_torch([t.sort()[0] for t in first]))
    torch.testing.assert_close(trace.python_callable()(*tensors), expected)


@pytest.mark.parametrize("turned", [None, symbol_of(torch.Tensor.t)], ids=["itself", "a view"])
def test_nothing_is_overwritten_before_others_have_read_it(turned):
    product = symbol_of(torch.mm)

    def program(*tensors):
        """What the second step changes is read by a call between the first one and it."""
        before = steps(*tensors[:2])
        seen = product(before[0], turned(tensors[2]) if turned else tensors[2])
        return (*before, *steps(*tensors[2:]), seen)

    tensors = weights(*[(40, 40)] * 7)
    trace = stages(program, tensors)[-2]
    kernels = [b for b in calls_of(trace) if b.symbol.name.startswith("llvm")]
    *views, multiplies = [b for b in calls_of(trace) if b not in kernels]
    trace = trace.replace(bound_symbols=(*views, kernels[0], multiplies, *kernels[1:]))
    alone = compute_into_inputs(trace, targets={trace.outputs[n].name: trace.inputs[n] for n in range(14)})
    joined = side_by_side(alone, executor)
    expected, got = [[t.clone() for t in tensors] for _ in range(2)]
    seen = alone.python_callable()(*expected)[-1]
    factor = tensors[2] if turned is None else tensors[2].t()
    torch.testing.assert_close(seen, steps_in_torch(tensors[:2])[0] @ factor)
    assert torch.equal(joined.python_callable()(*got)[-1], seen)
    assert all(map(torch.equal, got, expected))
    assert together(joined) == [6]


def test_calls_between_kernels_stay_where_they_are():
    sort = symbol_of(torch.sort)

    def program(*tensors):
        made = []
        for n in range(0, len(tensors), 2):
            made += [*steps(*tensors[n : n + 2]), sort(prims.mul(tensors[n + 1], 1.0))[0]]
        return tuple(made)

    tensors = weights(*[(30, 40)] * 6)
    trace = stages(program, tensors)[-1]
    assert together(trace) == [6]
    made = trace.python_callable()(*tensors)
    torch.testing.assert_close([m for n, m in enumerate(made) if n % 3 < 2], list(steps_in_torch(tensors)))
    torch.testing.assert_close(list(made[2::3]), [t.sort()[0] for t in tensors[1::2]])


def test_no_more_memory_is_held_than_is_allowed():
    shape = (512, 1024)
    tensors = weights(*[shape] * 12)
    count = HELD // (2 * 4 * 512 * 1024)
    assert together(stages(steps, tensors)[-1]) == [count] * (12 // count)
    assert together(stages(steps, tensors, in_place(12))[-1]) == [12]


def test_large_regions_and_few_stay_alone():
    assert together(stages(steps, weights(*[(1024, 1025)] * 6), in_place(6))[-1]) == []
    assert together(stages(steps, weights(*[(10, 10)] * 3))[-1]) == []
