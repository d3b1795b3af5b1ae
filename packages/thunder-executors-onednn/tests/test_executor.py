"""Products by oneDNN in compiled functions, next to float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

import thunder_executors_onednn as package
from thunder_executors import get_executor, resolve_executors
from thunder_executors_onednn import availability, executor, is_faster_here, missing
from thunder_frontend import jit, last_backward_traces, last_traces

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"oneDNN cannot be asked: {missing()}")
OFF = 32 * torch.finfo(torch.float32).eps
"""Of the sum of the magnitudes of what is added up: twice what both libraries were measured to be off by."""


def near(result, exact, magnitude):
    assert result.dtype is torch.float32
    assert result.shape == exact.shape
    assert bool(((result.double() - exact).abs() <= OFF * magnitude + 1e-30).all())


def laid_out(rows, columns, layout):
    """A matrix of random numbers that lies in memory in one of several ways."""
    if layout == "rows":
        return torch.randn(rows, columns)
    if layout == "columns":
        return torch.randn(columns, rows).t()
    if layout == "part":
        return torch.randn(rows + 3, columns + 5)[2 : rows + 2, 1 : columns + 1]
    if layout == "every other":
        return torch.randn(rows, 2 * columns)[:, ::2]
    return torch.randn(rows, 1).expand(rows, columns)


SIZE = st.integers(1, 70)
LAYOUT = st.sampled_from(["rows", "columns", "part", "every other", "spread"])


@pytest.mark.parametrize("layout", ["rows", "columns", "part", "every other", "spread"])
def test_matrices_are_handed_over_row_by_row_or_column_by_column(layout):
    """oneDNN walks over others element by element, in a thousand times the time."""
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if "_linear_pointwise" in str(function):
                seen.append((tuple(args[1].shape), args[1].stride()))
            return function(*args, **(kwargs or {}))

    x, w = torch.randn(8, 24), laid_out(24, 16, layout)
    with Watch():
        package.products.matmul(x, w)
        package.products.linear(x, w.t())
    assert len(seen) == 2
    assert all(strides in ((shape[1], 1), (1, shape[0])) for shape, strides in seen)


def dot(x, w):
    return x.double() @ w.double(), x.double().abs() @ w.double().abs()


@given(SIZE, SIZE, SIZE, LAYOUT, LAYOUT, st.booleans(), st.integers(0, 2**30))
@settings(deadline=None, max_examples=150)
def test_products_of_any_size_and_layout_are_as_exact_as_float32(rows, inner, columns, of_x, of_w, biased, seed):
    torch.manual_seed(seed)
    x, w, bias = laid_out(rows, inner, of_x), laid_out(inner, columns, of_w), torch.randn(2 * columns)[::2]
    product, magnitude = dot(x, w)
    near(package.products.matmul(x, w), product, magnitude)
    b = bias if biased else None
    added = bias.double() if biased else 0
    near(package.products.linear(x, w.t(), b), product + added, magnitude + (bias.abs() if biased else 0))
    near(package.products.addmm(bias, x, w), product + bias.double(), magnitude + bias.abs())


FUNCTIONS = {
    "linear": (lambda x, w, b: linear(x, w.t(), b), 3),
    "linear without bias": (lambda x, w, b: linear(x, w.t()), 2),
    "linear by name": (lambda x, w, b: linear(weight=w.t(), input=x, bias=b), 3),
    "matmul": (lambda x, w, b: torch.matmul(x, w), 2),
    "operator": (lambda x, w, b: x @ w, 2),
    "method": (lambda x, w, b: x.matmul(w), 2),
    "mm": (lambda x, w, b: torch.mm(x.reshape(-1, x.shape[-1]), w), 2),
    "mm by name": (lambda x, w, b: torch.mm(x.reshape(-1, x.shape[-1]), mat2=w), 2),
    "addmm": (lambda x, w, b: torch.addmm(b, x.reshape(-1, x.shape[-1]), w), 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(6, 8), (2, 3, 8), (2, 1, 3, 8)])
def test_functions_run_by_it_with_their_gradients(name, shape):
    function, count = FUNCTIONS[name]
    args = [torch.randn(*shape), torch.randn(8, 5), torch.randn(5)]
    leaves = [a.clone().requires_grad_() for a in args]
    exact = [a.double().requires_grad_() for a in args]
    compiled = jit(function, executors=["onednn"])
    result, expected = compiled(*leaves), function(*exact)
    torch.testing.assert_close(result, expected.float())
    assert result.stride() == expected.stride()
    result.sin().sum().backward()
    expected.sin().sum().backward()
    for leaf, truth in list(zip(leaves, exact, strict=True))[:count]:
        torch.testing.assert_close(leaf.grad, truth.grad.float())
        assert leaf.grad.stride() == truth.grad.stride()
    assert "thunder_executors_onednn.products." in str(last_traces(compiled)[-1])
    assert str(last_backward_traces(compiled)[-1]).count("thunder_executors_onednn.products.") == 2


DECLINED = {
    "float64": (lambda x, w: x.double() @ w.double(), "float64 as fast"),
    "bfloat16": (lambda x, w: x.bfloat16() @ w.bfloat16(), "bfloat16 as fast"),
    "a vector": (lambda x, w: x[0] @ w, "vectors as fast"),
    "by a vector": (lambda x, w: x @ w[:, 0], "by matrices"),
    "batches": (lambda x, w: x[None] @ w[None], "by matrices"),
    "scaled": (lambda x, w: torch.addmm(x[0, :5], x, w, beta=2), "does not scale"),
    "a matrix is added": (lambda x, w: torch.addmm(x[:, :5], x, w), "adds a vector"),
    "no rows": (lambda x, w: x[:0] @ w, "this size as fast"),
    "no columns": (lambda x, w: x @ w[:, :0], "this size as fast"),
    "nothing in a sum": (lambda x, w: x[:, :0] @ w[:0], "this size as fast"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_it_declines_says_why_and_pytorch_computes_it(name):
    function, why = DECLINED[name]
    x, w = torch.randn(6, 8), torch.randn(8, 5)
    compiled = jit(function, executors=["onednn"])
    assert torch.equal(compiled(x, w), function(x, w))
    assert "onednn" not in str(last_traces(compiled)[-1])
    products = [b for b in last_traces(compiled)[0].bound_symbols if b.symbol.name in ("matmul", "addmm")]
    assert [why in executor.find(bound).reason for bound in products] == [True]


def test_numbers_that_are_none_stay_where_they_are():
    x, w = torch.randn(40, 64), torch.randn(64, 48)
    x[3, 5], x[7, 9], w[11, 13] = float("nan"), float("inf"), -float("inf")
    compiled = jit(torch.matmul, executors=["onednn"])
    result, product, magnitude = compiled(x, w), *dot(x, w)
    assert torch.equal(result.isnan(), product.isnan())
    assert torch.equal(result.isinf(), product.isinf())
    finite = product.isfinite()
    near(result[finite], product[finite], magnitude[finite])


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
def test_sizes_that_change(cache):
    compiled = jit(lambda x, w: linear(x, w) * 2, executors=["onednn"], cache=cache)
    w = torch.randn(5, 8)
    for rows in (3, 7, 1, 4, 12):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x, w), linear(x, w) * 2)


def by_default(x, w):
    """The functions of a program's last stage, with the executor as it takes part by default."""
    compiled = jit(torch.matmul, executors=[executor.unasked()])
    product, magnitude = dot(x, w)
    near(compiled(x, w), product, magnitude)
    return str(last_traces(compiled)[-1])


