"""The derivative of gelu on small tensors goes past oneDNN; values and layouts are those of PyTorch's function."""

import pytest
import torch

from thunder_executors import runnable, transform_for_execution
from thunder_ir import Tensor, trace_of
from thunder_torch import proxy_of, symbol_of, torch_language

derivative = torch.ops.aten.gelu_backward.default
gelu_backward, add, reshape = symbol_of(derivative), symbol_of(torch.add), symbol_of(torch.reshape)
X = torch.linspace(-9, 9, 24)
TWICE = torch.cat([X, X])


def added(dy, x):
    return add(gelu_backward(dy, x), 0)


def made_for(program, *tensors):
    """Return a finished program for tensors like these, whose layouts it knows."""
    given = [proxy_of(t, "") for t in tensors]
    return transform_for_execution(trace_of(program, *given, language=torch_language), [])


def views(made):
    """Return how many of a program's calls change the order of dimensions."""
    return sum(bound.symbol.path == "torch.permute" for bound in made.bound_symbols)


def exact(dy, x):
    """Return the gradient in float64."""
    x = x.double().requires_grad_()
    (found,) = torch.autograd.grad(x * torch.special.ndtr(x), x, dy.double())
    return found


@pytest.mark.parametrize("shape", [(4, 6), (2, 12), (2, 3, 4), (1, 4, 6), (1, 1, 4, 6), (2, 3, 2, 2)])
def test_small_tensors_go_past_onednn_and_gradients_lie_as_pytorchs(shape):
    x, dy = X.view(shape), torch.randn(shape)
    made = made_for(added, dy, x)
    assert views(made) == 3
    found = runnable([made], [])(dy, x)
    assert found.shape == x.shape and found.stride() == derivative(dy, x).stride()
    torch.testing.assert_close(found.double(), exact(dy, x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "dy",
    [
        X.view(6, 4).t(), torch.tensor(2.0).expand(4, 6), X[:6].expand(4, 6), X[:4].view(4, 1).expand(4, 6),
        TWICE.view(4, 12)[:, ::2],
    ],
)  # fmt: skip
def test_cotangents_lie_in_whatever_order(dy):
    x = X.view(4, 6)
    made = made_for(added, dy, x)
    assert views(made) == 3
    found = runnable([made], [])(dy, x)
    assert found.stride() == derivative(dy, x).stride()
    torch.testing.assert_close(found.double(), exact(dy, x), rtol=1e-6, atol=1e-6)


def test_what_is_not_finite_gives_what_onednn_gives():
    x = torch.tensor([[float("inf"), -float("inf"), float("nan")], [-0.0, 1e38, -1e38]])
    dy = torch.ones(2, 3)
    assert torch.equal(runnable([made_for(added, dy, x)], [])(dy, x).isnan(), derivative(dy, x).isnan())


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(128, 129), X.view(4, 6).double(), X.view(4, 6).bfloat16(), X, X.view(1, 24, 1), X.view(2, 1, 12),
        torch.tensor(2.0), X.view(4, 6).t(), TWICE.view(4, 12)[:, ::2], X.view(1, 24).expand(3, 24), torch.ones(0, 3),
    ],
)  # fmt: skip
def test_what_onednn_does_not_take_or_is_faster_for_is_called_as_it_was(x):
    dy = torch.ones_like(x)
    made = made_for(added, dy, x)
    assert not views(made)
    found, expected = runnable([made], [])(dy, x), derivative(dy, x)
    assert found.stride() == expected.stride() and torch.equal(found, expected)


def test_so_is_the_other_function_of_its_name_and_what_has_no_known_layout():
    x = X.view(4, 6)
    assert not views(made_for(lambda dy, x: add(gelu_backward(dy, x, approximate="tanh"), 0), x, x))
    unknown = trace_of(added, Tensor((4, 6)), Tensor((4, 6)), language=torch_language)
    assert not views(transform_for_execution(unknown, []))


def test_results_and_what_they_view_are_no_views():
    x = X.view(4, 6)
    assert not views(made_for(gelu_backward, x, x))
    assert not views(made_for(lambda dy, x: reshape(gelu_backward(dy, x), (24,)), x, x))


def test_it_is_left_where_pytorch_has_no_onednn(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not views(made_for(added, X.view(4, 6), X.view(4, 6)))
