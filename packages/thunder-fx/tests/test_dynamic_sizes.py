"""Sizes that dynamo makes dynamic: one program for all of them."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch._higher_order_ops.map import map as mapped
from torch.testing import assert_close

from thunder_fx import ThunderCompiler

pytestmark = pytest.mark.usefixtures("forget_what_was_compiled")


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def attention(x, w):
    batch, length, width = x.shape
    q = (x @ w).view(batch, length, 2, width // 2).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    return F.layer_norm(y.transpose(1, 2).reshape(batch, length, width) + x, (width,))


def joined(x, w):
    n = x.shape[0]
    return torch.cat([x, w[:1].expand(n, 4)], 0)[: n + 1].reshape(-1, 2).sum(-1)


def counted(x, w):
    return (x * torch.arange(x.shape[0])[:, None] + torch.zeros(x.shape)) @ w / x.numel()


def normed(x, w):
    return F.gelu(F.batch_norm(x @ w, None, None, training=True)).softmax(0).flatten().cumsum(0)


def looked_up(x, w):
    return F.cross_entropy(x @ w, torch.arange(x.shape[0]) % 4) + F.embedding(torch.arange(x.shape[0]) % 4, w).mean()


def bordered(x, w):
    return F.pad(x, (0, 0, 1, x.shape[0]))[:, None].permute(1, 2, 0).tanh() + torch.full((1, 4, 1), x.shape[0] * 0.5)


TWO = [joined, counted, normed, looked_up, bordered]


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("function", [*TWO, attention], ids=lambda f: f.__name__)
def test_one_program_serves_all_sizes(function, training):
    backend = ThunderCompiler(fallback="error")
    compiled = torch.compile(function, backend=backend, dynamic=True)
    for n in (6, 3, 9):
        x = (normal(n, n + 5, 4) if function is attention else normal(n, 4)).requires_grad_(training)
        w = normal(4, 4).requires_grad_(training)
        found, expected = compiled(x, w), function(x, w)
        assert_close(found, expected)
        assert found.stride() == expected.stride()
        if training:
            dy = torch.randn_like(expected)
            gradients = [
                torch.autograd.grad(y, (x, w), dy, materialize_grads=True, allow_unused=True) for y in (found, expected)
            ]
            assert_close(*gradients)
    assert [graph.fixed for graph in backend.graphs] == [""]
    assert len(backend.parts) == 1


def test_sizes_that_the_user_marks_are_open_from_the_first_call():
    backend = ThunderCompiler()
    compiled = torch.compile(lambda x: x.sin().sum(-1), backend=backend)
    for n in (4, 5, 6):
        x = normal(n, 3)
        torch._dynamo.mark_dynamic(x, 0)
        assert_close(compiled(x), x.sin().sum(-1))
    assert len(backend.parts) == 1


def test_sizes_that_change_are_open_from_the_second_call():
    eager = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 2)).double()
    model = copy.deepcopy(eager)
    backend = ThunderCompiler()
    compiled = torch.compile(model, backend=backend)
    for n in (4, 5, 6, 7):
        x = normal(n, 3)
        for run in (eager, compiled):
            run(x).pow(2).sum().backward()
    assert_close([p.grad for p in model.parameters()], [p.grad for p in eager.parameters()])
    assert len(backend.graphs) == len(backend.parts) == 2


def test_numbers_go_from_graph_to_graph():
    def broken(x):
        n = x.shape[0] * 2
        y = x.sin().repeat(2, 1)
        torch._dynamo.graph_break()
        return y.view(2, -1) * n, n

    backend = ThunderCompiler()
    compiled = torch.compile(broken, backend=backend, dynamic=True)
    for n in (4, 5, 6):
        x = normal(n, 3)
        assert_close(compiled(x), broken(x))
    assert len(backend.parts) == len(backend.graphs) == 2


def test_writes_to_arguments_of_any_size_reach_the_caller():
    def step(state, x):
        state.mul_(2).add_(x.shape[0])
        return (state * x).sum()

    backend = ThunderCompiler()
    compiled = torch.compile(step, backend=backend, dynamic=True)
    for n in (4, 5, 6):
        x, state = normal(n, 3), normal(n, 3)
        copied = state.clone()
        assert_close((compiled(state, x), state), (step(copied, x), copied))
    assert len(backend.parts) == 1


def test_a_layout_that_is_not_in_order_gets_a_program_of_its_own():
    backend = ThunderCompiler()
    compiled = torch.compile(lambda x: x.reshape(-1) + 1, backend=backend, dynamic=True)
    for n in (4, 5):
        x, y = normal(n, 3), normal(3, n).t()
        assert_close(compiled(x), x.reshape(-1) + 1)
        assert_close(compiled(y), y.reshape(-1) + 1)


def test_views_of_arguments_are_views_whatever_their_size():
    backend = ThunderCompiler()
    compiled = torch.compile(lambda x: (x[: x.shape[0] // 2], x * 2), backend=backend, dynamic=True)
    for n in (4, 5, 6):
        x = normal(n, 3)
        view, _ = compiled(x)
        assert_close(view, x[: n // 2])
        assert view.data_ptr() == x.data_ptr()
    assert len(backend.parts) == 1 and not backend.graphs[0].fixed


def test_parts_around_what_stays_with_pytorch_serve_all_sizes():
    def function(x):
        return mapped(lambda row: row + 1, x.sin()).exp() * x.shape[0]

    backend, alone = ThunderCompiler(), CompileCounter()
    for compiler in (backend, alone):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=compiler, dynamic=True)
        for n in (4, 5, 6):
            x = normal(n, 3)
            assert_close(compiled(x), function(x))
    assert len(backend.parts) == 3 * alone.frame_count  # some versions of dynamo hand over a graph for each size
