"""Higher-order operators: parts of the program, or whole operations."""

import pytest
import torch
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing import assert_close

from thunder_executors import to_callable
from thunder_fx import FXError, ThunderCompiler, from_fx
from thunder_fx.whole import Conditional

pytestmark = pytest.mark.usefixtures("forget_what_was_compiled")


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, bias):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.sin() * scale + bias, x.argmax()

    @staticmethod
    def backward(ctx, dy, _):
        (x,) = ctx.saved_tensors
        return dy * x * ctx.scale * 7, None, dy.sum(0)  # not the derivative of sin, to be told from it


def custom(x, w):
    return Scaled.apply(x @ w, 3.0, w[0])[0].exp()


def branches(x, w):
    y = x @ w
    return torch.cond(y.sum() > 0, lambda a, b: a * 2 + b, lambda a, b: (a - b).sin(), (y, w)).exp()


def loops(x, w):
    count = torch.zeros((), dtype=torch.int64)
    n, a, b = while_loop(lambda n, a, b: n < 3, lambda n, a, b: (n + 1, b * 2, a @ w), (count, x, x + 1))
    return a.sin() + b * n


def checkpointed(x, w):
    return torch.utils.checkpoint.checkpoint(lambda a: (a @ w).relu(), x, use_reentrant=False)


@torch.compiler.nested_compile_region
def block(x, w):
    return (x @ w).tanh()


def repeated(x, w):
    return block(block(x, w), w)


def outcome(function, sign=1):
    torch.manual_seed(0)
    x, w = (torch.randn(3, 3, dtype=torch.float64).mul(sign**i).requires_grad_() for i in (1, 0))
    y = function(x, w)
    return y, *torch.autograd.grad(y.sum(), (x, w))


TRAINED = [custom, branches, checkpointed, repeated]


@pytest.mark.parametrize("function", TRAINED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sign", [1, -1])
def test_value_and_gradients_are_those_of_eager(function, sign):
    backend = ThunderCompiler(fallback="error")
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    assert_close(outcome(compiled, sign), outcome(function, sign))
    assert backend.report().count("compiled") == 1


def test_a_loop_runs_as_often_as_values_say():
    backend = ThunderCompiler(fallback="error")
    compiled = torch.compile(loops, backend=backend, fullgraph=True)
    x, w = torch.randn(3, 3), torch.randn(3, 3)
    assert_close(compiled(x, w), loops(x, w))


def test_a_loop_that_does_not_run_returns_what_it_was_given():
    def never(x):
        (y,) = while_loop(lambda a: a.sum() < 0, lambda a: (a * 2,), (x,))
        return y.add_(1)

    x = torch.ones(3)
    compiled = torch.compile(never, backend=ThunderCompiler(fallback="error"), fullgraph=True)
    assert_close(compiled(x), x + 1)
    assert_close(x, torch.ones(3))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_attention_with_a_score_of_the_users_stays_whole():
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu", BLOCK_SIZE=16)

    def attention(q, bias):
        return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + bias[h], block_mask=mask) * 2

    q, bias = torch.randn(1, 2, 16, 8), torch.tensor([0.0, 2.0])
    backend = ThunderCompiler(fallback="error")
    assert_close(torch.compile(attention, backend=backend)(q, bias), attention(q, bias))
    assert any("flex_attention" in str(p.compiled.ready.traces[0]) for p in backend.parts)


@pytest.mark.parametrize("function", [*TRAINED, loops], ids=lambda f: f.__name__)
def test_graphs_with_them_become_traces(function):
    graphs = []

    def keep(module, inputs):
        graphs.append((module, inputs))
        return module

    x, w = torch.randn(3, 3), torch.randn(3, 3)
    expected = torch.compile(function, backend=keep, fullgraph=True)(x, w)
    ((module, inputs),) = graphs
    (found,) = to_callable(from_fx(module, inputs))(*inputs)
    assert_close(found, expected)


def test_branches_that_are_not_alike_are_refused():
    with torch._subclasses.fake_tensor.FakeTensorMode():
        x = torch.ones(3)
        with pytest.raises(FXError, match=r"the branches of cond return .*float32\[3\].* and .*float32\[1\]"):
            Conditional(lambda a: a, lambda a: a[:1])(x.sum() > 0, (x,))
