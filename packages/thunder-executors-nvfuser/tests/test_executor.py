"""Regions as fusions, computed by a stand-in for nvFuser that holds each call to its signature."""

import random
import subprocess
import sys
from importlib import import_module

import pytest
import torch
from torch.testing import assert_close

import thunder_executors_nvfuser as package
import thunder_prims as prims
from thunder_executors import Library, get_executor, to_callable
from thunder_executors_nvfuser import (
    NvFuserExecutor,
    Settings,
    availability,
    fusions,
    fusions_of,
    get_fusion_source,
    get_nvfuser_fusion_definition,
    get_nvfuser_repro,
)
from thunder_executors_nvfuser.definition import Layout
from thunder_frontend import jit, last_backward_traces, last_traces
from thunder_ir import Tensor, dtypes, trace_of

from .stand_in import MODULE

functional = torch.nn.functional
DEVICE = "cpu"


ON_A_GPU = pytest.param(
    "device",
    marks=[pytest.mark.gpu, pytest.mark.skipif(package.missing() is not None, reason=f"{package.missing()}")],
)


HERE = pytest.param(
    "defined",
    marks=pytest.mark.skipif(package.availability.NVFUSER.missing() is not None, reason="nvFuser is not installed"),
)


class Defining(fusions.Library):
    """A stand-in that runs what nvFuser itself has defined, too: it needs no GPU for that."""

    def _define(self, text):
        real = import_module("nvfuser_direct")
        with real.FusionDefinition() as fd:
            exec(compile(text, "<thunder nvfuser>", "exec"), {"fd": fd, "DataType": real.DataType})
        return super()._define(text)


@pytest.fixture(params=["stand-in", HERE, ON_A_GPU])
def library(request, monkeypatch):
    """The library: a stand-in on the CPU or, where there is one, itself on a GPU, which is the default device then."""
    here = request.param != "device"
    made = (Defining if request.param == "defined" else fusions.Library)(lambda: MODULE)
    if not here:
        monkeypatch.setattr(made, "_load", lambda: import_module("nvfuser_direct"))
    monkeypatch.setattr(fusions, "LIBRARY", made)
    monkeypatch.setattr(sys.modules[__name__], "DEVICE", "cpu" if here else "cuda")
    with torch.device(DEVICE):
        yield made


def compiled(function, **options):
    executor = NvFuserExecutor("nvfuser_test", Settings(random=options.pop("random", False)), devices=(DEVICE,))
    return jit(function, executors=[executor, "torch"], fallback="error", **options)


PROGRAMS = {
    "pointwise": lambda x, y: (x * y + 1).tanh() * torch.sigmoid(x) / (y.abs() + 2) - 3,
    "broadcast": lambda x, y: x[:, :1] * y + y.sum(0),
    "transposed": lambda x, y: (x.t().exp() + y.t()) * 2,
    "where": lambda x, y: torch.where(x > y, x, -y).abs().sqrt().clamp(0.5, 1.25),
    "softmax": lambda x, y: torch.softmax(x * y, -1) + x,
    "layer norm": lambda x, y: functional.layer_norm(x + y, (x.shape[-1],)) * y,
    "rms norm": lambda x, y: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * y,
    "two sums": lambda x, y: (x.sum() * y, (x * y).sum(-1)),
    "greatest": lambda x, y: (x * y).amax(-1) + (x + y).amin(-1) + x.var(-1),
    "gelu": lambda x, y: functional.gelu(x, approximate="tanh") * functional.gelu(y),
    "integers": lambda x, y: ((x > 0).to(torch.int64) * 3 + (y > 0).to(torch.int64)) & 2,
    "narrow integers": lambda x, y: ((x > 0).to(torch.int32) * 3 + (y > 0).to(torch.int32)) * 2,
    "half": lambda x, y: (x.to(torch.bfloat16) * y.to(torch.bfloat16) + 1).sum(-1) * 2,
    "join": lambda x, y: torch.cat([x * 2, y + 1], 1).exp().reshape(-1) * 2,
    "pad": lambda x, y: functional.pad(x * 2, (1, 2, 0, 1), value=-1.0).exp() * 2,
    "powers": lambda x, y: (x.abs() + 1) ** y + torch.remainder(x, 0.7) + torch.atan2(x, y),
    "pad of integers": lambda x, y: (
        functional.pad((x > 0) | (y > 0), (1, 0)).long() + functional.pad((x * 2).int(), (1, 0))
    ),
    "pad with an integer": lambda x, y: functional.pad(x * 2, (1, 1), value=3) + 1,
    "booleans": lambda x, y: (
        ((x > 0) | True) & torch.where(x > 0, y > 0, True) & torch.where(y > 0, (x > y) | (x < 0), False)
    ),
    "bounds": lambda x, y: torch.where(x > 0, float("-inf"), x * 2).exp() + y,
}


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (2, 0)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_what_eager_gives(name, shape, library):
    if shape[1] == 0 and name == "greatest":
        shape = (0, 2)
    function = PROGRAMS[name]
    x, y = torch.randn(shape), torch.randn(shape)
    run = compiled(function)
    found, expected = run(x, y), function(x, y)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if name == "half" else {"rtol": 1e-5, "atol": 1e-5}
    assert_close(found, expected, **tolerance)
    flat = [(found, expected)] if isinstance(found, torch.Tensor) else zip(found, expected, strict=True)
    assert all(a.stride() == b.stride() for a, b in flat)
    assert fusions_of(last_traces(run)[-1])
    assert library.made > 0 or 0 in shape


