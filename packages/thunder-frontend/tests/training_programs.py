"""Programs that train, watch and debug, by what PyTorch has for it: ``wrap`` compiles, or not."""

import gc
import threading
import weakref

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F  # noqa: N812
from autograd_programs import leaf, program
from torch import nn
from torch.utils.checkpoint import checkpoint


@program
def gradient_penalty(wrap):
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    j = wrap(m)
    x = leaf(2, 3)
    (g,) = torch.autograd.grad(j(x).sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).mean().backward()
    return [p.grad for p in m.parameters()]


@program
def tensor_hooks(wrap):
    x = leaf(3)
    seen = []
    x.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    y = wrap(lambda a: a.sin())(x)
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    return x.grad, seen


@program
def retain_grad(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin())(x)
    y.retain_grad()
    (y * 2).sum().backward()
    return y.grad, x.grad


@program
def post_acc_hook(wrap):
    x = leaf(3)
    s = []
    x.register_post_accumulate_grad_hook(lambda p: s.append(p.grad.clone()))
    wrap(lambda a: a.sin())(x).sum().backward()
    return s


@program
def accumulate(wrap):
    m = nn.Linear(3, 2)
    j = wrap(m)
    for _ in range(3):
        j(torch.randn(4, 3)).sum().backward()
    return m.weight.grad


@program
def saved_hooks(wrap):
    n = [0]

    def pack(t):
        n[0] += 1
        return t

    x = leaf(3)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t * 2):
        y = wrap(lambda a: a.sin())(x)
    y.sum().backward()
    return x.grad, n[0] > 0


def gradient_of_squares(x):
    (g,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    return g * x


def backward_of_squares(x):
    inner = x.detach().requires_grad_()
    (inner * inner).sum().backward()
    return inner.grad * x


@program
def saved_hooks_around_inner_gradients(wrap):
    found = []
    for function in (gradient_of_squares, backward_of_squares):
        run = wrap(function)
        for _ in range(2):
            x = leaf(3)
            run(x).sum().backward()
            found.append(x.grad)
            x = leaf(3)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
                y = run(x)
            y.sum().backward()
            found += [y, x.grad]
    return found


@program
def save_on_cpu(wrap):
    x = leaf(3)
    with torch.autograd.graph.save_on_cpu():
        y = wrap(lambda a: a.sin() * a.exp())(x)
    y.sum().backward()
    return x.grad


@program
def disable_saved(wrap):
    x = leaf(3)
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks"):
        y = wrap(lambda a: a.sin())(x)
    y.sum().backward()
    return x.grad


@program
def anomaly(wrap):
    x = leaf(3)
    with torch.autograd.detect_anomaly():
        wrap(lambda a: (a * 0 - 1).sqrt())(x).sum().backward()


@program
def anomaly_ok(wrap):
    x = leaf(3)
    with torch.autograd.detect_anomaly():
        wrap(lambda a: (a * a).sqrt())(x).sum().backward()
    return x.grad


@program
def scaler(wrap):
    m = nn.Linear(3, 2)
    j = wrap(m)
    o = torch.optim.SGD(m.parameters(), 0.1)
    s = torch.amp.GradScaler("cpu", init_scale=8.0)
    for _ in range(2):
        o.zero_grad()
        loss = j(torch.randn(4, 3)).square().mean()
        s.scale(loss).backward()
        s.unscale_(o)
        s.step(o)
        s.update()
    return m.weight, s.get_scale()


@program
def scaler_inf(wrap):
    m = nn.Linear(3, 2)
    j = wrap(m)
    o = torch.optim.SGD(m.parameters(), 0.1)
    s = torch.amp.GradScaler("cpu", init_scale=8.0)
    loss = (j(torch.full((4, 3), 1e38)) * 1e38).sum()
    s.scale(loss).backward()
    s.step(o)
    s.update()
    return m.weight, s.get_scale()


@program
def autocast_in(wrap):
    m = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    j = wrap(m)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = j(torch.randn(4, 3))
        loss = F.mse_loss(y.float(), torch.zeros(4, 2))
    loss.backward()
    return y, [p.grad for p in m.parameters()]


@program
def autocast_inside(wrap):
    def f(a, b):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return a @ b

    x, y = leaf(3, 4), leaf(4, 2)
    z = wrap(f)(x, y)
    z.float().sum().backward()
    return x.grad, z


@program
def batched_grads(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin() * a)(x)
    return torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)


@program
def jacobian(wrap):
    x = torch.randn(3)
    return torch.autograd.functional.jacobian(wrap(lambda a: a.sin() * a), x)


@program
def hessian(wrap):
    x = torch.randn(3)
    return torch.autograd.functional.hessian(wrap(lambda a: (a.sin() * a).sum()), x)


@program
def hvp(wrap):
    x = torch.randn(3)
    return torch.autograd.functional.hvp(wrap(lambda a: (a.sin() * a).sum()), x, torch.ones(3))


@program
def jvp_double_back(wrap):
    x = torch.randn(3)
    return torch.autograd.functional.jvp(wrap(lambda a: a.sin() * a), x, torch.ones(3))


@program
def func_grad(wrap):
    return torch.func.grad(wrap(lambda a: (a.sin() * a).sum()))(torch.randn(3))


@program
def forward_mode(wrap):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.randn(3), torch.ones(3))
        y = wrap(lambda a: a.sin())(x)
        return forward_ad.unpack_dual(y)


