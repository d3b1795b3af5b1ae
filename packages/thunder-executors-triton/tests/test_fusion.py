"""Regions as kernels, against PyTorch."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from thunder_frontend import jit, last_backward_traces, last_traces

functional = torch.nn.functional


def compiled(function):
    return jit(function, executors=["triton_fusion", "torch"], fallback="error")


PROGRAMS = {
    "pointwise": lambda x, y: (x * y + 1).tanh() * torch.sigmoid(x),
    "broadcast": lambda x, y: x[:, :1] * y + y.sum(0),
    "transposed": lambda x, y: (x.t().exp() + y.t()) * 2,
    "where": lambda x, y: torch.where(x > y, x, -y).abs().sqrt(),
    "softmax": lambda x, y: torch.softmax(x * y, -1) + x,
    "layer norm": lambda x, y: functional.layer_norm(x + y, (x.shape[-1],)) * y,
    "rms norm": lambda x, y: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * y,
    "two sums": lambda x, y: (x.sum() * y, (x * y).sum(-1)),
    "greatest": lambda x, y: (x * y).amax(-1) + (x + y).argmax(-1),
    "gelu": lambda x, y: functional.gelu(x, approximate="tanh") * functional.gelu(y),
    "integers": lambda x, y: ((x > 0).to(torch.int64) * 3 + (y > 0).to(torch.int64)) & 2,
    "half": lambda x, y: (x.to(torch.bfloat16) * y.to(torch.bfloat16) + 1).float() * 2,
    "integers as half": lambda x, y: (
        (x > 0).to(torch.bfloat16) + (y * 2).to(torch.int64).to(torch.bfloat16) / 8
    ).float(),
    "join": lambda x, y: torch.cat([x * 2, y + 1], 1).exp(),
    "gather": lambda x, y: (x * 2)[torch.arange(x.shape[0], device=x.device) % 2] + y,
}


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (2, 1100)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_what_eager_gives(name, shape, device):
    function = PROGRAMS[name]
    x, y = torch.randn(shape, device=device), torch.randn(shape, device=device)
    found, expected = compiled(function)(x, y), function(x, y)
    # Triton's interpreter cuts off what does not fit into bfloat16, where a GPU rounds
    tolerance = {"rtol": 2e-2, "atol": 0.1} if name == "half" else {"rtol": 1e-5, "atol": 1e-5}
    assert_close(found, expected, **tolerance)
    flat = [(found, expected)] if isinstance(found, torch.Tensor) else zip(found, expected, strict=True)
    assert all(a.stride() == b.stride() for a, b in flat)


TALL = {
    "columns added up": lambda x, y: (x * y).sum(0),
    "columns and rows": lambda x, y: ((x * y).sum(0), (x * y).sum(-1)),
    "columns normalised": lambda x, y: (x - (x * y).mean(0, True)) * torch.rsqrt((x * x).mean(0, True) + 1),
    "softmax of columns": lambda x, y: torch.softmax(x * y, 0) + x,
    "greatest of columns": lambda x, y: ((x * y).amax(0), (x + y).amin(0), (x + y).argmax(0)),
    "few elements of many points": lambda x, y: (x * y).view(x.shape[0] // 2, 2, -1).sum(1) * 2,
    "softmax of rows": lambda x, y: torch.softmax(x * y, -1) + x,
    "logarithm of sums of rows": lambda x, y: torch.logsumexp(x + y, -1),
}


@pytest.mark.parametrize("shape", [(100, 33), (34, 5), (2, 200)], ids=str)
@pytest.mark.parametrize("name", TALL)
def test_elements_that_no_tile_holds_are_walked(name, shape, device, monkeypatch):
    from thunder_executors_triton.fusion import tiles

    monkeypatch.setattr(tiles, "LONGEST", 128)
    monkeypatch.setattr(tiles, "WALKED", 64)
    monkeypatch.setattr(tiles, "BUSY", 1)
    function = TALL[name]
    x, y = torch.randn(shape, device=device), torch.randn(shape, device=device)
    x[shape[0] // 2, 3] = float("nan") if "greatest" in name else 1.0
    run = compiled(function)
    for _ in range(2):  # the second time as planned
        assert_close(run(x, y), function(x, y), rtol=1e-4, atol=1e-4, equal_nan=True)
    assert "triton_fusion" in str(last_traces(run)[-1])


def test_each_size_and_layout_has_a_plan_of_its_own(device):
    run = jit(lambda x: (x * 2).exp().sum(0), executors=["triton_fusion", "torch"], cache="symbolic values")
    wide = torch.randn(50, 80, device=device)
    for x in (wide[:, :40], wide[:40, 1:41], wide[:, :40].T, wide[:3], wide[:0], wide[:, :40]):
        assert_close(run(x), (x * 2).exp().sum(0))


@pytest.mark.parametrize("name", ["pointwise", "softmax", "layer norm", "rms norm", "gelu"])
def test_gradients_are_eagers(name, device):
    function = PROGRAMS[name]
    inputs = [torch.randn(3, 6, device=device) for _ in range(2)]
    mine, truth = ([t.clone().requires_grad_() for t in inputs] for _ in range(2))
    run = compiled(function)
    dy = torch.randn(3, 6, device=device)
    found = torch.autograd.grad(run(*mine), mine, dy)
    assert_close(found, torch.autograd.grad(function(*truth), truth, dy), rtol=1e-4, atol=1e-5)
    assert "triton_fusion" in str(last_traces(run)[-1]) + str(last_backward_traces(run)[-1])


def test_a_region_may_have_no_inputs(device):
    def function(n):
        return (torch.arange(n, device=device) * 2 + 1).float().exp(), torch.full((n, 3), 2.0, device=device).tanh() + 1

    run = compiled(function)
    assert_close(run(4), function(4))
    assert "triton_fusion_0()" in str(last_traces(run)[-1])


def test_a_nan_wins_every_comparison(device):
    x = torch.tensor([[1.0, float("nan"), 3.0], [4.0, 2.0, 9.0]], device=device)
    function = lambda x: (torch.maximum(x, x * 2).amax(-1), (x * 2).argmax(-1), torch.minimum(x, -x))  # noqa: E731
    assert_close(compiled(function)(x), function(x), equal_nan=True)


def indexed(x, at):
    return (x * 2).exp()[at] + x[at] * 3


@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (40, 3)], ids=str)
def test_places_that_indices_tell_are_read_in_kernels(shape, device):
    x = torch.randn(shape, device=device)
    at = torch.randint(-shape[0], shape[0], (3000,), device=device)
    run = compiled(indexed)
    assert_close(run(x, at), indexed(x, at))
    assert "triton_fusion" in str(last_traces(run)[-1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there it is an assertion of the device, which ends the process")
@pytest.mark.parametrize("wrong", [7, -8], ids=str)
def test_an_index_out_of_bounds_raises_as_in_eager(wrong):
    x, at = torch.randn(7, 5), torch.tensor([0, wrong, 3])
    with pytest.raises(IndexError, match="out of"):
        indexed(x, at)
    with pytest.raises(IndexError, match="out of"):
        compiled(indexed)(x, at)


def test_the_kernel_is_text_that_can_be_read():
    from thunder_executors_triton.fusion.render import render
    from thunder_ir import Tensor, trace_of
    from thunder_loops import lower
    from thunder_prims import exp, mul

    kernel = render(lower(trace_of(lambda a, b: mul(exp(a), b), Tensor((2, 3)), Tensor((2, 3)))), 0)
    assert "v2 = tl.exp(v0)" in kernel.text or "tl.exp(" in kernel.text
    assert kernel.text.startswith("@triton.jit\ndef program_0(a0, a0_s0, a0_s1, a1, a1_s0, a1_s1, out0,")


def test_kernels_that_differ_by_name_only_are_compiled_once():
    from thunder_executors_triton.fusion.render import render
    from thunder_executors_triton.fusion.runner import function_of
    from thunder_ir import Tensor, trace_of
    from thunder_loops import lower
    from thunder_prims import exp, mul

    def kernel(name, shape):
        program = lower(trace_of(lambda a: mul(exp(a), a), Tensor(shape)))
        return render(replace(program, name=name), 0)

    first, second, third = kernel("one", (2, 3)), kernel("two", (2, 3)), kernel("three", (2, 4))
    assert function_of(first)[1] is function_of(second)[1]
    assert function_of(first)[0] != function_of(third)[0]


class Counted:
    """Stands for Triton's function: what it is launched with, and what it compiled to."""

    def __init__(self):
        self.compiled, self.repeated = [], []

    def __getitem__(self, grid):
        again = {grid: lambda *given: self.repeated.append(given)}
        return lambda *given, **options: self.compiled.append(given) or again


