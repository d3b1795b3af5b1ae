"""The executor in compiled functions, its graphs computed by a stand-in for the frontend."""

import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import thunder_executors_cudnn as package
from thunder_executors import Library, get_executor
from thunder_executors_cudnn import availability
from thunder_frontend import jit, last_backward_traces, last_traces

functional = torch.nn.functional
attend = functional.scaled_dot_product_attention


def compiled(function):
    return jit(function, executors=[package.executor, "torch"])


def text(compiled):
    return str(last_traces(compiled)[-1])


ATTENTION = {
    "plain": (lambda q, k, v: attend(q, k, v), {}),
    "causal": (lambda q, k, v: attend(q, k, v, is_causal=True), {}),
    "scale": (lambda q, k, v: attend(q, k, v, scale=0.3), {}),
    "other length": (lambda q, k, v: attend(q, k, v, is_causal=True), {"other": 7}),
    "other width": (lambda q, k, v: attend(q, k, v), {"width": 24}),
    "shared heads": (lambda q, k, v: attend(q, k, v, enable_gqa=True), {"groups": 2}),
    "mask": (lambda q, k, v: attend(q, k, v, torch.arange(5).to(q.dtype).reshape(1, 1, 1, 5)), {}),
    "transposed": (lambda q, k, v: attend(*(t.transpose(1, 2) for t in (q, k, v))), {"heads": 5, "length": 4}),
    "expanded": (lambda q, k, v: attend(q, k[:, :1].expand(k.shape), v), {}),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_and_its_gradients_are_eagers(name, dtype, machine):
    function, sizes = ATTENTION[name]
    heads, length = sizes.get("heads", 4), sizes.get("length", 5)
    other, groups = sizes.get("other", length), sizes.get("groups", heads)
    shapes = [(2, heads, length, 16), (2, groups, other, 16), (2, groups, other, sizes.get("width", 16))]
    values = [torch.randn(shape).to(dtype) for shape in shapes]
    mine = [v.clone().requires_grad_() for v in values]
    truth = [v.double().requires_grad_() for v in values]
    run = compiled(function)
    y, expected = run(*mine), function(*truth)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype is torch.bfloat16 else {"rtol": 4e-3, "atol": 4e-3}
    assert y.dtype is dtype
    assert_close(y.double(), expected, **tolerance)
    dy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(expected, truth, dy.double())
    assert_close(tuple(t.double() for t in found), wanted, **tolerance)
    assert "cudnn" in text(run) and "cudnn" in str(last_backward_traces(run)[-1])
    with torch.no_grad():
        assert_close(run(*mine).double(), expected, **tolerance)


def test_dropout_draws_once_and_the_gradient_uses_the_same_mask(machine):
    q, k, v = (torch.randn(1, 2, 6, 8).half().requires_grad_() for _ in range(3))
    run = compiled(lambda q, k, v: attend(q, k, v, dropout_p=0.4))
    torch.manual_seed(3)
    y = run(q, k, v)
    torch.manual_seed(3)
    assert torch.equal(run(q, k, v), y)
    assert not torch.equal(run(q, k, v), y)
    # the result is linear in the values: with the same mask, <dv, v> is <dy, y>
    dy = torch.randn_like(y)
    (dv,) = torch.autograd.grad(y, v, dy)
    assert_close((dv.float() * v.float()).sum(), (dy.float() * y.float()).sum(), rtol=1e-2, atol=1e-2)


def test_dropout_draws_pytorchs_numbers_where_nobody_named_the_executor(machine):
    q, k, v = (torch.randn(1, 2, 6, 8).half() for _ in range(3))
    unasked = [package.executor.unasked(), "torch"]
    drops = jit(lambda q, k, v: attend(q, k, v, dropout_p=0.4), executors=unasked)
    torch.manual_seed(3)
    expected = attend(q, k, v, dropout_p=0.4)
    torch.manual_seed(3)
    assert_close(drops(q, k, v), expected)
    assert "cudnn" not in text(drops)
    keeps = jit(lambda q, k, v: attend(q, k, v), executors=unasked)
    keeps(q, k, v)
    assert "cudnn" in text(keeps)


NORMS = {
    "layer norm": lambda x, w: functional.layer_norm(x, (12,), w[0], w[1]),
    "without a bias": lambda x, w: functional.layer_norm(x, (12,), w[0], eps=0.1),
    "two dimensions": lambda x, w: functional.layer_norm(x, (3, 12), w[:3] * 2, w[1:]),
    "rms norm": lambda x, w: functional.rms_norm(x, (12,), w[0], 1e-3),
    "rms norm without eps": lambda x, w: functional.rms_norm(x, (12,), w[0]),
    "transposed": lambda x, w: functional.rms_norm(x.transpose(0, 1), (12,), w[0]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norms_and_their_gradients_are_eagers(name, dtype, machine):
    function = NORMS[name]
    x, w = torch.randn(5, 3, 12).to(dtype), torch.randn(4, 12).to(dtype)
    mine = [t.clone().requires_grad_() for t in (x, w)]
    truth = [t.double().requires_grad_() for t in (x, w)]
    run = compiled(function)
    y = run(*mine)
    expected = function(*truth) if name != "rms norm without eps" else functional.rms_norm(
        truth[0], (12,), truth[1][0], torch.finfo(torch.float32).eps
    )  # fmt: skip
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 3e-2, "atol": 3e-2}
    assert_close(y.double(), expected, **tolerance)
    dy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(expected, truth, dy.double())
    assert_close(tuple(t.double() for t in found), wanted, **tolerance)
    assert "cudnn" in text(run) and "cudnn" in str(last_backward_traces(run)[-1])
    with torch.no_grad():
        assert_close(run(*mine).double(), expected, **tolerance)


LEFT = {
    "a width that is no multiple of 8": lambda x: attend(*[x.half()[..., :7]] * 3),
    "float32": lambda x: attend(x, x, x),
    "a mask of bools": lambda x: attend(*[x.half()] * 3, torch.ones(1, 1, 4, 4).bool()),
    "a norm without weight": lambda x: functional.layer_norm(x, (8,)),
    "double precision": lambda x: functional.rms_norm(x.double(), (8,), torch.ones(8).double()),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_it_declines_is_left_to_others(name, machine):
    x = torch.randn(2, 3, 4, 8)
    run = compiled(LEFT[name])
    assert_close(run(x), LEFT[name](x))
    assert "cudnn" not in text(run)


def test_a_structure_is_planned_once_for_all_calls_of_it(machine):
    run = compiled(lambda x, w: functional.rms_norm(functional.rms_norm(x, (8,), w), (8,), w))
    x, w = torch.randn(4, 8), torch.randn(8)
    run(x, w)
    assert machine.plans.made == 3  # the one without statistics, and in the checker those of a gradient
    run(x, w)
    compiled(lambda x, w: functional.rms_norm(x + 1, (8,), w))(x, w)
    assert machine.plans.made == 3


def test_it_is_found_by_its_entry_point_and_says_why_it_cannot_run(monkeypatch):
    assert get_executor("cudnn") is package.executor
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(availability, "FRONTEND", Library("torch", "cuDNN"))
    assert package.missing() == "PyTorch sees no CUDA device"
    monkeypatch.setattr(availability, "FRONTEND", Library("no_cudnn", "cuDNN"))
    assert package.missing() == "cuDNN is not installed"
    monkeypatch.setattr(availability, "FRONTEND", Library("torch", "cuDNN", least="99"))
    assert "at least 99 is needed" in package.missing()


def test_importing_it_imports_no_frontend():
    program = "import sys, thunder_executors_cudnn; sys.exit('cudnn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
