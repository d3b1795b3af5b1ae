"""Reductions, with what stands before and after them, give what PyTorch gives, and are no further from the truth."""

import pytest
import torch

import thunder_prims as prims
from thunder_executors import Region, transform_for_execution
from thunder_executors_llvm import executor, render
from thunder_executors_llvm.kernels import Kernels
from thunder_ir import dtypes, trace_of
from thunder_loops import CannotLower
from thunder_torch import proxy_of, symbol_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")

SHAPES = [(1, 1), (4, 6), (1, 50), (50, 1), (37, 53), (3, 20000), (5000, 7), (300, 257)]


def run(program, *tensors):
    """Run all of a program in kernels, whatever that is worth."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors])
    region = Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs))
    return executor.runner(region, "alone")(*tensors)


def along(result, x, dim):
    return prims.broadcast_in_dim(result, x.shape, (1 - dim,))


def softmax(x, dim):
    e = prims.exp(prims.sub(x, along(prims.amax(x, (dim,)), x, dim)))
    return prims.div(e, along(prims.sum(e, (dim,)), x, dim))


def normalised(x, dim):
    variance, mean = prims.var_mean(x, (dim,), 0)
    scale = prims.rsqrt(prims.add(variance, 1e-5))
    return prims.mul(prims.sub(x, along(mean, x, dim)), along(scale, x, dim)), mean, scale


def every_reduction(x, dim):
    several = (0, 1) if dim is None else (dim,)
    results = [f(x, several) for f in (prims.sum, prims.amax, prims.amin)]
    return (*results, prims.argmax(x, dim), prims.argmin(x, dim))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_softmax_and_normalisation_are_as_near_to_the_truth_as_eagers(shape, dtype, dim, turned):
    x = torch.randn(shape).to(dtype)
    x = x.t().contiguous().t() if turned else x
    truth = x.double()
    scale = {torch.bfloat16: 2.0**-8, torch.float64: 2.0**-48}.get(dtype, 2.0**-23)
    (got,) = run(lambda a: (softmax(a, dim),), x)
    torch.testing.assert_close(got.double(), torch.softmax(truth, dim), rtol=16 * scale, atol=scale)
    centred, mean, rstd = run(lambda a: normalised(a, dim), x)
    v, m = torch.var_mean(truth, dim, correction=0)
    torch.testing.assert_close(mean.double(), m, rtol=4 * scale, atol=4 * scale)
    if x.shape[dim] > 1:
        torch.testing.assert_close(rstd.double(), torch.rsqrt(v + 1e-5), rtol=8 * scale, atol=8 * scale)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_extrema_and_their_places_are_those_of_eager_ties_and_nan_included(shape, dim):
    x = torch.randint(-3, 4, shape).float()
    for values in (x, torch.where(x == 2, torch.nan, x), torch.full(shape, -torch.inf), x.int(), x.to(torch.uint8)):
        total, most, least, first, last = run(lambda a: every_reduction(a, dim), values)
        dims = (0, 1) if dim is None else dim
        torch.testing.assert_close(most, values.amax(dims), equal_nan=True, rtol=0, atol=0)
        torch.testing.assert_close(least, values.amin(dims), equal_nan=True, rtol=0, atol=0)
        torch.testing.assert_close(total, values.sum(dims, dtype=values.dtype), equal_nan=True)
        assert torch.equal(first, values.argmax(dim)) and torch.equal(last, values.argmin(dim))


def test_sums_are_nearer_to_the_truth_than_eagers():
    x = torch.randn(64, 40_001) * 100
    (got,) = run(lambda a: (prims.sum(a, (1,)),), x)
    truth = x.double().sum(1)
    assert (got - truth).abs().max() <= (x.sum(1) - truth).abs().max()


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (0, 1, 2), (1, 2)], ids=str)
def test_sums_along_any_dimensions(dims):
    x = torch.randn(6, 35, 20)
    for laid in (x, x.permute(2, 0, 1).contiguous().permute(1, 2, 0), x[:, ::2]):
        total, spread = run(lambda a: (prims.sum(a, dims), prims.std(a, dims, 1)), laid)
        torch.testing.assert_close(total, laid.double().sum(dims).float(), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(spread, laid.double().std(dims).float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (33,), (3, 5), (64, 1000), (2000, 40)], ids=str)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
def test_results_repeated_along_what_was_reduced_are_written_everywhere(shape, dims):
    x = torch.randn(shape)
    dims = tuple([d for d in dims if d < x.ndim]) or (0,)
    rest = tuple([d for d in range(x.ndim) if d not in dims])
    program = lambda a: (prims.broadcast_in_dim(prims.neg(prims.amax(a, dims)), a.shape, rest), prims.amin(a, dims))  # noqa: E731
    repeated, least = run(program, x)
    assert torch.equal(repeated, (-x.amax(dims, keepdim=True)).expand(shape)) and torch.equal(least, x.amin(dims))


def test_reductions_of_nothing_are_those_of_eager():
    x = torch.randn(3, 0)
    (got,) = run(lambda a: (prims.add(prims.sum(a, (1,)), 1),), x)
    assert torch.equal(got, x.sum(1) + 1)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_sums_are_the_same_for_every_number_of_threads(threads):
    torch.manual_seed(0)
    x = torch.randn(1_000_003)
    expected = run(lambda a: (prims.sum(a, (0,)), prims.sum(prims.exp(a), (0,))), x)
    had = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got = run(lambda a: (prims.sum(a, (0,)), prims.sum(prims.exp(a), (0,))), x)
    finally:
        torch.set_num_threads(had)
    assert [t.item() for t in got] == [t.item() for t in expected]


def test_what_is_around_a_reduction_is_in_its_kernel():
    x = torch.randn(8, 40)
    trace = trace_of(lambda a: softmax(prims.mul(a, 0.5), 1), proxy_of(x, ""))
    made = transform_for_execution(trace, [executor])
    assert [b.symbol.name for b in made.bound_symbols if b.symbol.executor is executor] == ["llvm_0"]
    torch.testing.assert_close(made.python_callable()(x), torch.softmax(x * 0.5, 1))


@pytest.mark.parametrize("before", range(8))
def test_what_waits_in_the_place_of_an_output_is_read_before_that_is_written(before):
    """Which value waits in which output depends on names, which are numbered."""

    def program(a, b):
        for _ in range(before):
            a = prims.mul(a, 1.01)
        return softmax(a, 1), softmax(prims.mul(b, 0.5), 1)

    a, b = torch.randn(5, 40), torch.randn(5, 40)
    first, second = run(program, a, b)

    torch.testing.assert_close(first, torch.softmax(a * 1.01**before, 1))
    torch.testing.assert_close(second, torch.softmax(b * 0.5, 1))


@pytest.mark.parametrize("shape", [(8, 3), (2, 3, 4), (24,), (3, 8), (1, 24), (4, 6), (6, 2, 2)], ids=str)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
def test_what_is_written_in_another_shape_is_computed_with_the_reduction(shape, dims):
    x = torch.randn(6, 4)

    def program(a):
        y = prims.tanh(prims.exp(a))
        return prims.sum(y, dims), prims.reshape(y, shape)

    trace = trace_of(program, proxy_of(x, ""))
    run = executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "both")
    total, moved = run(x)
    y = torch.tanh(torch.exp(x))

    torch.testing.assert_close(total, y.sum(dims))
    torch.testing.assert_close(moved, y.reshape(shape))
    assert shape != (2, 3, 4) or len(run.program.nests) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(3, 1), (5, 33), (64, 100), (2, 3, 257)], ids=str)
def test_what_waits_between_sweeps_in_an_output_changes_nothing(dtype, shape):
    def program(x, w):
        scaled = symbol_of(torch.exp)(x * w)
        soft = symbol_of(torch.exp)(scaled - symbol_of(torch.amax)(scaled, -1, keepdim=True))
        return soft / symbol_of(torch.sum)(soft, -1, keepdim=True) + scaled, soft * 2.0

    def eager(x, w):
        scaled = torch.exp(x * w)
        soft = torch.exp(scaled - scaled.amax(-1, True))
        return soft / soft.sum(-1, keepdim=True) + scaled, soft * 2.0

    x, w = torch.randn(shape).to(dtype), torch.randn(shape[-1:]).to(dtype)
    trace = trace_of(program, proxy_of(x, ""), proxy_of(w, ""), language=torch_language)
    run = executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "waits")
    for got, wanted in zip(run(x, w), eager(x, w), strict=True):
        torch.testing.assert_close(got, wanted)


def test_what_a_reduction_finds_says_which_of_two_tensors_is_read():
    def program(x, a):
        places = prims.remainder(prims.broadcast_in_dim(prims.amax(x, (0,)), (3,), ()), 6)
        return (prims.take(prims.cat((a, prims.neg(a)), 0), places, 0),)

    a = torch.randn(3)
    for largest in range(6):
        x = torch.tensor([-1, largest, 0])
        (got,) = run(program, x, a)
        assert torch.equal(got, torch.cat([a, -a])[largest].expand(3))
    with pytest.raises(CannotLower, match="indices that a reduction finds"):
        run(program, torch.tensor([0, 1, 2, 3, 4]), a)  # what is checked has another shape than what is reduced


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("shape", [(3, 1), (5, 63), (7, 64), (4, 65), (6, 300), (300, 6)], ids=str)
def test_how_many_registers_stand_side_by_side_changes_no_bit(monkeypatch, dtype, shape):
    def program(x):
        rows = [prims.sum(x, (1,)), prims.prod(x, (1,)), prims.amax(x, (1,)), prims.argmin(x, 1), prims.sum(x, (0,))]
        wide = prims.convert_element_type(x, dtypes.float32)
        return (*rows, prims.tanh(prims.mul(wide, 0.3)), softmax(wide, 1), softmax(wide, 0), *normalised(wide, 1))

    x = (torch.randn(shape) * 3).to(dtype)
    found = []
    for count in (1, 2, 4):
        with monkeypatch.context() as patch:
            patch.setattr(render, "registers_of", lambda plan, count=count: count)
            patch.setattr(executor, "kernels", Kernels())
            found.append(run(program, x))
    for others in found[1:]:
        assert all(map(torch.equal, found[0], others))