def test_by_default_it_takes_large_products_alone():
    assert "onednn" in by_default(torch.randn(64, 1024), torch.randn(1024, 64))
    assert "onednn" in by_default(torch.randn(2, 32, 1024), torch.randn(1024, 64))
    assert "onednn" not in by_default(torch.randn(64, 64), torch.randn(64, 64))
    assert "onednn" not in by_default(torch.randn(8, 1024), torch.randn(1024, 1024))
    assert "onednn" not in by_default(torch.randn(1024, 8), torch.randn(8, 1024))


ZEN_5 = ("AuthenticAMD", availability.ZEN_5)
CPUS = {
    (ZEN_5, "AVX512"): True,
    (ZEN_5, "AVX512_VNNI"): True,
    (ZEN_5, "AVX2"): False,
    (("AuthenticAMD", 25), "AVX512"): False,
    (("", 0), "AVX512"): False,
    (("", 0), "DEFAULT"): False,
}


@pytest.mark.parametrize(("cpu", "faster"), CPUS.items())
def test_which_cpus_it_is_a_default_executor_on(cpu, faster, monkeypatch):
    monkeypatch.setattr(availability, "_processor", lambda: cpu[0])
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: cpu[1])
    assert is_faster_here() is (faster and torch.backends.mkl.is_available())
    assert availability.by_default() == (("onednn",) if is_faster_here() else ())


def test_it_is_a_default_executor_where_it_is_faster():
    names = [e.name for e in resolve_executors()]
    assert ("onednn" in names) is is_faster_here()
    assert get_executor("onednn") is executor


LINUX = "processor\t: 0\nvendor_id\t: {}\ncpu family\t: 26\nmodel\t\t: 2\n"


@pytest.mark.parametrize(
    ("file", "platform", "processor"),
    [
        (LINUX.format("AuthenticAMD") * 2, "", ("AuthenticAMD", 26)),
        (LINUX.format("GenuineIntel"), "", ("", 0)),
        ("CPU: ARM", "", ("", 0)),
        (None, "AMD64 Family 25 Model 97, AuthenticAMD", ("AuthenticAMD", 25)),
        (None, "arm", ("", 0)),
    ],
)
def test_the_cpu_says_who_made_it(file, platform, processor, monkeypatch):
    def read(*_, **__):
        if file is None:
            raise FileNotFoundError
        return file

    availability._processor.cache_clear()
    monkeypatch.setattr(availability.Path, "read_text", read)
    monkeypatch.setattr(availability.platform, "processor", lambda: platform)
    try:
        assert availability._processor() == processor
    finally:
        availability._processor.cache_clear()


@pytest.mark.parametrize("name", ["linear", "matmul", "addmm"])
def test_where_onednn_is_switched_off_pytorch_multiplies(name):
    function, _ = FUNCTIONS[name]
    x, w, b = torch.randn(40, 300), torch.randn(300, 50), torch.randn(50)
    compiled = jit(function, executors=["onednn"])
    compiled(x, w, b)
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):
        expected = function(x, w, b)
        assert torch.equal(compiled(x, w, b), expected)
        assert torch.equal(jit(function, executors=["onednn"])(x, w, b), expected)


def test_without_onednn_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert "built without oneDNN" in repr(executor)


def test_the_operator_is_what_it_was():
    """The operator is PyTorch's own and has no public name."""
    schema = torch.ops.mkldnn._linear_pointwise.default._schema
    assert str(schema) == (
        "mkldnn::_linear_pointwise(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, str? algorithm) "
        "-> Tensor Y"
    )