@program
def inference(wrap):
    x = leaf(3)
    with torch.inference_mode():
        y = wrap(lambda a: a.sin())(x)
        return y.requires_grad, y.is_inference()


@program
def inference_saved(wrap):
    with torch.inference_mode():
        t = torch.ones(3)
    x = leaf(3)
    y = wrap(lambda a, b: a * b)(x, t)
    y.sum().backward()
    return x.grad


@program
def freeing(wrap):
    x = leaf(1000)
    y = wrap(lambda a: a.sin().exp())(x * 1)
    r = weakref.ref(y)
    s = y.sum()
    del y
    s.backward()
    gc.collect()
    return r() is None


@program
def half_param_requires(wrap):
    m = nn.Linear(3, 2)
    m.bias.requires_grad_(False)
    j = wrap(m)
    j(torch.randn(4, 3)).sum().backward()
    return m.weight.grad, m.bias.grad


@program
def toggled(wrap):
    m = nn.Linear(3, 2)
    j = wrap(m)
    j(torch.randn(4, 3)).sum().backward()
    m.weight.requires_grad_(False)
    m.zero_grad()
    j(torch.randn(4, 3)).sum().backward()
    return m.weight.grad, m.bias.grad


@program
def checkpoint_inside(wrap):
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5))
    x = leaf(2, 3)
    y = wrap(lambda a: checkpoint(m, a, use_reentrant=False))(x)
    y.sum().backward()
    return x.grad


@program
def checkpoint_around(wrap):
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5))
    j = wrap(m)
    x = leaf(2, 3)
    y = checkpoint(j, x, use_reentrant=False)
    y.sum().backward()
    return x.grad


@program
def multi_grad_hook(wrap):
    x, y = leaf(3), leaf(3)
    s = []
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda g: s.append([t.clone() for t in g]))
    wrap(lambda a, b: a * b)(x, y).sum().backward()
    return s


@program
def grad_fn_hook(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin())(x)
    s = []
    y.grad_fn.register_hook(lambda gi, go: s.append((gi, go)))
    y.sum().backward()
    return s


@program
def grad_fn_prehook(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin())(x)
    y.grad_fn.register_prehook(lambda go: (go[0] * 2,))
    y.sum().backward()
    return x.grad


@program
def threads(wrap):
    x = leaf(3)
    f = wrap(lambda a: a.sin() * a)
    f(x)
    out = []

    def go():
        out.append(torch.autograd.grad(f(x).sum(), x)[0])

    ts = [threading.Thread(target=go) for _ in range(3)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return out


@program
def trainer_clip(wrap):
    m = nn.Linear(3, 2)
    j = wrap(m)
    j(torch.randn(4, 3)).sum().backward()
    n = torch.nn.utils.clip_grad_norm_(j.parameters(), 0.1)
    return n, m.weight.grad


@program
def results_kept_in_a_list_over_steps(wrap):
    x, kept = torch.arange(3.0).requires_grad_(), []

    def step(x, kept):
        y = x * 2 * x
        kept.append(y)
        return y.sum()

    run = wrap(step)
    for _ in range(3):
        run(x, kept).backward()
    return x.grad, len(kept)


@program
def an_input_without_gradient_that_ran_backward_already(wrap):
    x, w = torch.arange(3.0).requires_grad_(), torch.ones(3, requires_grad=True)
    y = w * w
    y.sum().backward()
    a, b = wrap(lambda x, y: (x * y.detach(), y.shape[0] * x))(x, y)
    (a + b).sum().backward()
    return x.grad, w.grad


@program
def an_input_that_is_written_over_and_requires_grad_still(wrap):
    x = torch.arange(3.0).requires_grad_()

    def step(x):
        x[...] = 1
        return x.double(), x.sin()

    y = x * 2
    a, b = wrap(step)(y)
    (a + b).sum().backward()
    return a.requires_grad, b.requires_grad, y.requires_grad


@program
def results_that_are_views_are_written_to(wrap):
    x = torch.arange(9.0).reshape(3, 3).requires_grad_()
    for function in (lambda a: (a * 2)[1:], lambda a: (a @ a).reshape(-1), lambda a: F.linear(a[None], a)[0].t()):
        wrap(function)(x).mul_(3).sum().backward()
    for function in (lambda a: a.exp()[1:], lambda a: (a * 2).chunk(3), lambda a: (lambda b: (b, b[0]))(a * 2)):
        result = wrap(function)(x)
        (result if isinstance(result, torch.Tensor) else result[0]).sum().backward()
    return x.grad


@program
def a_written_view_of_what_backward_needs(wrap):
    x = torch.arange(3.0).requires_grad_()
    try:
        wrap(lambda a: a.exp()[1:])(x).mul_(3).sum().backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)


class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = x > 1
        ctx.save_for_backward(mask)
        ctx.mark_non_differentiable(mask)
        return x * 2, mask, x.argmax()

    @staticmethod
    def backward(ctx, grad, *others):
        (mask,) = ctx.saved_tensors
        return grad * mask


@program
def a_custom_function_with_a_mask(wrap):
    x = torch.arange(3.0).requires_grad_()
    y, mask, place = wrap(lambda a: Masked.apply(a * 3))(x)
    y.sum().backward()
    return x.grad, mask, place