@pytest.mark.parametrize("number, repeats", [(None, True), (3, False)])
def test_what_the_first_launch_compiled_is_launched_again(number, repeats, monkeypatch):
    from thunder_executors_triton.fusion import runner
    from thunder_executors_triton.fusion.render import Kernel
    from thunder_executors_triton.fusion.tiles import tile_of

    counted = Counted()
    monkeypatch.setattr(runner, "function_of", lambda kernel, looped: ("name", counted))
    kernel = Kernel("kernel", "", "", ("a", "n"), (), (), (), across=False)
    launch = runner.Launch(kernel, tile_of(kernel, 5, 1), ["a", 1, "n", 5, False], 5)
    tensor = torch.ones(5)
    n = torch.ones(5) if number is None else number
    for _ in range(2):
        launch({"a": tensor, "n": n})
    assert len(counted.compiled) == (1 if repeats else 2) and len(counted.repeated) == repeats
    assert all(given[:2] == (tensor, 1) and given[3:] == (5, False, 1024) for given in counted.repeated)


def test_cumulative_sums_are_left_to_others():
    from thunder_executors_triton.fusion.render import render
    from thunder_ir import Tensor, trace_of
    from thunder_loops import CannotLower, lower
    from thunder_prims import cumsum

    with pytest.raises(CannotLower, match="scan_sum"):
        render(lower(trace_of(lambda a: cumsum(a, 1), Tensor((2, 3)))), 0)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (2, 1, 3, 2, 600)], ids=str)
