"""Programs that became native code by themselves, in surroundings that see or change what PyTorch does."""

import copy
import multiprocessing
import threading

import pytest
import torch
from regions import many, same
from torch import nn
from torch.autograd import forward_ad

from thunder_frontend import jit, last_traces
from thunder_native.executor import HOT
from thunder_native.runtime import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")


def is_native(compiled):
    return any(b.symbol.module == "native" for b in last_traces(compiled)[-1].bound_symbols)


@pytest.fixture
def inputs():
    return torch.randn(4, 4), torch.randn(4, 4)


@pytest.fixture
def compiled(inputs):
    made = jit(many)
    for _ in range(HOT + 1):
        made(*inputs)
    assert is_native(made)
    return made


class Plus(torch.Tensor):
    """A tensor whose functions are PyTorch's, by way of Python."""

    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_is_asked(compiled, inputs):
    found = compiled(inputs[0].as_subclass(Plus), inputs[1])
    assert torch.tanh in Plus.seen and torch.equal(found.as_subclass(torch.Tensor), many(*inputs))


def test_tangents(compiled, inputs):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(inputs[0], torch.ones(4, 4))
        tangents = [forward_ad.unpack_dual(f(dual, inputs[1])).tangent for f in (compiled, many)]
    torch.testing.assert_close(*tangents)


def test_autocast(compiled, inputs):
    with torch.autocast("cpu"):
        for _ in range(HOT + 2):
            found, expected = compiled(*inputs), many(*inputs)
            assert found.dtype == expected.dtype
            torch.testing.assert_close(found, expected)


def test_a_profiler_sees_each_call(compiled, inputs):
    with torch.profiler.profile() as seen:
        compiled(*inputs)
    counts = {event.key: event.count for event in seen.key_averages()}
    assert counts["aten::tanh"] == counts["aten::mm"] == counts["aten::add"] == 8


def test_deterministic_algorithms(compiled, inputs):
    torch.use_deterministic_algorithms(True)
    try:
        assert same(compiled(*inputs), many(*inputs))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_modes_of_gradients(inputs, mode):
    compiled = jit(many)
    for _ in range(HOT + 2):
        with mode():
            found, expected = compiled(*inputs), many(*inputs)
            assert same(found, expected) and found.is_inference() == expected.is_inference()
    assert is_native(compiled)


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_devices(device):
    compiled = jit(many)
    x, w = torch.empty(4, 4, device=device).fill_(0.5), torch.empty(4, 4, device=device).fill_(0.25)
    for _ in range(HOT + 2):
        found, expected = compiled(x, w), many(x, w)
        assert found.device == expected.device and found.shape == expected.shape
        assert device == "meta" or same(found, expected)


def test_hooks_within_backward_call_it_again(inputs):
    compiled, calls = jit(many), []

    def hook(gradient):
        calls.append(compiled(gradient.detach(), inputs[1]))
        return calls[-1]

    for _ in range(HOT + 2):
        x, y = (inputs[0].clone().requires_grad_() for _ in range(2))
        calls.clear()
        x.register_hook(hook)
        compiled(x, inputs[1]).sum().backward()
        (expected,) = torch.autograd.grad(many(y, inputs[1]).sum(), y)
        torch.testing.assert_close(x.grad, many(expected, inputs[1]))
        assert len(calls) == 1


def both(x, w):
    y = many(x, w)
    return y.sum(), torch.sin(y)


def test_gradients_of_some_results_and_second_ones(inputs):
    compiled, (a, w) = jit(both), [t.double() for t in inputs]  # in float32 eager itself is far off for some
    for step in range(HOT + 3):
        x, y = (a.clone().requires_grad_() for _ in range(2))
        found, expected = compiled(x, w)[step % 2], both(y, w)[step % 2]
        first = [torch.autograd.grad(r.sum(), t, create_graph=True)[0] for r, t in ((found, x), (expected, y))]
        torch.testing.assert_close(*first)
        torch.testing.assert_close(
            *[torch.autograd.grad(g.sin().sum(), t)[0] for g, t in zip(first, (x, y), strict=True)]
        )


def test_copies_begin_anew(inputs):
    compiled = jit(nn.Sequential(*[nn.Linear(4, 4) for _ in range(20)]))
    for _ in range(HOT + 1):
        expected = compiled(inputs[0])
    again = copy.deepcopy(compiled)
    for _ in range(HOT + 2):
        torch.testing.assert_close(again(inputs[0]), expected)


def test_threads_share_it_while_it_is_made(inputs):
    compiled, wrong = jit(many), []
    compiled(*inputs)
    expected = many(*inputs)

    def serve():
        for _ in range(50):
            if not same(compiled(*inputs), expected):
                wrong.append(True)

    threads = [threading.Thread(target=serve) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and is_native(compiled)


def in_child(compiled, inputs, queue):
    queue.put(compiled(*inputs).tolist())


def test_a_forked_process_goes_on(compiled, inputs):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(compiled, inputs, queue))
    child.start()
    found = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0 and torch.equal(torch.tensor(found), many(*inputs))
