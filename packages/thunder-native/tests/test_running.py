"""Programs in native code: errors, ownership, threads, and when Python runs instead."""

import ctypes
import gc
import subprocess
import sys
import threading
from functools import partial

import pytest
import torch
from regions import Recorder, many, same
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import thunder_frontend
from thunder_executors import (
    execution_traces,
    get_default_executors,
    remove_default_executor,
    runnable,
    set_default_executors,
    to_callable,
    transform_for_execution,
)
from thunder_frontend import cache_misses, jit, last_backward_traces, last_traces
from thunder_ir import IntegerProxy, Tensor, TensorProxy, trace_of
from thunder_ir.passes import verifying
from thunder_native import NativeExecutor, runtime
from thunder_native.executor import FEWEST, HOT, OF_LINEAR, executor, join_calls
from thunder_native.program import inner_values
from thunder_native.runner import FAILURES
from thunder_native.runtime import missing
from thunder_native.table import CannotExpress
from thunder_torch import symbol_of, torch_language

add, mul, linear, tanh = (symbol_of(f) for f in (torch.add, torch.mul, torch.nn.functional.linear, torch.tanh))


pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")


class Other(torch.Tensor):
    pass


def program(x, w, b):
    y = linear(tanh(linear(x, w, b)), w, b)
    return mul(add(y, x), 3), y


def in_torch(x, w, b):
    y = torch.nn.functional.linear(torch.tanh(torch.nn.functional.linear(x, w, b)), w, b)
    return torch.mul(torch.add(y, x), 3), y


def traced():
    return trace_of(program, Tensor((4, 4)), Tensor((4, 4)), Tensor((4,)), language=torch_language)


def runner_of(trace):
    (bound,) = [b for b in trace.bound_symbols if b.symbol.module == "native"]
    return bound.symbol.implementation


def in_native_code(trace):
    return join_calls(transform_for_execution(trace, ["native"]), executor)


@pytest.fixture(autouse=True)
def _no_computation_of_other_tests():
    """Compiled functions are in cycles: until they are collected, equal programs run what earlier tests made."""
    gc.collect()


@pytest.fixture
def inputs():
    return torch.randn(4, 4), torch.randn(4, 4), torch.randn(4)


@pytest.fixture
def runner():
    return runner_of(in_native_code(traced()))


def test_calls_in_a_row_become_one(inputs):
    trace = in_native_code(traced())
    assert [b.symbol.name for b in trace.bound_symbols] == ["native_0", "del"]
    results = trace.python_callable()(*inputs)
    assert all(same(a, b) for a, b in zip(results, in_torch(*inputs), strict=True))


def test_the_verifier_accepts_regions_of_calls_that_only_pytorch_knows():
    with verifying():
        compiled = jit(lambda x: torch.softmax(torch.tanh(x), 1).exp() + 1, executors=["native"])
        x = torch.randn(3, 4)
        assert same(compiled(x), torch.softmax(torch.tanh(x), 1).exp() + 1)
    assert last_traces(compiled)[-1].bound_symbols[0].symbol.name == "native_0"


def native_of(compiled):
    """Return the regions of the last program that a compiled function made."""
    return [b.symbol.implementation for b in last_traces(compiled)[-1].bound_symbols if b.symbol.module == "native"]


def test_unasked_it_takes_many_calls_of_small_tensors_when_they_are_made_often():
    compiled, (x, w) = jit(many), (torch.randn(4, 4), torch.randn(4, 4))
    results = [compiled(x, w) for _ in range(HOT)]
    assert not native_of(compiled)
    stages = len(last_traces(compiled))
    results += [compiled(x, w), compiled(x, w)]
    (runner,) = native_of(compiled)
    assert runner.enter(x, w).__class__ is tuple
    assert all(same(result, many(x, w)) for result in results)
    assert len(last_traces(compiled)) == stages + 1
    names = [b.symbol.name for b in last_traces(compiled)[-2].bound_symbols if b.symbol.name != "del"]
    assert names == ["tanh", "matmul", "add"] * 8