LAID_OUT = {
    "transposed": lambda x: x.transpose(0, 2),
    "permuted": lambda x: x.permute(1, 2, 0),
    "cut": lambda x: x.permute(2, 0, 1)[:, 1:, ::2],
    "expanded": lambda x: x[:, :1].expand(-1, 4, -1),
    "expanded first": lambda x: x[None, 0, :, :1].expand(5, -1, 2),
    "of one element": lambda x: x[:1, :1].transpose(0, 2),
    "one number": lambda x: x[0, 0, 0].expand(2, 3, 4),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_inputs_may_lie_in_memory_in_any_way(name, library):
    def function(x, y):
        return (x * 2 + y).exp() + x.sum(0)

    x = LAID_OUT[name](torch.randn(3, 4, 5))
    run = compiled(function)
    found, expected = run(x, x * 0.5), function(x, x * 0.5)
    assert_close(found, expected)
    assert found.stride() == expected.stride() and library.made > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["pointwise", "softmax", "layer norm", "rms norm", "gelu", "transposed"])
def test_gradients_are_eagers(name, dtype, library):
    function = PROGRAMS[name]
    inputs = [torch.randn(3, 6).to(dtype) for _ in range(2)]
    mine = [t.clone().requires_grad_() for t in inputs]
    truth = [t.double().requires_grad_() for t in inputs]
    run = compiled(function)
    y, expected = run(*mine), function(*truth)
    dy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(expected, truth, dy.double())
    tolerance = {"rtol": 6e-2, "atol": 8e-2} if dtype is torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
    assert_close(tuple(t.double() for t in (y, *found)), (expected.detach(), *wanted), **tolerance)
    assert fusions_of(last_traces(run)[-1]) and fusions_of(last_backward_traces(run)[-1])


def test_products_are_taken_where_they_are_asked_for(library):
    def function(x, w):
        return torch.nn.functional.linear(x, w).relu() @ w

    x, w = torch.randn(3, 4), torch.randn(5, 4)
    for options in ({}, {"nv_enable_linear": True}, {"nv_enable_matmul": True}):
        before = library.texts()
        run = compiled(function, **options)
        assert_close(run(x, w), function(x, w))
        added = "".join(library.texts()[len(before) :])
        assert ("fd.ops.linear" in added) is ("nv_enable_linear" in options)
        assert ("fd.ops.matmul" in added) is ("nv_enable_matmul" in options)


def test_regions_that_only_move_elements_are_taken_where_they_are_asked_for(library):
    def function(x, y):
        return torch.cat([x, y], 1).reshape(-1)

    x, y = torch.randn(3, 4), torch.randn(3, 5)
    for options in ({}, {"nv_enable_shape_only_fusion": True}):
        run = compiled(function, **options)
        assert_close(run(x, y), function(x, y))
        assert bool(fusions_of(last_traces(run)[-1])) is bool(options)


