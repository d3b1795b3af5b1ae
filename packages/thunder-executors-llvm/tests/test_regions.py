"""Regions compiled by LLVM give what eager PyTorch gives."""

import itertools
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import thunder_prims as prims
from thunder_executors import Region, to_callable, transform_for_execution
from thunder_executors_llvm import LlvmExecutor, executor, runner
from thunder_ir import Builder, TensorProxy, Trace, devices, dtypes, number_proxy, recording, trace_of
from thunder_ir.passes import expand
from thunder_loops import lowering
from thunder_testing import check_conformance, run_reference, sampled_symbols
from thunder_torch import proxy_of, symbol_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")


def compiled(program, *tensors, **options):
    """Return a program compiled for tensors like these, all of it in one kernel call."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors], **options)
    made = transform_for_execution(trace, [executor])
    assert any(b.symbol.executor is executor for b in made.bound_symbols), f"no kernel was made:\n{made}"
    return made.python_callable()


def alone(trace):
    """Return what runs all of a program in kernels, whatever that is worth; ``None`` if they cannot."""
    if not all([executor.can_fuse(bound) for bound in trace.bound_symbols]):
        return None
    return executor.runner(Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs)), "alone")


@pytest.mark.parametrize("symbol", [s for s in sampled_symbols() if s in lowering], ids=lambda s: s.id)
def test_kernels_compute_what_prims_mean(symbol):
    made = []

    def compile(trace):
        run = alone(trace)
        if run is None:
            return lambda *arrays: run_reference(trace, *[a.numpy() for a in arrays])
        made.append(run)
        many = isinstance(trace.output, (tuple, list))
        return lambda *tensors: run(*tensors) if many else run(*tensors)[0]

    check_conformance(symbol, compile, lambda array: torch.from_numpy(array.copy()), np.asarray)
    assert made, f"{symbol.id} is never in a kernel"


def gated(x, y):
    z = prims.mul(prims.tanh(prims.add(x, y)), x)
    return prims.where(prims.gt(z, 0), z, prims.mul(z, 0.1)), prims.neg(z)


def gated_in_torch(x, y):
    z = torch.tanh(x + y) * x
    return torch.where(z > 0, z, z * 0.1), -z


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (17,), (5, 33), (2, 1, 3, 4), (100, 1000)], ids=str)
def test_pointwise_regions_give_what_eager_gives(dtype, shape):
    x, y = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
    for got, expected in zip(compiled(gated, x, y)(x, y), gated_in_torch(x, y), strict=True):
        torch.testing.assert_close(got, expected, check_stride=True)


LAYOUTS = {
    "rows": lambda t: t,
    "columns": lambda t: t.t().contiguous().t(),
    "every second": lambda t: torch.repeat_interleave(t, 2, 1)[:, ::2],
    "offset": lambda t: torch.cat([t[:1], t])[1:],
    "repeated": lambda t: t[:1].expand(t.shape),
    "one column repeated": lambda t: t[:, :1].expand(t.shape),
}


@pytest.mark.parametrize("layouts", [*itertools.product(LAYOUTS, LAYOUTS)], ids=" and ".join)
def test_one_compiled_region_serves_all_layouts_and_answers_in_eagers(layouts):
    x, y = (torch.randn(7, 21) for _ in range(2))
    run = compiled(gated, x, y)
    run(x, y)
    x, y = (LAYOUTS[name](t) for name, t in zip(layouts, (x, y), strict=True))
    for got, expected in zip(run(x, y), gated_in_torch(x, y), strict=True):
        torch.testing.assert_close(got, expected, check_stride=True)


def test_an_argument_that_pytorch_reads_the_value_of_may_be_a_tensor():
    x, factor = torch.randn(7, 21).t(), torch.tensor(0.5)

    def program(x, factor):
        return symbol_of(torch.addcdiv)(x, x, x * x + 1, value=factor * 2)

    got = compiled(program, x, factor, language=torch_language)(x, factor)

    torch.testing.assert_close(got, torch.addcdiv(x, x, x * x + 1, value=1.0), check_stride=True)


def test_equal_structures_share_a_kernel_whatever_their_sizes():
    x = torch.randn(6, 50)
    compiled(gated, x, x.clone())(x, x)
    before = len(executor.kernels.addresses)
    y = torch.randn(31, 4)
    compiled(gated, y, y.clone())(y, y)
    assert len(executor.kernels.addresses) == before


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_number_of_threads_changes_no_bit(threads):
    x, y = torch.randn(400, 1000), torch.randn(400, 1000)
    run = compiled(gated, x, y)
    expected = run(x, y)
    had = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got = run(x, y)
    finally:
        torch.set_num_threads(had)
    assert all([torch.equal(g, e) for g, e in zip(got, expected, strict=True)])


def test_profilers_see_a_region_under_its_name_in_the_trace():
    x, y = torch.randn(40), torch.randn(40)
    run = compiled(gated, x, y)
    run(x, y)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = run(x, y)
        run(x, y)
    torch.testing.assert_close(found, gated_in_torch(x, y))
    counts = {event.key: event.count for event in profile.key_averages()}
    assert {name: count for name, count in counts.items() if name.startswith("llvm")} == {"llvm_0": 2}


def test_denormals_survive():
    x = torch.full((40,), 1e-42)
    assert torch.equal(compiled(lambda a: prims.neg(prims.mul(a, 0.5)), x)(x), -(x * 0.5))


def test_views_that_leave_a_region_are_left_to_pytorch():
    def program(x):
        y = prims.exp(prims.neg(x))
        return prims.transpose(y, (1, 0)), y

    x = torch.randn(3, 4)
    turned, straight = compiled(program, x)(x)
    assert turned.data_ptr() == straight.data_ptr()


def test_integers_are_divided_by_what_may_be_0_in_pytorch_alone():
    x, y = torch.arange(4), torch.tensor([1, 2, 0, 1])
    trace = trace_of(lambda a, b: prims.neg(prims.neg(prims.floor_divide(a, b))), proxy_of(x, ""), proxy_of(y, ""))
    run = transform_for_execution(trace, [executor]).python_callable()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(x, y)


@pytest.mark.parametrize("divisor", [1, 3, -1, -3, 7])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64], ids=str)
def test_integers_divided_by_numbers_round_as_in_eager(divisor, dtype):
    if dtype is torch.uint8 and divisor < 0:
        pytest.skip("a negative number does not fit uint8")
    x = torch.tensor([-128, -7, -3, -1, 0, 1, 2, 3, 127], dtype=torch.int64).to(dtype)

    def program(a):
        return prims.floor_divide(a, divisor), prims.remainder(a, divisor), prims.fmod(a, divisor)

    expected = (torch.div(x, divisor, rounding_mode="floor"), torch.remainder(x, divisor), torch.fmod(x, divisor))
    for got, e in zip(compiled(program, x)(x), expected, strict=True):
        assert torch.equal(got, e)


def test_traces_say_what_is_in_a_kernel():
    x = torch.randn(3)
    trace = trace_of(lambda a: prims.exp(prims.neg(a)), proxy_of(x, ""))
    made = transform_for_execution(trace, [executor])
    (call,) = [b for b in made.bound_symbols if b.symbol.executor is executor]
    assert isinstance(made, Trace) and [b.symbol.name for b in call.subsymbols] == ["neg", "exp"]


def test_one_kernel_serves_sizes_that_are_open():
    n, m = number_proxy(4, "n"), number_proxy(6, "m")
    x = TensorProxy((n, m), name="x")

    def program(a):
        return prims.exp(prims.neg(a)), prims.sum(prims.exp(a), (1,))

    builder = Builder()
    builder.names.reserve(["x", "n", "m"])
    with recording(builder):
        outputs = program(x)
    region = Region(tuple(builder.bound_symbols), (x,), outputs)
    runner = executor.runner(region, "open")
    before = None
    for shape in ((4, 6), (9, 40), (33, 100)):
        a = torch.randn(shape)
        torch.testing.assert_close(runner(a), (torch.exp(-a), torch.exp(a).sum(1)))
        before = before or len(executor.kernels.addresses)
        assert len(executor.kernels.addresses) == before


def test_a_tensor_of_a_size_that_no_input_tells_is_made_by_others():
    n = number_proxy(4, "n")

    def program(n, x):
        ones = prims.full((n,), 1.0, dtypes.float32, devices.cpu)
        return prims.exp(prims.neg(ones)), prims.exp(
            prims.mul(x, prims.full((x.shape[0],), 2.0, dtypes.float32, devices.cpu))
        )

    x = TensorProxy((number_proxy(4, "m"),), name="x")
    made = transform_for_execution(trace_of(program, n, x), [executor])
    assert len([b for b in made.bound_symbols if b.symbol.name == "full"]) == 1
    run = made.python_callable()
    for size, other in ((4, 4), (7, 300)):
        a = torch.randn(other)
        found = run(size, other, a)
        torch.testing.assert_close(found, (torch.exp(-torch.ones(size)), torch.exp(a * 2)))


def test_rows_that_are_written_to_may_be_as_many_as_a_call_tells():
    n = number_proxy(4, "n")
    zeros, index, x = (TensorProxy((n, size), dtype, name=name) for name, size, dtype in (
        ("zeros", 6, dtypes.float32), ("index", 2, dtypes.int64), ("x", 2, dtypes.float32)
    ))  # fmt: skip
    made = transform_for_execution(
        trace_of(lambda z, i, s: prims.exp(prims.scatter_add(z, i, s, 1)), zeros, index, x), [executor]
    )
    assert [b.symbol.executor for b in made.bound_symbols if b.symbol.executor is not None] == [executor]
    for rows in (3, 50):
        a, at, b = torch.randn(rows, 6), torch.randint(0, 6, (rows, 2)), torch.randn(rows, 2)
        found = made.python_callable()(rows, a, at, b)
        torch.testing.assert_close(found, torch.exp(a.scatter_add(1, at, b)))


def test_regions_of_one_structure_are_compiled_once():
    def block(x):
        return prims.mul(prims.tanh(prims.exp(x)), x)

    x = proxy_of(torch.ones(5, 7), "")
    first, second = (
        transform_for_execution(trace_of(program, x), [executor]) for program in (block, lambda y: block(y))
    )
    runners = [
        b.symbol.implementation for t in (first, second) for b in t.bound_symbols if b.symbol.executor is executor
    ]

    assert len(runners) == 2
    assert runners[0] is runners[1]


def test_regions_of_one_structure_are_judged_once(monkeypatch):
    judged = []
    monkeypatch.setattr(sys.modules[LlvmExecutor.__module__], "worth", lambda parts: judged.append(parts) or True)

    def steps(*tensors):
        rows = [prims.transpose(prims.exp(prims.sub(x, 3.0)), (1, 0)) for x in tensors]
        return tuple([*rows, *[prims.cos(prims.sin(prims.add(x, 0.7))) for x in tensors]])

    tensors = [torch.randn(6, 7) for _ in range(5)]
    trace = transform_for_execution(trace_of(steps, *[proxy_of(t, "") for t in tensors]), [executor])

    assert len(judged) == 1
    found = to_callable(trace_of(steps, *[proxy_of(t, "") for t in tensors]), [executor])(*tensors)
    expected = [torch.exp(t - 3).t() for t in tensors] + [torch.cos(torch.sin(t + 0.7)) for t in tensors]
    for ours, eagers in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, eagers)
        assert ours.stride() == eagers.stride()
    assert len([b for b in trace.bound_symbols if b.symbol.executor is executor]) == 5


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 4)], ids=str)
def test_batch_normalisation_of_turned_batches_lies_row_by_row(shape, training):
    x = torch.randn(*reversed(shape)).permute(*reversed(range(len(shape))))
    mean, variance = torch.zeros(shape[1]), torch.ones(shape[1])

    def program(x, mean, variance):
        return symbol_of(F.batch_norm)(x, mean, variance, training=training)

    proxies = [proxy_of(t, "") for t in (x, mean, variance)]
    in_prims = expand(trace_of(program, *proxies, language=torch_language))
    got = to_callable(in_prims, [executor])(x, mean, variance)

    expected = F.batch_norm(x, mean.clone(), variance.clone(), training=training)
    torch.testing.assert_close(got, expected, check_stride=True)


@pytest.mark.parametrize(("threads", "dealt"), [(1, 0), (4, 1)])
def test_what_deals_tasks_out_is_compiled_where_there_are_several_threads(threads, dealt, monkeypatch):
    x, asked = torch.randn(512, 512), []
    had, launcher = torch.get_num_threads(), runner.launcher
    monkeypatch.setattr(runner, "launcher", lambda: asked.append(threads) or launcher())
    torch.set_num_threads(threads)
    try:
        found = compiled(lambda x: prims.mul(prims.add(x, x), x), x)(x)
    finally:
        torch.set_num_threads(had)

    assert len(asked) == dealt
    assert torch.equal(found, (x + x) * x)
