"""Fused kernels that native code calls itself: what the Python text gives, to the bit, wherever tensors lie."""

import gc
import sys
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from regions import same
from test_running import allocated, native_of

from thunder_frontend import jit, last_backward_traces
from thunder_native import NativeExecutor
from thunder_native.runner import FAILURES, RENEWALS, Runner
from thunder_native.runtime import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")


def both(function, **options):
    """Return a function with kernels and native code, and with kernels alone."""
    return (
        jit(function, executors=["llvm", NativeExecutor(smallest_region=1), "torch"], **options),
        jit(function, executors=["llvm", "torch"], **options),
    )


def without_python(runner):
    """Let every call fail that Python would make."""
    for call in runner.program.elsewhere:
        call.run = None
    return runner


def blocks(x, w, v):
    for _ in range(4):
        x = torch.tanh(torch.tanh(x @ w) * 2 + x) - v
    return x


@pytest.fixture
def inputs():
    return torch.randn(5, 6), torch.randn(6, 6), torch.randn(6)


@pytest.fixture
def compiled(inputs):
    made, _ = both(blocks)
    for _ in range(3):
        made(*inputs)
    return made


def runner_of(compiled):
    (runner,) = native_of(compiled)
    return runner


def given_to(runner, inputs):
    """Return what a region takes of a program's inputs."""
    return [inputs[int(p.name[1:])] for p in runner.region.inputs]


def test_kernels_between_products_become_steps(inputs, compiled):
    runner = without_python(runner_of(compiled))
    assert [b.symbol.module for b in runner.region.bound_symbols] == ["torch", "llvm"] * 4
    assert runner.renewals == 1 and len(runner.program.elsewhere) == 4
    assert runner.enter(*given_to(runner, inputs)).__class__ is tuple
    assert same(compiled(*inputs), both(blocks)[1](*inputs)) and runner.failures == 0


def norms(x, w, v):
    for _ in range(3):
        y = x @ w
        x = (y - y.mean(1, keepdim=True)) * torch.rsqrt(y.var(1, keepdim=True, unbiased=False) + 1e-5) + v
        x = x / x.abs().amax(0)
    return x, x.sum(), x.argmax(1), x > 0


def choices(x, w, v):
    i = (x @ w).argmax(1)
    rows = torch.nn.functional.embedding(i, w) + torch.nn.functional.embedding(i, w).exp()
    y = rows @ w
    loss = F.cross_entropy(y * 2, i)
    return loss, torch.where(y > 0, y, v) @ w, (y * 2).to(torch.int32)


def joined(x, w, v):
    for _ in range(3):
        y = x @ w
        x = torch.cat([y.exp(), (y - v).neg()], 1)[:, ::2] * 2
    return x.mT, x.reshape(-1), x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("program", [blocks, norms, choices, joined])
@pytest.mark.parametrize("size", [1, 6, 70])
def test_it_is_the_python_text_to_the_bit(program, dtype, size):
    compiled, text = both(program)
    for call in range(4):
        inputs = [t.to(dtype) for t in (torch.randn(3, size), torch.randn(size, size) / size, torch.randn(size))]
        mode = torch.inference_mode if call == 3 else torch.no_grad
        with mode():
            found, expected = compiled(*inputs), text(*inputs)
        pairs = list(zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True))
        assert all(same(*pair) and pair[0].is_inference() == pair[1].is_inference() for pair in pairs)
    runners = [runner for runner in native_of(compiled) if runner.program.elsewhere]
    assert (runners or size == 1) and all(runner.failures == 0 for runner in runners)


@pytest.mark.parametrize("program", [blocks, norms, choices, joined])
def test_gradients_are_the_python_texts_to_the_bit(program):
    compiled, text = both(program)
    for _ in range(4):
        inputs = torch.randn(5, 6), torch.randn(6, 6), torch.randn(6)
        gradients = []
        for function in (compiled, text):
            given = [t.clone().requires_grad_() for t in inputs]
            results = function(*given)
            results = results if isinstance(results, tuple) else (results,)
            total = sum([r.sum() for r in results if r.requires_grad])
            gradients.append(torch.autograd.grad(total, given, allow_unused=True))
        assert all(a is b is None or same(a, b) for a, b in zip(*gradients, strict=True))
    runs = [b.symbol.implementation for t in last_backward_traces(compiled) for b in t.bound_symbols]
    assert program is not blocks or any(isinstance(r, Runner) and r.program.elsewhere for r in runs)


def ways_to_lie():
    base = torch.randn(12, 12)
    return (
        base[:5, :6], base.mT[3:8, :6], base[::2, ::2][:5, :6], base[:1, :6].expand(5, 6), base[:5, :1].expand(5, 6),
        torch.randn(6, 5).mT, torch.randn(31)[1:].view(5, 6),
    )  # fmt: skip


def test_tensors_that_lie_otherwise_than_before_are_python_s_until_they_come_again(inputs):
    compiled, text = both(lambda x, w, v: torch.tanh(torch.tanh(x * 2 + v) @ w) @ w + torch.tanh(x))
    _, w, v = inputs
    for _ in range(3):
        for x in ways_to_lie():
            assert same(compiled(x, w, v), text(x, w, v))
    (runner,) = native_of(compiled)
    assert 1 <= runner.renewals <= RENEWALS and runner.failures == 0