def test_options_of_the_library_are_given_with_each_call_and_have_code_of_their_own(library):
    x = torch.randn(4)
    for options in ({}, {"nv_enable_options": ["fast_math"], "nv_disable_options": ["fma"]}):
        run = compiled(lambda x: (x * 2).exp() + 1, **options)
        assert_close(run(x), (x * 2).exp() + 1)
    assert library.made == 2 and len(set(library.texts())) == 1


@pytest.mark.parametrize("library", ["stand-in"], indirect=True)
def test_its_definition_can_be_had_by_the_peers_names(library):
    run = compiled(lambda x: (x * 2).exp() + 1, nv_enable_options=["fast_math"])
    x = torch.randn(4)
    run(x)
    trace = last_traces(run)[-1]
    (name,) = fusions_of(trace)
    definition = get_nvfuser_fusion_definition(trace, name)
    assert definition is next(iter(library._defined.values())).fusion
    (call,) = [c for c in definition.calls.calls if c.name == "execute"]
    assert call.arguments["_enable_options"] == ["fast_math"] and call.arguments["_disable_options"] == []
    assert "fd.execute(inputs, _enable_options=['fast_math'])" in get_nvfuser_repro(trace, name)
    assert_close(definition.execute([x])[0], (x * 2).exp() + 1)


def test_open_sizes_are_symbols_of_one_definition(library):
    def function(x, y):
        return torch.softmax(x, -1) * 2 + y.exp()

    run = compiled(function, cache="symbolic values")
    for rows in (2, 3, 7, 1, 0):
        x, y = torch.randn(rows, 4), torch.randn(4)
        assert_close(run(x, y), function(x, y))
    texts = library.texts()
    assert any("shape=[-1, 4]" in text and "fd.ops.size(T0, 0)" in text for text in texts)
    assert len([t for t in texts if "shape=[-1, 4]" in t]) == 1


def test_equal_regions_share_a_definition(library):
    def block(x):
        return torch.softmax(x * 2 + 1, -1)

    run = compiled(lambda x, w: block(block(x) @ w) @ w)
    run(torch.randn(4, 4), torch.randn(4, 4))
    assert len(fusions_of(last_traces(run)[-1])) == 2 and library.made == 1


@pytest.mark.parametrize("library", ["stand-in"], indirect=True)
def test_its_source_can_be_read_and_saved_as_a_program(library, tmp_path):
    run = compiled(lambda x, y: (x.t() * y).exp())
    x, y = torch.randn(3, 2), torch.randn(2, 3)
    run(x, y)
    trace = last_traces(run)[-1]
    (name,) = fusions_of(trace)
    source = get_fusion_source(trace, name)
    assert source.splitlines()[-2:] == ["T3 = fd.ops.exp(T2)", "fd.add_output(T3)"] or "stride_order" in source
    assert "contiguity=[True, True]" in source and "fd.ops.permute(T0, [1, 0])" in source
    with pytest.raises(KeyError, match=f"no fusion 'nvfuser_9'; it calls {name}"):
        get_fusion_source(trace, "nvfuser_9")
    (path,) = fusions_of(trace)[name].save_reproducer(tmp_path)
    program = path.read_text().replace("device='cuda'", "device='cpu'")
    modules = {"nvfuser_direct": MODULE}
    scope = {}
    before = dict(sys.modules)
    sys.modules.update(modules)
    try:
        exec(compile(program, str(path), "exec"), scope)
    finally:
        sys.modules.clear()
        sys.modules.update(before)
    (out,) = scope["fd"].execute(scope["inputs"])
    assert out.shape == (2, 3)


