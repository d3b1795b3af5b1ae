"""Any operation of PyTorch runs, is differentiated, batched and differentiated again."""

import pytest
import torch

from thunder_autograd import grad_transform_on_trace, jvp_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import OpTags, record
from thunder_torch import opaque, opaque_call, proxy_of
from thunder_torch.errors import UnsupportedMutationError
from thunder_torch.opaque import Batched, Pullback, Pushforward, call_of


def traced(function, *tensors, **kwargs):
    proxies = [proxy_of(t, f"a{i}") for i, t in enumerate(tensors)]
    return record(lambda *a: opaque(function)(*a, **kwargs), proxies)


def run(trace, *tensors):
    with torch.no_grad():
        return to_callable(trace, [executor])(*[t.detach() for t in tensors])


def test_runs_what_nobody_defined():
    a = torch.randn(3, 3)
    assert torch.equal(run(traced(torch.linalg.matrix_exp, a), a), torch.linalg.matrix_exp(a))


def test_keeps_arguments_that_are_no_tensors():
    a = torch.randn(2, 6)
    trace = traced(torch.fft.rfft, a, n=4, dim=-1, norm="ortho")
    assert torch.equal(run(trace, a), torch.fft.rfft(a, n=4, dim=-1, norm="ortho"))


def test_takes_tensors_by_keyword_and_in_lists():
    a, b = torch.randn(2, 2), torch.randn(3, 3)
    trace = record(lambda x, y: opaque(torch.block_diag)(x, y), [proxy_of(a, "x"), proxy_of(b, "y")])
    assert torch.equal(run(trace, a, b), torch.block_diag(a, b))
    trace = record(lambda x, y: opaque(torch.cross)(x, other=y, dim=-1), [proxy_of(b, "x"), proxy_of(b, "y")])
    assert torch.equal(run(trace, b, b + 1), torch.cross(b, other=b + 1, dim=-1))


def test_gradient_is_that_of_autograd():
    a = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    expected = torch.linalg.inv(a)
    dy = torch.randn_like(expected)
    joint = grad_transform_on_trace(traced(torch.linalg.inv, a))
    output, (gradient,) = run(joint, a, dy)
    torch.testing.assert_close(output, expected.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, a, dy)[0])


def test_gradient_flows_to_tensors_given_by_keyword():
    a, b = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    trace = record(lambda x, y: opaque(torch.cross)(x, other=y, dim=1), [proxy_of(a, "x"), proxy_of(b, "y")])
    dy = torch.randn(2, 3, dtype=torch.float64)
    _, gradients = run(grad_transform_on_trace(trace), a, b, dy)
    expected = torch.autograd.grad(torch.cross(a, b, dim=1), (a, b), dy)
    torch.testing.assert_close(tuple(gradients), expected)


def test_second_derivative_is_that_of_autograd():
    a = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    dy = torch.randn(3, 3, dtype=torch.float64)
    call, values = call_of(torch.linalg.matrix_exp, (a,), {})
    first = Pullback(call, (0,), (0,))
    second = Pullback(first, (0,), (0, 1))
    ddx = torch.randn(3, 3, dtype=torch.float64)
    found = second(ddx, dy, a.detach())
    gradient = torch.autograd.grad(torch.linalg.matrix_exp(a), a, dy.requires_grad_(), create_graph=True)
    expected = torch.autograd.grad(gradient, (dy, a), ddx)
    torch.testing.assert_close(found, expected)
    assert len(values) == 1


def test_inputs_that_depend_on_each_other_have_gradients_of_their_own():
    a = torch.randn(3, dtype=torch.float64, requires_grad=True)
    b = a * 2
    call, _ = call_of(torch.mul, (a, b), {})
    da, db = Pullback(call, (0,), (0, 1))(torch.ones(3, dtype=torch.float64), a, b)
    torch.testing.assert_close((da, db), (b, a), check_stride=False)


def test_tangents_are_those_of_forward_mode():
    a = torch.randn(3, 3, dtype=torch.float64)
    da = torch.randn(3, 3, dtype=torch.float64)
    trace = jvp_transform_on_trace(traced(torch.linalg.inv, a))
    output, (tangent,) = run(trace, a, da)
    expected = torch.func.jvp(torch.linalg.inv, (a,), (da,))
    torch.testing.assert_close((output, tangent), expected)


def test_tangents_without_a_forward_derivative_come_from_the_backward_one():
    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a):
            return a**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, dy):
            (a,) = ctx.saved_tensors
            return dy * 3 * a**2

    a, da = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    call, _ = call_of(Cube.apply, (a,), {})
    (tangent,) = Pushforward(call, 1, (0,), (0,))(a, da)
    torch.testing.assert_close(tangent, da * 3 * a**2)


def test_batches_as_vmap_does():
    a = torch.randn(4, 3, 3)
    call, _ = call_of(torch.linalg.matrix_exp, (a[0],), {})
    torch.testing.assert_close(Batched(call, (0,), 4)(a), torch.linalg.matrix_exp(a))


def test_batches_one_by_one_what_vmap_cannot():
    def by_value(a):
        return a * 2 if a.sum() > 0 else a

    a = torch.tensor([[1.0, 2.0], [-1.0, -2.0]])
    call, _ = call_of(by_value, (a[0],), {})
    torch.testing.assert_close(Batched(call, (0,), 2)(a), torch.tensor([[2.0, 4.0], [-1.0, -2.0]]))


def test_is_one_symbol_for_each_callable():
    assert opaque(torch.linalg.svd) is opaque(torch.linalg.svd)
    assert opaque(torch.linalg.svd).id == "ltorch.linalg_svd"


def test_decomposes_into_a_call_on_tensors_alone():
    (bound,) = traced(torch.linalg.inv, torch.ones(2, 2)).bound_symbols
    (inner,) = bound.subsymbols
    assert inner.symbol is opaque_call and inner.args[1:] == bound.args


def test_custom_operator_uses_its_fake_kernel_and_its_derivative():
    @torch.library.custom_op("thundertest::scaled", mutates_args=())
    def scaled(a: torch.Tensor, by: float) -> torch.Tensor:
        return torch.from_numpy(a.detach().numpy() * by)

    @scaled.register_fake
    def _(a, by):
        return torch.empty_like(a)

    scaled.register_autograd(
        lambda ctx, dy: (dy * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
    )
    a = torch.randn(3, requires_grad=True)
    joint = grad_transform_on_trace(traced(scaled, a, by=3.0))
    output, (gradient,) = run(joint, a, torch.ones(3))
    torch.testing.assert_close(output, a.detach() * 3)
    torch.testing.assert_close(gradient, torch.full((3,), 3.0))


def test_autograd_function_keeps_its_own_backward():
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 100

    a = torch.randn(3, requires_grad=True)
    joint = grad_transform_on_trace(traced(Odd.apply, a))
    output, (gradient,) = run(joint, a, torch.ones(3))
    torch.testing.assert_close(output, a.detach() * 2)
    torch.testing.assert_close(gradient, torch.full((3,), 100.0))


def test_refuses_a_function_that_writes_to_its_arguments():
    def writes(a):
        return a.add_(1)

    with pytest.raises(UnsupportedMutationError, match="writes writes to its arguments"):
        traced(writes, torch.ones(3))


def test_what_draws_is_tagged():
    assert OpTags.RANDOM in opaque(torch.poisson).tags
    assert OpTags.RANDOM not in opaque(torch.linalg.inv).tags