def test_each_point_of_many_axes_is_computed_once(shape, device):
    x = torch.randn(shape, device=device)
    across = torch.randn(shape[::-1], device=device).permute(*reversed(range(len(shape))))

    def function(x, y):
        return (x * y).relu(), (x + y) - (x * y).sum((0, 1), keepdim=True), (x * 2).amax((0, -1))

    run = compiled(function)
    assert_close(run(x, across), function(x, across))
    assert "triton_fusion" in str(last_traces(run)[-1])


def test_what_a_region_makes_is_on_the_device(device):
    scores, target = torch.randn(4, 7, device=device, requires_grad=True), torch.tensor([1, 6, -100, 0], device=device)
    truth = scores.detach().clone().requires_grad_()
    run = compiled(lambda s: functional.cross_entropy(s, target) * 2)
    run(scores).backward()
    (functional.cross_entropy(truth, target) * 2).backward()
    assert_close(scores.grad, truth.grad)
    assert "triton_fusion" in str(last_backward_traces(run)[-1])


UNARY = [torch.exp, torch.sin, torch.abs, torch.neg, torch.sigmoid, torch.tanh, torch.relu, lambda a: a * a]
BINARY = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda a, b: torch.where(a > b, a, b)]
ROWS = [
    lambda a: torch.softmax(a, -1), lambda a: a - a.mean(-1, keepdim=True), lambda a: a.sum(-1, keepdim=True) * 0.1 + a,
    lambda a: a.amax(-1, keepdim=True) - a, lambda a: a - a.mean((0, -1), keepdim=True), lambda a: a.sum(0) * 0.1 + a,
]  # fmt: skip
SHAPES = [(1, 1), (3, 7), (2, 130), (5, 1), (2, 3, 5), (4, 1, 3), (2, 3, 4, 5), (2, 3, 1, 2, 3)]


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 7), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=7
    ),
    st.sampled_from(SHAPES),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_random_programs_are_what_eager_gives(steps, shape, transposed, seed):
    def function(x, y):
        values = [x, y]
        for kind, operation, left, right in steps:
            a, b = values[left % len(values)], values[right % len(values)]
            if kind == 0:
                values.append(UNARY[operation % len(UNARY)](a.clamp(-3, 3)))
            elif kind == 1:
                values.append(BINARY[operation % len(BINARY)](a, b))
            else:
                values.append(ROWS[operation % len(ROWS)](a))
        return values[-1], values[-2]

    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(shape[::-1] if transposed else shape, generator=generator) for _ in range(2))
    if transposed:
        x, y = (t.permute(*reversed(range(t.ndim))) for t in (x, y))
    if torch.cuda.is_available():
        x, y = x.cuda(), y.cuda()
    assert_close(compiled(function)(x, y), function(x, y), rtol=2e-4, atol=2e-4)