def test_unasked_it_leaves_few_calls_and_large_tensors_to_python():
    few, large = jit(lambda x: torch.tanh(x)), jit(many)
    for _ in range(HOT + 1):
        few(torch.randn(4))
        large(torch.randn(300, 300), torch.randn(300, 300))
    assert not native_of(few) and not native_of(large)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_unasked_a_product_with_a_bias_counts_for_three_calls(layers, bias):
    parts = [part for _ in range(layers) for part in (torch.nn.Linear(4, 4, bias=bias), torch.nn.ReLU())]
    model, x = torch.nn.Sequential(*parts), torch.randn(2, 4)
    compiled = jit(model)
    with torch.no_grad():
        results = [compiled(x) for _ in range(HOT + 2)]
        assert all(same(result, model(x)) for result in results)
    assert bool(native_of(compiled)) is (layers * (OF_LINEAR if bias else 1) + layers >= FEWEST)


def test_unasked_it_reads_large_inputs():
    compiled = jit(lambda x, w, v: many(x @ w, v))
    inputs = torch.randn(2, 4000), torch.randn(4000, 4), torch.randn(4, 4)
    for _ in range(HOT + 1):
        compiled(*inputs)
    (runner,) = native_of(compiled)
    assert len(runner.region.bound_symbols) == 25


def test_unasked_gradients_are_those_of_eager_before_and_after_it_is_made():
    compiled, (x, w) = jit(many), (torch.randn(4, 4), torch.randn(4, 4))
    for _ in range(HOT + 2):
        inputs = [[t.clone().requires_grad_() for t in (x, w)] for _ in range(2)]
        for f, given in zip((compiled, jit(many, executors=["torch"])), inputs, strict=True):
            f(*given).sum().backward()
        assert all(same(a.grad, b.grad) for a, b in zip(*inputs, strict=True))
    assert native_of(compiled)
    assert [b for b in last_backward_traces(compiled)[-1].bound_symbols if b.symbol.module == "native"]


class Noting(thunder_frontend.Transform):
    """Notes what it is given of programs that are ready to run."""

    def __init__(self):
        self.seen = []

    def transform_trace_post_optimization(self, trace, **kwargs):
        self.seen.append([b.symbol.module for b in trace.bound_symbols])
        return trace


@pytest.mark.parametrize("executors", [None, ["native"]])
def test_transforms_see_each_call(executors):
    noting = Noting()
    compiled = jit(many, executors=executors, transforms=[noting])
    for _ in range(HOT + 1):
        compiled(torch.randn(4, 4), torch.randn(4, 4))
    (seen,) = noting.seen
    assert "native" not in seen and len(seen) > 24
    assert native_of(compiled)


def test_it_is_off_where_it_is_no_default_executor():
    default = get_default_executors()
    remove_default_executor("native")
    try:
        compiled = jit(many)
        for _ in range(HOT + 1):
            compiled(torch.randn(4, 4), torch.randn(4, 4))
    finally:
        set_default_executors(default)
    assert not native_of(compiled)


def test_python_goes_on_where_native_code_cannot_be_made(monkeypatch):
    compiled, (x, w) = jit(many), (torch.randn(4, 4), torch.randn(4, 4))

    def broken():
        raise RuntimeError("native code cannot run here: no LLVM")

    monkeypatch.setattr(sys.modules["thunder_native.executor"], "runtime", broken)
    for _ in range(HOT):
        compiled(x, w)
    with pytest.warns(UserWarning, match="Python makes the calls of programs: native code cannot run here: no LLVM"):
        compiled(x, w)
    assert same(compiled(x, w), many(x, w))


class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("watching", [Pass, torch.profiler.profile, lambda: torch.autocast("cpu")])
def test_it_is_made_when_nobody_watches(inputs, watching):
    stages = execution_traces(traced(), ["native"])
    run, before = runnable(stages, ["native"]), len(stages)
    with watching():
        run(*inputs)
    assert len(stages) == before
    results = run(*inputs)
    assert stages[before].bound_symbols[0].symbol.name == "native_0"
    assert all(same(*pair) for pair in zip(results, in_torch(*inputs), strict=True))


def test_constants_made_in_inference_mode_serve_outside(inputs):
    run = to_callable(
        trace_of(lambda x: tanh(mul(mul(mul(x, 3), 0.5), 2.5)), Tensor((4, 4)), language=torch_language), ["native"]
    )
    x = inputs[0]
    with torch.inference_mode():
        run(x)
    y = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(run(y).sum(), y)
    (expected,) = torch.autograd.grad(torch.tanh(y * 3 * 0.5 * 2.5).sum(), y)
    assert same(found, expected)


