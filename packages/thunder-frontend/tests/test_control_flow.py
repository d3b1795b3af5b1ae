"""Operators that take functions inside of programs: loops, choices by tensors, attention with a function of scores."""

import pytest
import torch
from against_eager import same_as_eager
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.func import grad, jvp, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing import assert_close

from thunder_frontend import cache_misses, explain, jit
from thunder_guards.errors import AcquisitionError


def data():
    torch.manual_seed(0)
    return torch.randn(4, 3), torch.randn(3, requires_grad=True), torch.randn(3, 3, requires_grad=True)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y, w: map_slices(lambda t, s: {"a": (t["x"] @ w).sin() + s, "b": (t["x"] * s).sum()}, {"x": x}, y),
        lambda x, y, w: scan(lambda c, t: (c + t @ w, (c * t, c.sum())), y * 1, x),
        lambda x, y, w: scan(lambda c, t: (c + t, c * t), torch.zeros(4), x * y.detach(), dim=1, reverse=True),
        lambda x, y, w: associative_scan(lambda a, b: a * b + a, x * y, 0, combine_mode="generic"),
        lambda x, y, w: associative_scan(
            lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x * y), 0, reverse=True, combine_mode="generic"
        ),
        lambda x, y, w: torch.cond(True, lambda t: t.sin(), lambda t: t.cos(), (y,)),
    ],
)
def test_loops_over_what_is_known(program):
    same_as_eager(program, *data(), strides=False)


@pytest.mark.parametrize("sign", [1, -1])
def test_choices_by_tensors(sign):
    def program(x, y, w):
        return torch.cond(
            x.sum() > 0,
            lambda t, d: {"a": t.sin() @ w, "b": d["k"] * 2},
            lambda t, d: {"a": t.cos(), "b": w[0] * d["k"]},
            (y, {"k": y * 3}),
        )

    x, y, w = data()
    same_as_eager(program, (x - x.mean() + 1) * sign, y, w, strides=False)


def test_a_choice_is_made_by_each_run():
    def program(x, y, w):
        def first(t):
            with torch.no_grad():
                c = w @ t
            return c * (w @ t)

        return torch.cond(x.sum() > 0, first, lambda t: (w * t).sum(0).detach() + w[1], (y,))

    x, y, w = data()
    compiled = jit(program)
    for sample in (torch.ones(3), -torch.ones(3)):
        result, expected = compiled(sample, y, w), program(sample, y, w)
        assert_close(result, expected)
        assert_close(*[torch.autograd.grad(r.sum(), (y, w), allow_unused=True) for r in (result, expected)])
    assert cache_misses(compiled) == 1


def test_choices_are_differentiated_and_batched():
    def power(t):
        return torch.cond(t.sum() > 0, lambda t: t**2, lambda t: t**3, (t,))

    compiled = jit(
        lambda x: (
            vmap(grad(lambda t: power(t).sum()))(x),
            vmap(grad(lambda t: grad(lambda u: power(u))(t)))(x[:, 0]),
            jvp(power, (x[0],), (x[1],)),
        )
    )
    x = torch.tensor([[1.0, 2.0], [-1.0, -3.0], [2.0, -1.0]])
    up = x.sum(1, keepdim=True) > 0
    gradients, second, (value, tangent) = compiled(x)
    assert_close(gradients, torch.where(up, 2 * x, 3 * x**2))
    assert_close(second, torch.where(x[:, 0] > 0, 2.0, 6 * x[:, 0]))
    assert_close(value, x[0] ** 2)
    assert_close(tangent, 2 * x[0] * x[1])


def test_loops_until_a_tensor_says_so():
    def program(y, w):
        return while_loop(lambda i, t: (i < 5) & (t.abs().sum() < 9), lambda i, t: (i + 1, t @ w), (torch.tensor(0), y))

    def expected(y, w):
        count = 0
        while count < 5 and y.abs().sum() < 9:
            count, y = count + 1, y @ w
        return count, y

    _, y, w = data()
    compiled = jit(program)
    for scale in (1, 3, 100):
        count, result = compiled(y * scale, w)
        rounds, value = expected(y * scale, w)
        assert count == rounds
        assert_close(result, value)
        if rounds:
            assert_close(torch.autograd.grad(result.sum(), w), torch.autograd.grad(value.sum(), w))
    assert cache_misses(compiled) == 1