def test_negated_and_conjugate_tensors_from_within_are_python_s():
    def program(x, w):
        y = torch.conj(x @ w).imag
        return torch.tanh(y * 2 + y), torch.view_as_real(x @ w) * 3

    compiled, text = both(program)
    for _ in range(4):
        inputs = torch.randn(4, 4, dtype=torch.complex64), torch.randn(4, 4, dtype=torch.complex64)
        assert all(same(*pair) for pair in zip(compiled(*inputs), text(*inputs), strict=True))


def test_sizes_that_are_open():
    def program(x, w, n):
        for _ in range(3):
            x = torch.tanh(torch.tanh(x @ w) * n + x.shape[0])
        return x.sum(0), x

    compiled, text = both(program, cache="symbolic values")
    for size in (3, 4, 7, 4, 3, 9, 70, 9):
        inputs = torch.randn(size, 6), torch.randn(6, 6), size
        assert all(same(*pair) for pair in zip(compiled(*inputs), text(*inputs), strict=True))


def test_no_elements():
    compiled, text = both(lambda x, w: (torch.tanh((x @ w) * 2).sum(0) @ w, torch.tanh(x @ w) * 2))
    for size in (0, 3, 0, 0):
        x, w = torch.randn(size, 6), torch.randn(6, 6)
        assert all(same(*pair) for pair in zip(compiled(x, w), text(x, w), strict=True))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_tensors_are_shared_out_to_threads(threads):
    compiled, text = both(lambda x, w: torch.softmax(torch.tanh(x @ w) * 2 + x, 0) @ w)
    x, w = torch.randn(3000, 64), torch.randn(64, 64)
    had = torch.get_num_threads()
    expected = text(x, w)
    torch.set_num_threads(threads)
    try:
        assert all(same(compiled(x, w), expected) for _ in range(4))
    finally:
        torch.set_num_threads(had)


def look(i, table, w):
    for _ in range(2):
        table = torch.tanh(table @ w)
    return (F.embedding(i, table) * 2 + 1) @ w


def test_an_index_that_leads_out_raises_what_eager_raises():
    compiled, text = both(look)
    table, w, i = torch.randn(5, 6), torch.randn(6, 6), torch.tensor([1, 4])
    for _ in range(3):
        torch.testing.assert_close(compiled(i, table, w), look(i, table, w))
    for _ in range(FAILURES + 1):
        with pytest.raises(IndexError) as expected:
            look(i + 1, table, w)
        with pytest.raises(IndexError) as found:
            compiled(i + 1, table, w)
        assert str(found.value) == str(expected.value)
        with pytest.raises(IndexError) as in_text:
            text(i + 1, table, w)
        assert getattr(found.value, "__notes__", []) == getattr(in_text.value, "__notes__", [])
    torch.testing.assert_close(compiled(i, table, w), look(i, table, w))


class Stops:
    """In place of kernels: raises an error."""

    def __init__(self, error):
        self.error = error
        self.prepared = {}

    def __call__(self, *inputs):
        raise self.error(2)


HOWS = [None, "in Python", RuntimeError, KeyboardInterrupt]


@pytest.mark.skipif(sys.platform != "linux", reason="mallinfo2 is of glibc")
@pytest.mark.parametrize("how", HOWS)
def test_nothing_is_left_over(inputs, compiled, how):
    runner = runner_of(compiled)
    given = given_to(runner, inputs)
    if how is not None:
        given = [torch.randn(5, 7 + HOWS.index(how))[:, :6] if t.shape == (5, 6) else t for t in given]
    runner.renewals = RENEWALS  # tensors that lie otherwise stay Python's
    if isinstance(how, type):
        runner.program.elsewhere[0].run = Stops(how)

    def calls(count):
        for _ in range(count):
            if how is KeyboardInterrupt:
                with pytest.raises(KeyboardInterrupt):
                    runner.enter(*given)
            elif how is RuntimeError:
                assert runner.enter(*given) == 1
            else:
                assert runner.enter(*given).__class__ is tuple

    calls(30)
    gc.collect()
    before = allocated()
    calls(150)
    gc.collect()
    assert allocated() - before < 150 * 64


def test_threads_find_it_while_layouts_come_and_go(inputs):
    compiled, text = both(blocks)
    _, w, v = inputs
    cases = [(x, text(x, w, v)) for x in ways_to_lie()]
    wrong, begin = [], threading.Barrier(6)

    def serve(number):
        begin.wait()
        for turn in range(60):
            x, expected = cases[(turn + number) % len(cases)]
            if not same(compiled(x, w, v), expected):
                wrong.append(number)

    threads = [threading.Thread(target=serve, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_code_that_is_made_again_goes_when_nobody_runs_it(inputs):
    compiled, _ = both(blocks)
    for _ in range(3):
        compiled(*inputs)
    gone = weakref.ref(runner_of(compiled))
    del compiled
    gc.collect()
    assert gone() is None
