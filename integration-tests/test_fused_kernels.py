"""Functions of PyTorch in kernels compiled by LLVM, with their gradients, are as near to the truth as eager's."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import thunder
from thunder_autograd import forward_and_backward
from thunder_executors import cost_in_regions, resolve_executors, transform_for_execution
from thunder_executors_llvm import LlvmExecutor, executor
from thunder_ir import trace_of
from thunder_torch import proxy_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")


def outcome(function, tensors, cast):
    """Return the result of a function and the gradients of its floating-point inputs, in float64."""
    leaves = [t.to(cast).requires_grad_() if t.is_floating_point() else t for t in tensors]
    y = function(*leaves)
    gradients = torch.autograd.grad(y.sum(), [t for t in leaves if t.requires_grad])
    return [t.detach().double() for t in (y, *gradients)]


def check(function, *tensors, dtype=torch.float32):
    """Compare a function in kernels with eager, both with what it is in float64."""
    compiled = thunder.jit(function, executors=["llvm"])
    found = [outcome(f, tensors, cast) for f, cast in ((compiled, dtype), (function, dtype), (function, torch.float64))]
    for trace in (thunder.last_traces(compiled)[-1], thunder.last_backward_traces(compiled)[-1]):
        assert any([b.symbol.executor is executor for b in trace.bound_symbols])
    for have, other, true in zip(*found, strict=True):
        slack = 4 * torch.finfo(dtype).eps * true.abs().max().item()
        assert (have - true).abs().max() <= (other - true).abs().max() + slack


@pytest.mark.parametrize(
    ("shape", "reduction", "weighted", "dtype"),
    [
        ((1, 1), "sum", False, torch.float32),
        ((3, 5), "none", True, torch.float64),
        ((7, 1000), "mean", True, torch.float32),
        ((2, 32000), "mean", False, torch.float32),
        ((5, 6, 4), "mean", True, torch.float32),
    ],
    ids=str,
)
def test_cross_entropy(shape, reduction, weighted, dtype):
    torch.manual_seed(0)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    if target.numel() > 2:
        target.view(-1)[1] = -100
    weight = torch.rand(shape[1], dtype=dtype) if weighted else None

    def loss(x, target):
        return F.cross_entropy(x * 0.5, target, None if weight is None else weight.to(x.dtype), reduction=reduction)

    check(loss, torch.randn(shape, dtype=dtype) * 5, target, dtype=dtype)


@pytest.mark.parametrize("shape", [(64, 5), (3, 7, 40), (2, 4, 9, 8)], ids=str)
@pytest.mark.parametrize("of_batch", [True, False])
def test_batch_norm(shape, of_batch):
    torch.manual_seed(0)
    channels = shape[1]
    statistics = None if of_batch else (torch.randn(channels), torch.rand(channels) + 0.5)

    def normal(x, weight, bias):
        mean, variance = (None, None) if statistics is None else [s.to(x.dtype) for s in statistics]
        return torch.tanh(F.batch_norm(torch.sin(x), mean, variance, weight, bias, of_batch))

    check(normal, torch.randn(shape) * 3, torch.rand(channels), torch.randn(channels))


def test_gradients_of_batch_norm_take_two_sums():
    compiled = thunder.jit(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), executors=["llvm"])
    tensors = [torch.randn(8, 6, 30), torch.rand(6), torch.randn(6)]
    outcome(compiled, tensors, torch.float32)
    kernels = [b for b in thunder.last_backward_traces(compiled)[-1].bound_symbols if b.symbol.executor is executor]
    assert [b.symbol.name for kernel in kernels for b in kernel.subsymbols].count("sum") == 2
    saved = [p.name for p in thunder.last_backward_traces(compiled)[0].inputs]
    assert thunder.last_traces(compiled)[-1].inputs[0].name in saved  # the input, as PyTorch does


def test_cross_entropy_of_symbolic_sizes_takes_a_kernel_each_way():
    """Logits and targets are inputs of their own, with sizes that only constraints make equal."""
    torch.manual_seed(0)

    def loss(x, target):
        return F.cross_entropy(x.view(-1, 1000), target.view(-1))

    compiled = thunder.jit(loss, executors=["llvm"])
    for length in (5, 9, 16):
        x, target = torch.randn(4, length, 1000), torch.randint(0, 1000, (4, length))
        target[1, 2] = -100
        found = [outcome(f, (x, target), torch.float32) for f in (compiled, loss)]
        for have, expected in zip(*found, strict=True):
            torch.testing.assert_close(have, expected, rtol=1e-5, atol=1e-7)
    assert thunder.cache_misses(compiled) == 2
    for trace in (thunder.last_traces(compiled)[-1], thunder.last_backward_traces(compiled)[-1]):
        names = [b.symbol.name for b in trace.bound_symbols]
        assert len([b for b in trace.bound_symbols if b.symbol.executor is executor]) == 1
        assert "full" not in names and "scatter_add" not in names


@pytest.mark.parametrize("executors", [None, ["+llvm", "+native"]], ids=["default", "fused"])
@pytest.mark.parametrize(
    ("loss", "classes"),
    [
        (F.cross_entropy, 5),
        (lambda x, t: F.nll_loss(F.log_softmax(x, 1), t), 5),
        (lambda x, t: F.cross_entropy(x.view(-1, 4000), t.view(-1)), 4000),
        (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), 5),
    ],
    ids=["cross_entropy", "nll_loss", "many", "smooth"],
)
def test_losses_refuse_as_many_targets_as_there_are_no_rows(loss, classes, executors):
    compiled = thunder.jit(loss, executors=executors)
    x, targets = torch.randn(8, classes), torch.randint(0, classes, (8,))
    for rows in (8, 6, 5):
        torch.testing.assert_close(compiled(x[:rows], targets[:rows]), loss(x[:rows], targets[:rows]))
    for rows, count in ((8, 7), (7, 8)):
        with pytest.raises(ValueError, match=f"input batch_size .{rows}. to match target batch_size .{count}."):
            compiled(x[:rows], targets[:count])


def test_autocast_around_backward_casts_nothing_that_kernels_read():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    )
    compiled = thunder.jit(model, executors=["llvm"])
    x = torch.randn(32, 16, requires_grad=True)
    expected = torch.autograd.grad(model(x).tanh().sum(), [x, *model.parameters()])
    y = compiled(x).tanh().sum()
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(y, [x, *model.parameters()])
        assert torch.is_autocast_enabled("cpu")
    torch.testing.assert_close(found, expected)


def test_layer_norm_refuses_the_dtypes_that_eager_refuses():
    model = torch.nn.LayerNorm(6)
    x = torch.randn(300, 6, dtype=torch.float64)
    with pytest.raises(RuntimeError) as theirs:
        model(x).tanh()
    with pytest.raises(RuntimeError) as ours:
        thunder.jit(lambda x: model(x).tanh(), executors=["llvm"])(x)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
def test_open_sizes_that_are_computed_keep_apart_in_kernels(cache):
    shift = torch.randn(6, requires_grad=True)

    def flattened(x):
        x = (x + shift).reshape(-1)[: x.numel()].view(-1, 6)
        return torch.tanh(x) / x.shape[0]

    compiled = thunder.jit(flattened, executors=["llvm"], cache=cache)
    for rows in (4, 3, 50):
        x = torch.randn(rows, 6, requires_grad=True)
        y, z = compiled(x), flattened(x)
        torch.testing.assert_close(y, z)
        torch.testing.assert_close(*[torch.autograd.grad(o.square().sum(), [x, shift]) for o in (y, z)])


@pytest.mark.parametrize("function", [F.log_softmax, F.rms_norm, F.layer_norm])
def test_results_are_contiguous_where_those_of_pytorchs_kernels_are(function):
    def flat(x):
        along = -1 if function is F.log_softmax else (x.shape[0],)
        return function(x.t() * 2, along).view(-1) * 3

    compiled = thunder.jit(flat, executors=["llvm"], fallback="error")
    for columns in (40, 30, 20):
        x = torch.randn(60, columns, requires_grad=True)
        found, expected = compiled(x), flat(x)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            *[torch.autograd.grad(y.square().mean(), x)[0] for y in (found, expected)], rtol=1e-3, atol=1e-5
        )
    assert thunder.cache_misses(compiled) == 2


def test_large_tensors_of_open_sizes_are_in_kernels_by_default():
    def chain(x):
        return (torch.tanh(x * 2 + 1) * torch.sigmoid(x) + x).relu()

    compiled = thunder.jit(chain)
    for rows in (300, 400, 7):
        x = torch.randn(rows, 512)
        torch.testing.assert_close(compiled(x), chain(x))
    assert thunder.cache_misses(compiled) == 2
    assert any([isinstance(b.symbol.executor, LlvmExecutor) for b in thunder.last_traces(compiled)[-1].bound_symbols])


def adam(weight, gradient, first, second):
    """Update three tensors in place."""
    first.lerp_(gradient, 0.1)
    second.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
    weight.mul_(0.999).addcdiv_(first, second.sqrt().add_(1e-8), value=-0.001)


def turned(x, y):
    """Write what is read from another place."""
    x.copy_(x.t() * 2 + y)


def normalised(x, y):
    """Write what depends on the whole row."""
    x.copy_(torch.softmax(x * 2, -1) + y)


def read_after(x, y):
    """Write a tensor, and return what it was."""
    before = x * 2 + y
    x.mul_(3).add_(y)
    return before


def swapped(x, y):
    """Write each of two tensors from both."""
    a, b = x * 2 + y, y * 3 + x
    x.copy_(a)
    y.copy_(b)


LAYOUTS = {
    "rows": lambda t: t,
    "columns": lambda t: t.t().contiguous().t(),
    "every second": lambda t: torch.repeat_interleave(t, 2, 1)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", [adam, turned, normalised, read_after, swapped], ids=lambda f: f.__name__)
def test_what_is_written_to_inputs_is_what_eager_writes(function, layout):
    torch.manual_seed(0)
    given = [torch.rand(40, 40) for _ in range(4 if function is adam else 2)]
    expected = [LAYOUTS[layout](t.clone()) for t in given]
    got = [LAYOUTS[layout](t.clone()) for t in given]
    compiled = thunder.jit(function, executors=["llvm"])

    for _ in range(2):
        wanted, result = function(*expected), compiled(*got)
        versions = [t._version for t in got]
        if wanted is not None:
            torch.testing.assert_close(result, wanted)
    torch.testing.assert_close(got, expected)
    compiled(*got)
    assert [t._version > v for t, v in zip(got, versions, strict=True)] == [t._version > 0 for t in expected]


def test_an_optimizer_step_makes_no_tensor():
    tensors = [torch.rand(64, 64) for _ in range(4)]
    compiled = thunder.jit(adam, executors=["llvm"])
    compiled(*tensors)
    with torch.profiler.profile(profile_memory=True) as profile:
        compiled(*tensors)
    assert not [event for event in profile.events() if event.name == "aten::empty_strided"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.25, 0.7])
def test_dropout_in_kernels_draws_and_rounds_as_eager_does(p, dtype):
    x = torch.randn(300, 200, dtype=dtype, requires_grad=True)
    compiled = thunder.jit(lambda x: F.dropout(x, p) * x, executors=["llvm"])
    outcomes = []
    for function in (compiled, lambda x: F.dropout(x, p) * x):
        torch.manual_seed(1)
        y = function(x)
        outcomes.append((y.detach(), *torch.autograd.grad(y.sum(), x), torch.rand(2)))
    for have, wanted in zip(*outcomes, strict=True):
        assert torch.equal(have, wanted)


def parts_of_one(x):
    y = x * 2 + 1
    return y[:1], y[1:].view(y[1:].shape), y.reshape(y.shape), y.detach()


def rows_of_one(x):
    y = torch.cat([x.view(-1), x.view(-1)]) * 2
    return y[:3].view(3), y[3:].view(-1, 3), y[0]


def halves_in_another_order(x):
    return ((x + 1) * 2).t().chunk(2, 1)


@pytest.mark.parametrize("function", [parts_of_one, rows_of_one, halves_in_another_order])
def test_results_that_view_one_tensor_share_its_memory(function):
    x = torch.randn(4, 3)
    expected, found = function(x), thunder.jit(function, executors=["llvm"])(x)
    assert len({y.untyped_storage().data_ptr() for y in found}) == 1
    for have, wanted in zip(found, expected, strict=True):
        assert (have.stride(), have.storage_offset()) == (wanted.stride(), wanted.storage_offset())
        torch.testing.assert_close(have, wanted)
    found[0].zero_()
    expected[0].zero_()
    torch.testing.assert_close(found, expected)


def test_backward_kernels_compute_again_what_is_cheap():
    def block(x, r, w, b):
        return F.layer_norm(F.dropout(x * x, 0.1) + r * r, (256,), w, b)

    compiled = thunder.jit(block, executors=["llvm"])
    given = [torch.randn(256, 256, requires_grad=True) for _ in range(2)]
    given += [torch.randn(256, requires_grad=True) for _ in range(2)]
    y = compiled(*given)
    saved = thunder.last_traces(compiled)[-1].output[1]

    own = [p for p in saved if p.name not in {i.name for i in thunder.last_traces(compiled)[-1].inputs}]
    assert sum([p.numel * p.dtype.bytes for p in own]) <= 256 * 256 + 2 * 4 * 256  # the mask, and two numbers per row
    y.sum().backward()


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: (y := (x * w).exp()) / y.amax(-1, keepdim=True),
        lambda x, w: (y := (x * w).exp()) * (y >= y.topk(3)[0][..., -1:]),
        lambda x, w: (x * w).exp().logsumexp(-1),
        lambda x, w: (y := (x * w).exp()) - y.max(),
    ],
    ids=["greatest", "threshold", "logsumexp", "greatest of all"],
)
def test_kernels_that_round_otherwise_than_the_forward_program_find_what_is_equal(program):
    torch.manual_seed(0)
    check_kernels_behind_eager_operators(program, *[torch.randn(64, 40, requires_grad=True) for _ in range(2)])


def test_kernels_that_round_otherwise_than_the_forward_program_index_the_same():
    def program(x, w):
        return w.take_along_dim((x * x).log().exp().sqrt().long(), 1) * x  # integers, as far as nothing is rounded

    x = (torch.arange(64 * 40) % 40 + 1.0).view(64, 40).requires_grad_()
    check_kernels_behind_eager_operators(program, x, torch.randn(64, 50, requires_grad=True))


def check_kernels_behind_eager_operators(program, x, w):
    """Compare the gradients of two tensors with eager's, where kernels compute again what PyTorch's operators did."""
    trace = trace_of(program, proxy_of(x), proxy_of(w), language=torch_language)
    expected = torch.autograd.grad(program(x, w).sum(), (x, w))
    for partition in ("min-cut", "fused"):
        made = forward_and_backward(trace, in_regions=cost_in_regions([executor]), partition=partition)
        forward = transform_for_execution(made.forward, resolve_executors(["torch"])).python_callable()
        backward = transform_for_execution(made.backward, resolve_executors(["llvm", "torch"])).python_callable()
        with torch.no_grad():
            y, saved = forward(x, w)
            found = backward(*saved, torch.ones_like(y))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_large_tensors_are_in_kernels_where_nobody_names_executors():
    def gated(x, y):
        return torch.relu(x + y) * y

    compiled = thunder.jit(gated)
    for side in (256, 8):
        x = torch.randn(side, side)
        assert torch.equal(compiled(x, x), gated(x, x))
        calls = thunder.last_traces(compiled)[-1].bound_symbols
        fused = [b for b in calls if isinstance(b.symbol.executor, LlvmExecutor)]
        assert bool(fused) == (side == 256)


PROGRAM = """
import sys, thunder, torch
from thunder_executors import get_executor
compiled = thunder.jit(lambda x: torch.relu(x * 2) + 1)
compiled(torch.ones(8))
assert "llvmlite" not in sys.modules, "a small program loaded it"
compiled(torch.ones(512, 512))
assert ("llvmlite" in sys.modules) == (get_executor("llvm").missing() is None)
"""


def test_llvmlite_loads_when_something_is_compiled():
    nothing_on_disk = {**os.environ, "THUNDER_LLVM_CACHE": ""}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120, env=nothing_on_disk)


def test_sizes_that_are_open_are_scanned_too():
    fn = thunder.jit(lambda a: (a * 2).cumsum(0).exp(), executors=["llvm"], cache="symbolic values")
    for size in (3, 17, 1, 40, 0):
        x = torch.linspace(-1, 0, size)
        torch.testing.assert_close(fn(x), (x * 2).cumsum(0).exp())


@pytest.mark.parametrize("dim", [0, 1])
def test_cumulative_sums_and_their_gradients_are_in_kernels(dim):
    weight = torch.linspace(-1, 2, 40)
    check(lambda a: a.sigmoid().cumsum(dim) * weight.to(a.dtype), torch.linspace(-3, 3, 240).view(6, 40))


ZEROS = {
    "relu": torch.relu,
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, 0, 1),
    "clamp": lambda x: x.clamp(0, 1),
    "clamp from above": lambda x: x.clamp(-1, 0),
    "sum of one": lambda x: x.view(-1, 1).sum(1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ZEROS)
def test_the_signs_of_zeros_are_those_of_eager(name, dtype):
    def function(x):
        return ZEROS[name](x) * 2

    x = torch.tensor([-0.0, 0.0, -1.5, 1.5, float("nan"), -0.0, float("-inf")], dtype=dtype).repeat(9)
    compiled = thunder.jit(function, executors=["llvm"])
    leaves = [x.clone().requires_grad_() for _ in range(2)]
    found, expected = (f(leaf) for f, leaf in zip((compiled, function), leaves, strict=True))
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(found[~found.isnan()].signbit(), expected[~expected.isnan()].signbit())
    gradients = [
        torch.autograd.grad(y, leaf, torch.ones_like(y))[0] for y, leaf in zip((found, expected), leaves, strict=True)
    ]
    numbers = ~x.isnan()  # where eager's vectors differ from the elements behind them
    torch.testing.assert_close(*[g[numbers] for g in gradients], rtol=0, atol=0)
    assert any([b.symbol.executor is executor for b in thunder.last_traces(compiled)[-1].bound_symbols])


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
@pytest.mark.parametrize("window", [(2,), (3, 2, 1)], ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 17, 20), (3, 17, 20)], ids=str)
def test_pooling_with_what_is_around_it(pool, window, shape):
    torch.manual_seed(0)

    check(lambda x: torch.tanh(pool(torch.tanh(x), *window)), torch.randn(shape))


def test_pooling_under_vmap():
    def loss(x, w):
        return F.max_pool2d(torch.tanh(x * w), 2, ceil_mode=True).square().sum()

    function = torch.func.vmap(torch.func.grad(loss), (0, None))
    x, w = torch.randn(3, 2, 9, 11), torch.randn(2, 9, 11)
    compiled = thunder.jit(function, executors=["llvm"])

    torch.testing.assert_close(compiled(x, w), function(x, w))
    assert any([b.symbol.executor is executor for b in thunder.last_traces(compiled)[-1].bound_symbols])