def test_a_profiler_sees_every_call(inputs, runner):
    with torch.profiler.profile() as seen:
        runner(*inputs)
    assert {"aten::addmm", "aten::tanh", "aten::add", "aten::mul"} <= {event.key for event in seen.key_averages()}


def test_one_call_stays_in_python():
    trace = trace_of(lambda x: tanh(x), Tensor((4,)), language=torch_language)
    assert "native" not in str(in_native_code(trace))


def test_an_error_is_pytorchs_own(inputs, runner):
    x, w, b = inputs
    wrong = torch.randn(4, 5)
    assert runner.enter(x, wrong, b) == 0
    with pytest.raises(RuntimeError) as expected:
        in_torch(x, wrong, b)
    with pytest.raises(RuntimeError) as found:
        runner(x, wrong, b)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("leading", [(), (2,)], ids=["matrix", "rows"])
@pytest.mark.parametrize("wide", [0, 1, 2], ids=["input", "weight and bias", "bias"])
def test_products_with_a_bias_of_other_dtypes_are_refused_before_anything_is_written(leading, wide):
    dtypes = [(torch.float64, torch.float32, torch.float32), (torch.float32, torch.float64, torch.float64)]
    dtypes += [(torch.float32, torch.float32, torch.float64)]
    a, w, bias = [torch.randn(s).to(d) for s, d in zip([(*leading, 99, 8), (99, 8), (99,)], dtypes[wide], strict=True)]

    def program(a, w, bias):
        affine = torch.nn.functional.linear(a.sin(), w, bias).cos()
        return affine, torch.addmm(bias, w.sin() if leading else a.sin(), w.t()).cos()

    run = jit(program, executors=[NativeExecutor(smallest_region=1, always=True), "torch"])
    with pytest.raises(RuntimeError) as expected:
        program(a, w, bias)
    for _ in range(3):
        with pytest.raises(RuntimeError) as found:
            run(a, w, bias)
        assert str(found.value) == str(expected.value)


def test_an_error_notes_the_users_line():
    def look(table, index):
        table = torch.tanh(torch.tanh(torch.tanh(table)))
        return torch.nn.functional.embedding(index, table)

    compiled = jit(look, executors=["native"])
    table = torch.randn(4, 3)
    assert torch.equal(compiled(table, torch.tensor([1, 2])), look(table, torch.tensor([1, 2])))
    with pytest.raises(IndexError) as raised:
        compiled(table, torch.tensor([1, 9]))
    (note,) = raised.value.__notes__
    assert "return torch.nn.functional.embedding(index, table)" in note


def allocated():
    """Return how many bytes the process holds of its heap."""
    library = ctypes.CDLL(None)

    class Info(ctypes.Structure):
        _fields_ = tuple((f"field{i}", ctypes.c_size_t) for i in range(10))

    library.mallinfo2.restype = Info
    return library.mallinfo2().field7


@pytest.mark.skipif(sys.platform != "linux", reason="mallinfo2 is of glibc")
@pytest.mark.parametrize("bad", [None, 0, 1, 2], ids=["works", "the input", "the weight", "the bias"])
def test_nothing_is_left_over_when_a_step_fails(inputs, runner, bad):
    wrong = list(inputs)
    if bad is not None:
        wrong[bad] = torch.randn(3, 3) if bad < 2 else torch.randn(7)

    def calls(count):
        for _ in range(count):
            runner.enter(*wrong) if bad is not None else runner(*wrong)

    calls(30)
    gc.collect()
    before = allocated()
    calls(150)
    gc.collect()
    assert allocated() - before < 150 * 64  # what holds a tensor takes more than 64 bytes


