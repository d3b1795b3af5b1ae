"""Pooling in kernels has the bits, places and strides of eager PyTorch."""

import pytest
import torch
from guarded import is_same
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import thunder_prims as prims
from thunder_executors import Region
from thunder_executors_llvm import executor
from thunder_ir import trace_of
from thunder_loops import CannotLower
from thunder_torch import proxy_of

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")

SIZES = st.sampled_from([1, 3, 7, 16, 33, 40])
FLOATING = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16])
MAX = {2: torch._C._nn.max_pool2d_with_indices, 3: torch._C._nn.max_pool3d_with_indices}
AVG = {2: torch._C._nn.avg_pool2d, 3: torch._C._nn.avg_pool3d}


def run(program, *tensors):
    """Run all of a program in kernels, whatever that is worth."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors])
    return executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "alone")(*tensors)


def check(got, expected):
    for one, other in zip(got, expected, strict=True):
        assert (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)
        assert is_same(one, other)


def images(draw, dtype, count):
    """Return a tensor with equal elements, zeros of both signs, infinities and NaNs, in several layouts."""
    shape = (draw(st.integers(1, 2)), draw(st.sampled_from([1, 3])), *[draw(SIZES) for _ in range(count)])
    torch.manual_seed(draw(st.integers(0, 99)))
    x = torch.randint(0, 9, shape).to(dtype)
    if dtype.is_floating_point:
        special = torch.tensor([-0.0, 0.0, -1.5, 2.0, float("inf"), -float("inf"), float("nan")], dtype=dtype)
        x = special[torch.randint(0, draw(st.sampled_from([4, 6, 7])), shape)]
        x = torch.full_like(x, -float("inf")) if draw(st.booleans()) and draw(st.booleans()) else x
    how = draw(st.sampled_from(["rows", "channels last", "stepped"]))
    if how == "channels last" and count == 2:
        return x.contiguous(memory_format=torch.channels_last)
    return torch.stack([x, x], -1)[..., 0] if how == "stepped" else x


def windows(draw, count):
    window = tuple([draw(st.integers(1, 4 if count == 2 else 2)) for _ in range(count)])
    stride = tuple([draw(st.integers(1, 5)) for _ in range(count)])
    return window, stride, tuple([draw(st.integers(0, w // 2)) for w in window])


def of_eager(call, *args):
    """Return what PyTorch gives; where it refuses, there is nothing to compare."""
    try:
        return call(*args)
    except (RuntimeError, NotImplementedError):
        assume(False)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_largest_elements_and_their_places_are_those_of_eager(data):
    draw, count = data.draw, data.draw(st.sampled_from([2, 2, 3]))
    x = images(draw, draw(st.one_of(FLOATING, st.sampled_from([torch.int64, torch.uint8]))), count)
    dilation = tuple([draw(st.integers(1, 3)) for _ in range(count)])
    options = (*windows(draw, count), dilation, draw(st.booleans()))
    expected = of_eager(MAX[count], x, *options)
    try:
        got = run(lambda x: prims.max_pool(x, *options), x)
    except CannotLower as error:
        assert "without elements" in str(error)
        return
    check(got, expected)
    check(run(lambda x: (prims.max_pool(x, *options)[0],), x), expected[:1])


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_means_are_those_of_eager(data):
    draw, count = data.draw, data.draw(st.sampled_from([2, 2, 3]))
    x = images(draw, draw(FLOATING), count)
    options = (*windows(draw, count), draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from([None, None, 3])))
    expected = of_eager(AVG[count], x, *options)
    (got,) = run(lambda x: (prims.avg_pool(x, *options),), x)
    assert torch.equal(got.isnan(), expected.isnan())  # which NaN is not said
    check([torch.where(got.isnan(), 0, got)], [torch.where(expected.isnan(), 0, expected)])
    assert got.stride() == expected.stride()


def test_one_dimension_is_pooled():
    x = torch.randn(3, 4, 50)

    got = run(lambda x: prims.max_pool(x, (3,), (2,), (1,), (1,), False), x)
    check(got, torch.nn.functional.max_pool1d(x, 3, 2, 1, return_indices=True))


@pytest.mark.parametrize("strides", [(64, 1, 8, 1), (64, 64, 8, 1), (64, 5, 8, 1)])
@pytest.mark.parametrize("computes", [False, True])
def test_strides_of_one_channel_say_how_results_lie(strides, computes):
    x = torch.empty_strided((2, 1, 8, 8), strides).normal_()

    def program(x):
        return prims.max_pool(prims.neg(x) if computes else x, (2, 2), (2, 2), (0, 0), (1, 1), False)

    check(run(program, x), torch._C._nn.max_pool2d_with_indices(-x if computes else x, 2))


def test_windows_of_windows_are_found_one_after_the_other():
    x = torch.randn(2, 3, 33, 35)
    options = (3, 3), (2, 2), (1, 1), (1, 1), False

    def program(x):
        return prims.max_pool(prims.neg(prims.max_pool(prims.neg(x), *options)[0]), *options)

    first = torch._C._nn.max_pool2d_with_indices(-x, 3, 2, 1)[0]
    check(run(program, x), torch._C._nn.max_pool2d_with_indices(-first, 3, 2, 1))
    trace = trace_of(program, proxy_of(x, ""))
    region = Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs))
    assert len(executor.runner(region, "alone").program.nests) == 2


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_what_is_dear_is_computed_once_for_all_windows(stride):
    x = torch.randn(2, 3, 33, 35)

    def program(x):
        return prims.max_pool(prims.tanh(x), (3, 3), (stride, stride), (1, 1), (1, 1), False)

    (tanh,) = run(lambda x: (prims.tanh(x),), x)
    check(run(program, x), torch._C._nn.max_pool2d_with_indices(tanh, 3, stride, 1))
    trace = trace_of(program, proxy_of(x, ""))
    region = Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs))
    assert len(executor.runner(region, "alone").program.nests) == (1 if stride == 3 else 2)
