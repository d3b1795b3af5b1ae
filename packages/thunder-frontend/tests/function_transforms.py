"""Programs that transform functions: each takes the batch ``x``, the vector ``y`` and the matrix ``w``."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.autograd import forward_ad
from torch.func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

PROGRAMS: dict[str, Callable[..., Any]] = {}

gradient_of_squares = grad(lambda t: (t**2).sum())
products_with = torch.vmap(lambda a, b: a @ b, in_dims=(0, None))


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """File a program under its name."""
    PROGRAMS[function.__name__] = function
    return function


@program
def gradients_of_what_reads_a_parameter(x, y, w):
    return grad(lambda t: (w @ t).sin().sum())(y)


@program
def gradients_of_each_example(x, y, w):
    return vmap(grad(lambda t: (w @ t).sin().sum()))(x)


@program
def detached_for_each_example(x, y, w):
    return vmap(lambda t, m: (t * m.detach() + t.detach(), (m @ t).sin().detach()), (1, None), 1)(x.t() * 2, w)


@program
def gradients_of_gradients(x, y, w):
    return grad(lambda t: grad(lambda u: (w @ u).sin().sum())(t).sum())(y)


@program
def several_arguments_and_something_beside(x, y, w):
    return grad(lambda t, s: ((t * s).sum(), (t, {"k": s * t})), argnums=(0, 1), has_aux=True)(y, w[0])


@program
def gradient_and_value(x, y, w):
    return grad_and_value(lambda p: (p["a"] * p["b"][0]).sum())({"a": y, "b": [w[0]]})


@program
def jacobian_in_reverse(x, y, w):
    return jacrev(lambda t, s: {"a": (w @ t).sin() * s, "b": t.sum()}, argnums=(0, 1))(y, y * 2)


@program
def jacobian_in_chunks(x, y, w):
    return jacrev(lambda t: (w @ t).sin(), chunk_size=2)(y), jacrev(lambda t: (w @ t).sin(), chunk_size=1)(y)


@program
def jacobian_forward(x, y, w):
    return jacfwd(lambda t: ((w @ t).sin(), t.sum()), has_aux=True)(y)


@program
def hessian_of_each_example(x, y, w):
    return vmap(hessian(lambda t: (w @ t).sin().sum()))(x)


@program
def hessian_by_other_ways(x, y, w):
    def f(t):
        return (w @ t).sin().prod()

    return jacrev(jacfwd(f))(y), jacfwd(jacfwd(f))(y), jacrev(jacrev(f))(y)


@program
def hessian_vector_product(x, y, w):
    return jvp(grad(lambda t: (w @ t).sin().sum()), (y,), (y * 2,))


@program
def pullback_used_twice(x, y, w):
    output, pullback = vjp(lambda t: ((w @ t).sin(), t.exp()), y)
    return output, pullback((y, y)), pullback((2 * y, y))


@program
def pullback_made_without_gradients(x, y, w):
    with torch.no_grad():
        output, pullback = vjp(lambda t: (w @ t).sin(), y)
        return output, pullback(y), jacrev(lambda t: (w @ t).sin())(y)


@program
def pullback_used_without_gradients(x, y, w):
    _, pullback = vjp(lambda t: (w @ t).sin(), y)
    with torch.no_grad():
        return pullback(y)


@program
def constants_within(x, y, w):
    def f(t):
        with torch.no_grad():
            c = t**2
        return (t - c + t.detach() * t).sum()

    return grad(f)(y), jvp(f, (y,), (y,)), vmap(grad(f))(x)


@program
def linear_part(x, y, w):
    y = y.detach()
    m = w.detach()
    output, push = linearize(lambda t, s: ((m @ t).sin() * s.cos(), t.exp()), y, y * 2)
    return output, push(y, y), push(2 * y, y), vmap(push, in_dims=(0, None))(torch.stack([y, y + 1]), y)


@program
def functional_form(x, y, w):
    return functionalize(lambda t: (t * 2).add_(1))(y)


@program
def batches_of_batches(x, y, w):
    return vmap(vmap(lambda a, b: a * b + w[0, 0]), in_dims=(0, None))(x, y)


@program
def batches_in_containers(x, y, w):
    def f(tree, scale, *, shift):
        a, (b,) = tree["a"], tree["b"]
        return {"sum": a + b * scale, "parts": (a.sum(), b)}

    return vmap(f, in_dims=({"a": 0, "b": (1,)}, None), out_dims={"sum": 1, "parts": (0, -1)})(
        {"a": x, "b": (x.t(),)}, y, shift=y
    )


@program
def batches_in_chunks(x, y, w):
    return vmap(lambda t: (w @ t).sin(), chunk_size=3)(x)


@program
def results_that_read_no_batch(x, y, w):
    return vmap(lambda t: (w @ y, t.clone()), out_dims=(0, 1))(x)


@program
def results_without_batch(x, y, w):
    return vmap(lambda t: (w @ y, t + y), out_dims=(None, 0))(x)


@program
def results_that_are_arguments(x, y, w):
    return [t * 1 for t in vmap(lambda a, b: (a, b, a), in_dims=(0, 1), out_dims=(0, 0, 1))(x, x.t())]


@program
def writes_to_intermediates(x, y, w):
    def f(t):
        z = (t * 2).add_(1).mul_(t)
        z[0] = t[1]
        z[1:] *= 2
        return z

    return vmap(f)(x), grad(lambda t: f(t).sum())(y), jvp(f, (y,), (y,))


@program
def writes_to_arguments(x, y, w):
    z = x.clone()
    return vmap(lambda t: t.mul_(2).sum())(z), z


@program
def writes_to_what_is_not_differentiated(x, y, w):
    z = x[0].clone()
    return grad(lambda t, s: (s.add_(1)[:2] * t[:2]).sum())(y, z), z


@program
def writes_to_results_that_are_views(x, y, w):
    z, v = x.clone(), x.clone()
    parts = vmap(lambda t: t[1:].view(1, 2), out_dims=1)(z)
    parts.add_(1)
    halves = vmap(lambda t: t.split([1, 2])[1])(v)
    v.mul_(2)
    return parts * 1, z, halves * 1, v


@program
def selects_by_tensors(x, y, w):
    index = torch.tensor([2, 0, 1, 1])
    return vmap(lambda t, i: (t[i], torch.where(t > 0, t, -t), t.argmax(), t.sort().values))(x, index)


@program
def attention_with_masks(x, y, w):
    q = torch.arange(2 * 3 * 4 * 8.0).reshape(2, 3, 4, 8).sin() * y[0]
    mask = torch.ones(2, 4, 4, dtype=torch.bool).tril()
    masked = vmap(lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m))(q, mask)
    return masked, vmap(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), in_dims=1)(q)


@program
def masks_of_positions(x, y, w):
    def mask(b, h, i, j):
        return (i >= j) & (i - j < 3)

    for dims in [(None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)]:
        mask = vmap(mask, in_dims=dims, out_dims=0)
    return mask(torch.arange(2), torch.arange(1), torch.arange(4), torch.arange(5))


@program
def made_outside(x, y, w):
    return gradient_of_squares(y * 2), products_with(x, y)


@program
def dual_tensors(x, y, w):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(y, y * 2)
        result = forward_ad.unpack_dual((w @ dual).sin().cumsum(0))
        constant = forward_ad.unpack_dual(y * 3)
    return result.primal, result.tangent, constant.tangent is None


@program
def jacobians_of_autograd(x, y, w):
    def f(t):
        return (t.sin() * t * w.detach()[0]).cumsum(0)

    y = y.detach()
    return (
        torch.autograd.functional.jacobian(f, y),
        torch.autograd.functional.jacobian(f, y, vectorize=True),
        torch.autograd.functional.jacobian(f, y, vectorize=True, strategy="forward-mode"),
        torch.autograd.functional.hessian(lambda t: f(t).sum(), y),
        torch.autograd.functional.vhp(lambda t: f(t).sum(), y, y),
        torch.autograd.functional.hvp(lambda t: f(t).sum(), y, y),
        torch.autograd.functional.vjp(f, y, y),
        torch.autograd.functional.jvp(f, y, y),
    )


@program
def batched_cotangents(x, y, w):
    return torch.autograd.grad((w @ y).sin(), (y, w), torch.eye(3), is_grads_batched=True)


@program
def laplacian(x, y, w):
    def u(t):
        return torch.tanh(w @ t).sum()

    return vmap(lambda t: jacfwd(jacrev(u))(t).trace())(x), vmap(lambda t: hessian(u)(t).diagonal().sum())(x).mean()


@program
def running_statistics(x, y, w):
    mean, variance = torch.zeros(3), torch.ones(3)
    norm = F.batch_norm
    return grad(lambda t: norm(t * y, mean, variance, training=True).sin().sum())(x), mean * 1, variance * 1