@pytest.mark.skipif(sys.platform != "linux", reason="mallinfo2 is of glibc")
def test_nothing_is_left_over_when_a_call_of_the_dispatcher_fails():
    a, b, q = torch.randn(4, 4), torch.randn(4), torch.randn(1, 2, 3, 4)
    recorder = Recorder(a, b, q)
    parts = recorder.call("torch.split", a, (1, 3))
    attention = recorder.call("torch.nn.functional.scaled_dot_product_attention", q, q, q, scale=0.5)
    normal = recorder.call("torch.nn.functional.layer_norm", a, (4,), b, b)
    runner = recorder.runner(*parts, attention, normal)
    wrong = torch.randn(5)

    def calls(count):
        for _ in range(count):
            assert runner.enter(a, wrong, q) == 2

    calls(30)
    before = allocated()
    calls(150)
    assert allocated() - before < 150 * 64


def test_only_what_operators_copy_is_held():
    x, w, b = torch.randn(3, 4), torch.randn(4), torch.randn(4)
    recorder = Recorder(x, w, b)
    normal = recorder.call("torch.nn.functional.layer_norm", x, (4,), w, b)  # by the dispatcher
    added = recorder.call("torch.add", normal, b)
    assert recorder.runner(added).program.held == (0, 1, 2)
    recorder = Recorder(x, w, b)
    assert recorder.runner(recorder.call("torch.add", x, b)).program.held == ()


def test_inputs_stay_their_callers(inputs, runner):
    x, w, b = inputs
    uses = [t._use_count() for t in inputs]
    for given in (inputs, (torch._neg_view(x.clone()), w, b)):
        runner(*given)
        assert [t._use_count() for t in inputs] == uses
    assert runner.enter(x, w, torch.randn(7)) >= 0  # a step fails
    assert [t._use_count() for t in inputs] == uses
    recorder = Recorder(x, w)
    product = recorder.call("torch.matmul", x, w)
    with pytest.raises(CannotExpress, match="its caller owns"):
        recorder.runner(product, x)


def test_other_tensors_are_left_to_python(inputs, runner):
    x, w, b = inputs
    for other in (torch._neg_view(x), x.as_subclass(Other), x.to("meta")):
        assert runner.enter(other, w, b) == -1
    assert runner.enter(x, w) == -1
    results = runner(torch._neg_view(x), w, b)
    assert all(map(torch.equal, results, in_torch(-x, w, b)[::-1]))
    x.requires_grad_()
    found, expected = runner(x, w, b)[1], in_torch(x, w, b)[0]
    assert torch.equal(*[torch.autograd.grad(result.sum(), x)[0] for result in (found, expected)])


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


OBSERVERS = [Dispatched, Functions, forward_ad.dual_level, partial(torch.autocast, "cpu"), torch.profiler.profile]


@pytest.mark.parametrize("observer", OBSERVERS)
def test_whoever_has_to_see_calls_is_noticed(inputs, runner, observer):
    with observer():
        assert runner.enter(*inputs) == -1
    assert runner.enter(*inputs).__class__ is tuple


def test_transforms_of_functions_are_noticed(inputs, runner):
    found = []
    torch.func.vmap(lambda x: found.append(runner.enter(*inputs)) or x)(torch.ones(2))
    assert found == [-1]


def test_recorded_calls_are_noticed(inputs, runner):
    inputs[1].requires_grad_()
    assert runner.enter(*inputs) == -1
    with torch.no_grad():
        assert runner.enter(*inputs).__class__ is tuple


def test_modes_see_every_call(inputs, runner):
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        runner(*inputs)
    assert torch.ops.aten.tanh.default in seen
    with torch.autocast("cpu"):
        assert runner(*inputs)[0].dtype is in_torch(*inputs)[1].dtype


def test_modes_of_functions_see_every_call(inputs, runner):
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        runner(*inputs)
    assert torch.tanh in seen


def test_tangents_are_those_of_eager(inputs, runner):
    x, w, b = inputs
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.randn(4, 4))
        found, expected = runner(dual, w, b)[1], in_torch(dual, w, b)[0]
        assert same(*[forward_ad.unpack_dual(t).tangent for t in (found, expected)])


def test_a_region_that_often_fails_is_left_to_python(inputs):
    runner = runner_of(in_native_code(traced()))
    x, w, b = inputs
    for _ in range(FAILURES):
        assert runner.enter(x, w, b).__class__ is tuple
        with pytest.raises(RuntimeError):
            runner(x, torch.randn(4, 5), b)
    assert runner.enter(x, w, b) == -1
    assert all(map(torch.equal, runner(x, w, b), in_torch(x, w, b)[::-1]))