AT = [2, 0, 2]
INDEXED = {
    "select": lambda x, at: torch.index_select(x * 2, 1, at).exp() + 1,
    "embedding": lambda x, at: functional.embedding(at.repeat(2, 2), x).tanh() * 2,
    "negative": lambda x, at: (x * 2)[at - 3].exp(),
    "gather": lambda x, at: (x * 2).gather(1, at.expand(3, 3)).exp() + 1,
    "along an axis": lambda x, at: torch.take_along_dim(x * 2, at.repeat(2)[:4].reshape(4, 1), 1).exp() + 1,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", INDEXED)
def test_places_that_indices_tell_are_read_in_fusions(name, dtype, library):
    x, at = torch.randn(4, 5).to(dtype), torch.tensor(AT)
    run = compiled(INDEXED[name])
    assert_close(run(x, at), INDEXED[name](x, at), rtol=2e-2, atol=2e-2)
    assert any("index_select" in t or "gather" in t or "take_along_axis" in t for t in library.texts())
    mine, truth = x.clone().requires_grad_(), x.clone().requires_grad_()
    run(mine, at).sum().backward()
    INDEXED[name](truth, at).sum().backward()
    assert_close(mine.grad, truth.grad, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("library", ["stand-in"], indirect=True)  # on a device it is an assertion that ends the process
@pytest.mark.parametrize("wrong", [4, -5])
def test_an_index_out_of_bounds_raises_as_in_eager(wrong, library):
    run = compiled(lambda x, i: (x * 2)[i].exp() + 1)
    x = torch.randn(4, 5)
    assert_close(run(x, torch.tensor(AT)), (x * 2)[AT].exp() + 1)
    with pytest.raises(IndexError, match="out of"):
        run(x, torch.tensor([0, wrong, 1]))


def test_random_numbers_are_drawn_where_they_are_asked_for(library):
    def function(x):
        return (x + torch.rand_like(x)) * 2 + torch.randn(x.shape) * 0.1

    x = torch.zeros(50, 40)
    run = compiled(function, random=True)
    torch.manual_seed(5)
    first = run(x)
    torch.manual_seed(5)
    assert_close(run(x), first)
    assert not torch.equal(run(x), first)
    assert 0.95 < first.mean() < 1.05 and first.std() < 0.7
    (text,) = library.texts()
    assert "fd.ops.uniform(0.0, 1.0, [50, 40], dtype=DataType.Float)" in text and "fd.ops.normal(0.0, 1.0" in text
    compiled(function)(x)
    assert "uniform" not in library.texts()[-1] or len(library.texts()) == 1


@pytest.mark.parametrize("held", [False, True], ids=["number", "tensor"])
def test_numbers_are_drawn_by_a_seed_and_an_offset(held, library):
    def program(x, *state):
        seed, offset = state or (5, 8)
        drawn = prims.uniform_philox((50, 40), 0.0, 2.0, dtypes.float32, x.device, seed, offset)
        return prims.add(prims.exp(x), drawn)

    shapes = [Tensor((50, 40), device=DEVICE), *[Tensor((), "int64", device=DEVICE)] * (2 if held else 0)]
    executor = NvFuserExecutor("nvfuser_test", Settings(random=True), devices=(DEVICE,))
    run = to_callable(trace_of(program, *shapes), [executor, "torch"])
    given = [torch.zeros(50, 40), *[torch.tensor(n) for n in (5, 8) if held]]
    first = run(*given)
    assert_close(run(*given), first)
    assert 1.9 < first.mean() < 2.1
    text = "".join(library.texts())
    assert ("rng_seed=T" in text and "fd.define_scalar(5, dtype=DataType.Int)" in text) is not held


def test_readers_of_one_value_are_one_fusion(library):
    def function(x, y):
        return x.exp() * 2, (x + 1).tanh(), torch.softmax(x, -1), x.sum(0) * y

    x, y = torch.randn(6, 5), torch.randn(5)
    run = compiled(function)
    assert_close(run(x, y), function(x, y))
    (fusion,) = fusions_of(last_traces(run)[-1]).values()
    assert len(fusion.region.outputs) == 4


def test_a_fusion_is_entered_by_one_thread_at_a_time(library):
    run = compiled(lambda x: (x * 2).exp() + 1)
    x = torch.randn(4)
    run(x)
    (defined,) = library._defined.values()
    held = []
    execute = defined.fusion.execute

    def watched(inputs):
        held.append(defined.lock.locked())
        return execute(inputs)

    defined.fusion.execute = watched
    run(x)
    assert held == [True] and not defined.lock.locked()


LEFT = {
    "double slicing": lambda x: (x[::2] * 2)[:, ::2] + 1,
    "complex": lambda x: torch.complex(x, x) * 2 + 1,
    "bytes": lambda x: x.to(torch.uint8) + 1,
    "random": lambda x: torch.zeros_like(torch.rand_like(x)) * 2 + 1,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_it_declines_is_left_to_others(name, library):
    x = torch.rand(4, 4) * 9
    assert_close(compiled(LEFT[name])(x), LEFT[name](x))


def test_it_is_found_by_its_entry_point_and_says_why_it_cannot_run(monkeypatch):
    assert get_executor("nvfuser") is package.executor
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(availability, "NVFUSER", Library("torch", "nvFuser"))
    assert package.missing() == "PyTorch sees no CUDA device"
    monkeypatch.setattr(availability, "NVFUSER", Library("no_nvfuser", "nvFuser"))
    assert package.missing() == "nvFuser is not installed"


def test_importing_it_imports_no_library():
    program = "import sys, thunder_executors_nvfuser; sys.exit('nvfuser_direct' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_results_have_memory_of_their_own(library):
    def function(x, y):
        z = x * 2
        return (
            z.sum().expand(3, 4).clone(),
            y[::1].clone(),
            (y + 0).t().clone(),
            z.exp().sum(0, keepdim=True).expand(3, 4) * 1,
        )

    x, y = torch.randn(3, 4), torch.randn(4, 3)
    run = compiled(function, nv_enable_shape_only_fusion=True)
    for _ in range(2):
        found, expected = run(x, y), function(x, y)
        assert_close(found, expected)
        assert [t.stride() for t in found] == [t.stride() for t in expected]
        for t in found:
            t.fill_(7.0)
        assert not (y == 7).any()


@pytest.mark.parametrize("library", ["stand-in"], indirect=True)
def test_results_of_another_shape_are_pytorchs(library, monkeypatch):
    run = compiled(lambda x: (x * 2).exp() + 1)
    x = torch.randn(4)
    execute = fusions.Defined.execute
    monkeypatch.setattr(fusions.Defined, "execute", lambda *given: [t[:2] for t in execute(*given)])
    with pytest.warns(RuntimeWarning, match="its results are of another shape"):
        assert_close(run(x), (x * 2).exp() + 1)
    assert_close(run(x), (x * 2).exp() + 1)


@pytest.mark.parametrize("library", ["stand-in"], indirect=True)
@pytest.mark.parametrize("where", ["definition", "execution"])
def test_what_nvfuser_refuses_is_run_by_pytorch_and_said_once(where, library, monkeypatch):
    run = compiled(lambda x: (x * 2).exp() + 1)
    x = torch.randn(4)
    calls = []

    def refuse(*args, **kwargs):
        calls.append(args)
        raise RuntimeError(" INTERNAL ASSERT FAILED at /x/Fuser/csrc/y.cpp:3, axes differ\nException raised from z")

    monkeypatch.setattr(*(library, "_define") if where == "definition" else (fusions.Defined, "execute"), refuse)
    with pytest.warns(RuntimeWarning, match="PyTorch runs it: INTERNAL ASSERT FAILED at .*, axes differ \\(a program"):
        assert_close(run(x), (x * 2).exp() + 1)
    assert_close(run(x), (x * 2).exp() + 1)
    assert len(calls) == 1


@pytest.mark.parametrize("library", ["stand-in"], indirect=True)
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("INTERNAL ASSERT FAILED at /x/Fuser/csrc/y.cpp:3, CUDA error: CUDA_ERROR_LAUNCH_FAILED"),
    ],
    ids=["memory", "device"],
)
def test_errors_of_others_are_raised(error, library, monkeypatch):
    run = compiled(lambda x: (x * 2).exp() + 1)

    def fails(*args, **kwargs):
        raise error

    monkeypatch.setattr(fusions.Defined, "execute", fails)
    with pytest.raises(type(error), match=str(error)):
        run(torch.randn(4))


def test_layouts_are_those_that_nvfuser_finds():
    library = pytest.importorskip("nvfuser_direct", reason="nvFuser is not installed", exc_type=ImportError)
    draw = random.Random(0)
    for _ in range(500):
        shape = [draw.choice([1, 2, 3]) for _ in range(draw.randint(1, 4))]
        strides, step = [0] * len(shape), 1
        for dim in draw.sample(range(len(shape)), len(shape)):
            strides[dim] = 0 if draw.random() < 0.2 else step
            step *= shape[dim] * draw.choice([1, 1, 2])
        contiguity, order = library.compute_tensor_descriptor(shape, strides)
        assert Layout.of(shape, strides) == Layout(tuple(contiguity), tuple(order))
