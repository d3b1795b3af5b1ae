"""The executor in compiled functions: what it takes, what it leaves to others, and what comes out."""

import pytest
import torch
from torch.testing import assert_close

from thunder_frontend import jit, last_backward_traces, last_traces

functional = torch.nn.functional
TARGET = [1, -100, 3]

TAKEN = {
    "layer_norm": (lambda x, w: functional.layer_norm(x, (8,), w[0], w[1]), "layer_norm"),
    "rms_norm": (lambda x, w: functional.rms_norm(x, (8,), w[0], 1e-5), "rms_norm"),
    "rms_norm without eps": (lambda x, w: functional.rms_norm(x, (8,), w[0]), "rms_norm"),
    "softmax": (lambda x, w: torch.softmax(x * w[0], -1), "softmax"),
    "cross_entropy": (
        lambda x, w: functional.cross_entropy(x * w[0], torch.tensor(TARGET, device=x.device), label_smoothing=0.1),
        "cross_entropy",
    ),
    "losses": (
        lambda x, w: functional.cross_entropy(x * w[0], torch.tensor(TARGET, device=x.device), reduction="none"),
        "cross_entropy",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_function_runs_by_its_kernel_with_eagers_values_and_gradients(name, device):
    function, kernel = TAKEN[name]
    x, w = torch.randn(3, 8, device=device), torch.randn(2, 8, device=device)
    leaves = [t.clone().requires_grad_() for t in (x, w)]
    mine = [t.clone().requires_grad_() for t in (x, w)]
    compiled = jit(function, executors=["triton", "torch"])
    y, expected = compiled(*mine), function(*leaves)
    assert_close(y, expected)
    dy = torch.randn_like(expected)
    assert_close(torch.autograd.grad(y, mine, dy), torch.autograd.grad(expected, leaves, dy))
    assert f"triton.{kernel}" in str(last_traces(compiled)[-1]).replace("_triton_", "triton.")
    backward = str(last_backward_traces(compiled)[-1])
    assert "triton" in backward
    with torch.no_grad():
        assert_close(compiled(*mine), expected.detach())


LEFT = {
    "another dimension": lambda x: torch.softmax(x, 0),
    "double precision": lambda x: torch.softmax(x.double(), -1),
    "weights of classes": lambda x: functional.cross_entropy(
        x, torch.tensor([1, 2, 3], device=x.device), torch.ones(8, device=x.device)
    ),
    "probabilities as targets": lambda x: functional.cross_entropy(x, torch.softmax(x, 0)),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_a_kernel_does_not_do_is_left_to_others(name, device):
    x = torch.randn(3, 8, device=device)
    compiled = jit(LEFT[name], executors=["triton", "torch"])
    assert_close(compiled(x), LEFT[name](x))
    assert "triton" not in str(last_traces(compiled)[-1])