def test_inference_mode_makes_inference_tensors(inputs, runner):
    with torch.inference_mode():
        for given in (inputs, [t.clone() for t in inputs]):
            assert runner.enter(*given).__class__ is tuple
            results, expected = runner(*given), in_torch(*given)[::-1]
            assert all(t.is_inference() for t in results)
            assert all(map(torch.equal, results, expected))
    inner = [t.clone() for t in given]
    assert runner.enter(*inner).__class__ is tuple
    assert not any(t.is_inference() for t in runner(*inner))


def test_an_input_that_is_returned_is_the_same_object():
    a = torch.randn(3, 3)
    recorder = Recorder(a)
    made = recorder.call("torch.reshape", a, (3, 3))
    (result,) = recorder.runner(made)(a)
    assert (result is a) == (torch.reshape(a, (3, 3)) is a)


def test_views_that_leave_share_versions_with_their_bases():
    a = torch.randn(3, 4)
    recorder = Recorder(a)
    view = recorder.call("torch.permute", a, (1, 0))
    again = recorder.call("torch.unsqueeze", view, 0)
    results = recorder.runner(view, again)(a)
    assert all(t._base is a for t in results)
    a.add_(1)
    assert results[0]._version == a._version == 1


def test_a_view_is_inner_where_no_output_is_a_view_of_it():
    a = torch.randn(2, 6, 4)
    recorder = Recorder(a)
    first, second = recorder.call("torch.split", a, 3, 1)
    turned = recorder.call("torch.transpose", recorder.call("torch.Tensor.view", first, (2, 3, 2, 2)), 1, 2)
    kept = recorder.call("torch.transpose", second, 1, 2)
    region = recorder.region(recorder.call("torch.neg", turned), kept)
    names = [b.output.name for b in region.bound_symbols if b.symbol.name in ("view", "transpose")]
    assert set(names[:2]) < inner_values(region.bound_symbols, region.outputs)
    assert region.bound_symbols[0].outputs[1].name not in inner_values(
        region.bound_symbols, region.outputs
    )  # an output is a view of it
    results = recorder.runner(*[t for _, t in recorder.proxies.values() if t is kept])(a)
    assert results[0]._base is a


