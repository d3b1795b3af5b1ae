"""What autograd notes of calls in native code: views and writes that somebody can see, as when Python makes them."""

import pytest
import torch
from regions import Recorder, same
from torch import nn

import thunder_native.kernels
from thunder_frontend import jit
from thunder_native import NativeExecutor
from thunder_native.runtime import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")

KEYS = torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView


def passed_over():
    return [torch._C._dispatch_tls_is_dispatch_key_excluded(key) for key in KEYS]


def around(call):
    """Return what a call makes, the keys that were passed over before it, and those after it."""
    before = passed_over()
    made = call()
    return made, before, passed_over()


SURROUNDINGS = {
    "nothing": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "below autograd": torch._C._AutoDispatchBelowAutograd,
    "below all of it": torch._C._AutoDispatchBelowADInplaceOrView,
}


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
def test_a_thread_passes_over_autograd_afterwards_what_it_passed_over_before(surrounding):
    recorder = Recorder(a := torch.randn(3, 4))
    made = [recorder.call("torch.tanh", a)]
    made.append(recorder.call("torch.Tensor.view", made[0], 12))
    made.append(recorder.call("torch.mm", a, recorder.call("torch.t", a)))
    runner = recorder.runner(*made)
    with SURROUNDINGS[surrounding]():
        found, before, after = around(lambda: runner(a))
        assert before == after and all([torch.equal(*pair) for pair in zip(found, made, strict=True)])
        failed, before, after = around(lambda: runner.enter(a[:, :2]))
        assert before == after and failed.__class__ is int and failed > 0
        refused, before, after = around(lambda: runner.enter(nn.Buffer(a)[None].to("meta")))
        assert before == after and refused == -1


def test_kernels_of_autograd_are_not_called_where_nobody_could_tell():
    recorder = Recorder(a := torch.randn(3))
    runner = recorder.runner(recorder.call("torch.tanh", recorder.call("torch.sin", a)))
    called = []

    def noticed(keys, x):
        called.append(keys)
        with torch._C._AutoDispatchBelowADInplaceOrView():
            return torch.ops.aten.sin(x)

    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("sin", noticed, "AutogradCPU", with_keyset=True)
        torch.sin(a)
        assert len(called) == 1
        assert same(runner(a)[0], a.sin().tanh()) and len(called) == 2  # by the second line alone


COMPOSITE = [
    ("torch.matmul", (torch.randn(2, 3, 4), torch.randn(4))),
    ("torch.matmul", (torch.randn(2, 3, 4), torch.randn(4, 5))),
    ("torch.matmul", (torch.randn(4), torch.randn(4, 5))),
    ("torch.nn.functional.linear", (torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5))),
    ("torch.nn.functional.scaled_dot_product_attention", (torch.randn(1, 2, 3, 4),) * 3),
    ("torch.nn.functional.layer_norm", (torch.randn(3, 4), (4,))),
    ("torch.Tensor.to", (torch.randn(3), torch.float64)),
    ("torch.Tensor.contiguous", (torch.randn(3, 4).t(),)),
    ("torch.reshape", (torch.randn(3, 4).t(), (2, 6))),
    ("torch.flatten", (torch.randn(3, 4),)),
]


@pytest.mark.parametrize("path, args", COMPOSITE)
def test_results_are_views_where_eagers_are(path, args):
    distinct = list({id(a): a for a in args if isinstance(a, torch.Tensor)}.values())
    recorder = Recorder(*distinct)
    made = recorder.call(path, *args)
    last = recorder.call("torch.neg", made)
    found = recorder.runner(made, last)(*distinct)
    assert same(found[0], made) and same(found[1], last)


def test_a_write_is_counted_though_nobody_sees_what_it_returns():
    place, rows, index = torch.zeros(4, 3), torch.ones(1, 3), torch.tensor([2])
    recorder = Recorder(place, rows, index)
    written = recorder.call("torch.index_copy", place, 0, index, rows, out=place)
    summed = recorder.call("torch.sum", recorder.call("torch.neg", written))
    place.zero_()
    before = place._version
    assert same(recorder.runner(summed)(place, rows, index)[0], summed)
    assert place._version == before + 1 and place[2].sum() == 3


def test_python_that_makes_a_call_of_kernels_finds_autograd_as_it_was(monkeypatch):
    def program(x, w):
        for _ in range(3):
            x = torch.tanh(torch.tanh(x @ w) * 2 + x)
        return x

    compiled = jit(program, executors=["llvm", NativeExecutor(smallest_region=1), "torch"])
    found, run = [], thunder_native.kernels.Elsewhere.__call__

    def watching(self, tensors, numbers):
        found.append(passed_over())
        return run(self, tensors, numbers)

    monkeypatch.setattr(thunder_native.kernels.Elsewhere, "__call__", watching)
    inputs = torch.randn(5, 6), torch.randn(6, 6)
    with torch.no_grad():
        compiled(*inputs)
    assert len(found) == 3 and found == [passed_over()] * 3


def computed_apart(x, w, y):
    first = torch.relu((x @ w).view(-1, 2, 2).mul(2).view(-1, 4))
    return torch.tanh((first @ w).view(-1, 2, 2)).view(-1, 4) + first


def of_another_input(x, w, y):
    return y + torch.relu((x @ w).tanh())


@pytest.mark.parametrize("program", [computed_apart, of_another_input])
def test_open_sizes_of_a_gradient_and_of_what_it_goes_through_are_equal_without_being_one(program):
    compiled = jit(program, executors=["native", "torch"], cache="symbolic values")
    w = torch.randn(4, 4, requires_grad=True)
    for length in (3, 5, 7, 3, 8):
        x, y = torch.randn(length, 4, requires_grad=True), torch.randn(length, 4)
        expected = torch.autograd.grad(program(x, w, y).sin().sum(), (x, w))
        torch.testing.assert_close(torch.autograd.grad(compiled(x, w, y).sin().sum(), (x, w)), expected)