KEPT: list[int] = []


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda y: torch.cond(y.sum() > 0, lambda t: (KEPT.append(1), t * 2)[1], lambda t: t * 1, (y,)), "changes"),
        (lambda y: torch.cond(y.sum() > 0, lambda t: y.mul_(2), lambda t: t * 1, (y,)), "from outside"),
        (lambda y: torch.cond(y.sum() > 0, lambda t: y[:1].mul_(2), lambda t: t[:1] * 1, (y,)), "from outside"),
        (lambda y: torch.cond(y.sum() > 0, lambda t: t.mul_(2), lambda t: t * 1, (y,)), "writes to its arguments"),
        (lambda y: torch.cond(y.sum() > 0, lambda t: t[:1], lambda t: t * 1, (y,)), "the same shape"),
        (lambda y: torch.cond(y.sum() > 0, lambda t: (t, t), lambda t: t * 1, (y,)), "the same structure"),
        (lambda y: torch.cond(y.sum() > 0, lambda t: 1.0, lambda t: 2.0, (y,)), "return tensors"),
        (lambda y: torch.cond(y.sum() > 0, lambda t, n: t * n, lambda t, n: t, (y, 2)), "take tensors"),
        (lambda y: while_loop(lambda t: t.sum() < 9, lambda t: (t[:1],), (y,)), "shapes, dtypes"),
    ],
)
def test_what_a_choice_cannot_do_is_refused(program, message):
    with pytest.raises(AcquisitionError, match=message):
        jit(program, outcomes=0)(torch.ones(3))
    assert KEPT == []


def test_attention_with_functions_of_scores_and_places():
    torch.manual_seed(0)
    q, bias, documents = torch.randn(1, 2, 16, 8), torch.randn(16, 16), torch.tensor([0] * 9 + [1] * 7)
    mask = create_block_mask(
        lambda b, h, i, j: (i >= j) & (documents[i] == documents[j]), 1, 1, 16, 16, device="cpu", BLOCK_SIZE=8
    )

    def program(q, bias, scale):
        return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s * scale + bias[i, j], block_mask=mask)

    compiled = jit(program)
    for scale in (1.0, 0.3):
        torch.compiler.reset()  # else some versions compile eager's for any scale, and fail
        assert_close(compiled(q, bias, scale), program(q, bias, scale))
    assert_close(compiled(q, bias * 2, 0.3), program(q, bias * 2, 0.3))
    assert cache_misses(compiled) == 2


GRAPHS = []


def keeps_graphs(graph, inputs):
    GRAPHS.append(graph)
    return graph.forward


ATTENTION = torch.compile(flex_attention, backend=keeps_graphs)


def attends(q):
    return ATTENTION(q * 2, q, q, score_mod=lambda s, b, h, i, j: s + (i - j)).sin()


def attends_with(q, bias):
    return ATTENTION(q * 2, q, q, score_mod=lambda s, b, h, i, j: s + bias[i, j]).sin()


def test_flexible_attention_that_torch_compiles_is_left_to_its_kernel():
    q = torch.randn(1, 2, 16, 8)
    compiled = jit(attends, fallback="split")
    expected = flex_attention(q * 2, q, q, score_mod=lambda s, b, h, i, j: s + (i - j)).sin()
    GRAPHS.clear()
    for _ in range(2):
        assert_close(compiled(q), expected)
    assert len(GRAPHS) == 1 and cache_misses(compiled) == 1
    assert "flex_attention runs in Python: torch.compile makes a kernel of it" in str(explain(attends)(q))
    assert_close(jit(attends, fallback="error")(q), expected)  # composed, in one program
    leaf = q.clone().requires_grad_()
    assert refusal(compiled, leaf) == refusal(attends, leaf)


def refusal(function, *inputs):
    """What PyTorch says where it has no derivative; its versions differ."""
    try:
        function(*inputs)
    except NotImplementedError as error:
        return str(error)
    return None


def test_flexible_attention_that_reads_values_of_the_program_is_composed():
    q, bias = torch.randn(1, 2, 16, 8), torch.randn(16, 16)
    assert_close(jit(attends_with)(q, bias), attends_with(q, bias))