def test_threads_and_calls_within_calls_do_not_meet(runner):
    failures = []

    def serve(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(200):
            x, w = (torch.randn(4, 4, generator=generator) for _ in range(2))
            b = torch.randn(4, generator=generator)
            if not all(map(torch.equal, runner(x, w, b), in_torch(x, w, b)[::-1])):
                failures.append(seed)

    threads = [threading.Thread(target=serve, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_python_runs_where_a_function_is_not_exported(monkeypatch):
    monkeypatch.setattr(runtime, "torch_address", lambda name: None)
    runtime.missing.cache_clear()
    try:
        assert "does not export aoti_torch_new_tensor_handle" in runtime.missing()
    finally:
        runtime.missing.cache_clear()


def test_importing_compiles_nothing():
    program = "import sys, thunder_native.runtime as r; sys.exit(r.runtime.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_python_text_is_the_same(inputs):
    for a, b in zip(to_callable(traced(), ["native"])(*inputs), to_callable(traced())(*inputs), strict=True):
        assert same(a, b)


def sizes_computed(x, cache):
    """Reads sizes that differ from call to call: alone, in lists, computed from one another."""
    y = torch.cat([cache, torch.tanh(x)], 0)
    z = torch.relu(y.view(y.shape[0], 2, -1).expand(3, y.shape[0], 2, 3))
    return torch.tanh(z.narrow(1, 1, cache.shape[0] - 1)), z[:, cache.shape[0] :], z.reshape(y.shape[0] * 6, 3)


def test_sizes_are_integers_that_a_region_takes():
    compiled = jit(sizes_computed, executors=["native", "torch"], cache="symbolic values")
    for length in (3, 4, 7, 4, 9):
        inputs = torch.randn(2, 6), torch.randn(length, 6)
        assert all(same(a, b) for a, b in zip(compiled(*inputs), sizes_computed(*inputs), strict=True))
    assert cache_misses(compiled) <= 2
    *_, runner = native_of(compiled)
    numbers = [p for p in runner.region.inputs if not isinstance(p, TensorProxy)]
    assert numbers
    assert all(isinstance(p, IntegerProxy) for p in numbers)
    given = [torch.randn(11, 6) for _ in runner.region.inputs[: -len(numbers)]]
    assert runner.enter(*given, *[1] * len(numbers)) != -1
    assert runner.enter(*given, *[2**64] * len(numbers)) == -1
    assert runner.enter(*given, *[True] * len(numbers)) == -1


def write(cache, place, new, w, b):
    """As a layer with a cache that is allocated beforehand: what is new goes to its place, and the place moves on."""
    at = torch.arange(1) + place
    place.add_(1)
    cache.index_copy_(0, at, new)
    return linear_of(torch.tanh(torch.tanh(torch.tanh(cache))), w, b)


linear_of = torch.nn.functional.linear


def parts():
    return torch.zeros(5, 4), torch.tensor(1), torch.ones(1, 4), torch.randn(4, 4), torch.randn(4)


def test_a_cache_is_written_where_it_is():
    compiled, (cache, place, new, w, b) = jit(write, executors=["native"]), parts()
    expected = [t.clone() for t in (cache, place)]
    for _ in range(3):
        assert same(compiled(cache, place, new, w, b), write(*expected, new, w, b))
        assert all(same(*pair) for pair in zip((cache, place), expected, strict=True))
    symbols = [b.symbol.name for b in last_traces(compiled)[-1].bound_symbols]
    assert symbols == ["native_0", "del", "add", "del"] and cache_misses(compiled) == 1


def test_nothing_is_written_where_there_is_no_such_place():
    compiled, (cache, place, new, w, b) = jit(write, executors=["native"]), parts()
    compiled(cache, place, new, w, b)
    for wrong in (5, -1):
        place.fill_(wrong)
        before = cache.clone(), place.clone()
        with pytest.raises(
            IndexError, match=f"index_copy_.*index {wrong} is out of bounds for dimension 0 with size 5"
        ):
            compiled(cache, place, new, w, b)
        assert all(same(*pair) for pair in zip((cache, place), before, strict=True))


def test_a_region_that_fails_after_it_wrote_is_made_again_in_python():
    compiled, (cache, place, new, w, b) = jit(write, executors=["native"]), parts()
    compiled(cache, place, new, w, b)
    (runner,) = [
        b.symbol.implementation for b in last_traces(compiled)[-1].bound_symbols if b.symbol.name == "native_0"
    ]
    names = [p.name for p in last_traces(compiled)[-1].inputs]
    inputs = dict(zip(names, (cache, place, new, w, b), strict=True))
    given = [inputs[p.name] for p in runner.region.inputs]
    expected = runner(*given)
    assert all(same(*pair) for pair in zip(runner.python(*given), expected, strict=True))
    assert all(same(*pair) for pair in zip(runner(*given), expected, strict=True))


def test_what_was_read_before_it_is_written_keeps_python_in_between():
    def program(cache, at, new):
        before = torch.tanh(torch.tanh(torch.tanh(torch.tanh(cache))))
        cache.index_copy_(0, at, new)
        return torch.tanh(torch.tanh(torch.tanh(torch.tanh(cache)))), before

    compiled, at = jit(program, executors=["native"]), torch.tensor([2])
    caches = torch.ones(5, 4), torch.ones(5, 4)
    results = [f(cache, at, torch.zeros(1, 4)) for f, cache in zip((program, compiled), caches, strict=True)]
    assert all(same(*pair) for pair in zip(*results, strict=True)) and same(*caches)
    names = [b.symbol.name for b in last_traces(compiled)[-1].bound_symbols if b.symbol.name != "del"]
    assert names[-3:] == ["native_0", "index_copy", "native_1"]


def test_an_out_that_is_none_is_no_write():
    compiled, x = (
        jit(lambda x, dim: torch.tensordot(x, x, dim), executors=[NativeExecutor(smallest_region=1)]),
        torch.rand(5, 5),
    )
    for dim in (0, 1, 2, 0):
        assert same(compiled(x, dim), torch.tensordot(x, x, dim))
