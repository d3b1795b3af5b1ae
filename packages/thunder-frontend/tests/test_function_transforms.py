"""``torch.func`` and its kin inside of programs. Truth is what eager does."""

import copy

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from against_eager import same_as_eager
from function_transforms import PROGRAMS
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacrev, jvp, linearize, stack_module_state, vjp, vmap
from torch.testing import assert_close
from versions import needs_torch

from thunder_frontend import cache_misses, jit, last_traces
from thunder_guards.errors import AcquisitionError

LATER = {"selects_by_tensors": needs_torch(2, 11, "refuses this under vmap")}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LATER.get(name, ())) for name in PROGRAMS])
def test_programs_that_transform_functions(name):
    torch.manual_seed(0)
    x, y, w = torch.randn(4, 3), torch.randn(3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    same_as_eager(PROGRAMS[name], x, y, w, strides=False)


def test_functions_of_levels_that_user_code_replaced_are_called(monkeypatch):
    make_dual = forward_ad.make_dual
    monkeypatch.setattr(
        forward_ad, "make_dual", lambda x, tangent, *, level=None: make_dual(x, 2 * tangent, level=level)
    )
    same_as_eager(lambda x: jvp(torch.sin, (x,), (torch.ones_like(x),)), torch.randn(3))


def test_functions_of_vmap_that_a_library_replaced_are_called(monkeypatch):
    begins, ends = torch._functorch.vmap._create_batched_inputs, torch._functorch.vmap._unwrap_batched
    monkeypatch.setattr(
        torch._functorch.vmap, "_create_batched_inputs",
        lambda dims, args, level, structure: begins(dims, [2 * a for a in args], level, structure),
    )  # fmt: skip
    monkeypatch.setattr(torch._functorch.vmap, "_unwrap_batched", lambda *args: ends(*args) + 1)
    same_as_eager(lambda x: vmap(torch.sin)(x), torch.randn(3, 4))


def small_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def gradients_of(result, module):
    return torch.autograd.grad(result, list(module.parameters()))


def examples():
    torch.manual_seed(1)
    return torch.randn(4, 3), torch.tensor([0, 1, 1, 0])


def test_gradients_per_sample():
    net, (x, labels) = small_network(), examples()
    compiled = jit(per_sample := lambda x, labels: gradients_per_sample(net, x, labels))
    assert_close(compiled(x, labels), per_sample(x, labels))
    loss = F.cross_entropy(net(x[1:2]), labels[1:2])
    for gradient, expected in zip(compiled(x, labels).values(), gradients_of(loss, net), strict=True):
        assert_close(gradient[1], expected)
    assert cache_misses(compiled) == 1


def gradients_per_sample(net, x, labels):
    def loss(parameters, sample, label):
        return F.cross_entropy(functional_call(net, parameters, (sample[None],)), label[None])

    detached = {name: p.detach() for name, p in net.named_parameters()}
    return vmap(grad(loss), in_dims=(None, 0, 0))(detached, x, labels)


def test_a_batch_is_detached_in_one_call():
    compiled = jit(lambda x: vmap(lambda t: (t * 2).detach())(x))
    x = torch.randn(4, 3, requires_grad=True)
    assert torch.equal(compiled(x), x * 2) and not compiled(x).requires_grad
    paths = {b.symbol.path for b in last_traces(compiled)[-1].bound_symbols if b.symbol.module != "python"}
    assert paths == {"torch.mul", "torch.detach"}


def test_meta_learning():
    net, (x, labels) = small_network(), examples()
    parameters = dict(net.named_parameters())

    def loss(parameters, x, labels):
        return F.cross_entropy(functional_call(net, parameters, (x,)), labels)

    def adapted(x, labels):
        gradients = grad(loss)(parameters, x, labels)
        return loss({name: p - 0.1 * gradients[name] for name, p in parameters.items()}, x, labels)

    tasks, answers = torch.stack([x, -x, x.flip(0)]), torch.stack([labels, 1 - labels, labels])
    one_by_one = torch.stack([adapted(*task) for task in zip(tasks, answers, strict=True)]).mean()
    at_once = jit(lambda tasks, answers: vmap(adapted)(tasks, answers).mean())(tasks, answers)
    assert_close(at_once, one_by_one)
    assert_close(gradients_of(at_once, net), gradients_of(one_by_one, net))
    assert_close(gradients_of(jit(adapted)(x, labels), net), gradients_of(adapted(x, labels), net))


def test_gradient_penalties_train():
    net, (x, _) = small_network(), examples()

    def penalty(x):
        return (vmap(jacrev(net))(x).pow(2).sum((1, 2)) - 1).pow(2).mean()

    result = jit(penalty)(x)
    assert_close(result, penalty(x))
    assert_close(
        torch.autograd.grad(result, [p for n, p in net.named_parameters() if n != "2.bias"]),
        torch.autograd.grad(penalty(x), [p for n, p in net.named_parameters() if n != "2.bias"]),
    )


def test_neural_tangent_kernels():
    net, (x, _) = small_network(), examples()
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def output(parameters, x):
        return functional_call(net, parameters, (x[None],)).squeeze(0)

    def by_jacobians(a, b):
        left, right = [[j.flatten(2) for j in vmap(jacrev(output), (None, 0))(parameters, t).values()] for t in (a, b)]
        return torch.stack([torch.einsum("naf,mbf->nmab", i, j) for i, j in zip(left, right, strict=True)]).sum(0)

    def by_products(a, b):
        def pair(a, b):
            _, pullback = vjp(lambda p: output(p, a), parameters)
            return vmap(lambda v: jvp(lambda p: output(p, b), (parameters,), pullback(v))[1])(torch.eye(2))

        return vmap(vmap(pair, (None, 0)), (0, None))(a, b)

    expected = by_jacobians(x, x + 1)
    assert_close(jit(by_jacobians)(x, x + 1), expected)
    assert_close(jit(by_products)(x, x + 1).mT, expected)


def test_ensembles():
    nets = [copy.deepcopy(small_network()) for _ in range(3)]
    for seed, net in enumerate(nets):
        nn.init.normal_(net[0].weight, generator=torch.Generator().manual_seed(seed))
    (x, _), skeleton = examples(), copy.deepcopy(nets[0]).to("meta")
    stacked = stack_module_state(nets)

    def outputs(x):
        return vmap(lambda p, b: functional_call(skeleton, (p, b), (x,)))(*stacked)

    result = jit(outputs)(x)
    assert_close(result, torch.stack([net(x) for net in nets]))
    assert_close(
        torch.autograd.grad(result.sum(), list(stacked[0].values())),
        torch.autograd.grad(outputs(x).sum(), list(stacked[0].values())),
    )


def test_gradients_per_sample_of_convolutions():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3))
    compiled = jit(per_sample := lambda x, labels: gradients_per_sample(net, x, labels))
    x, labels = torch.randn(3, 1, 4, 4), torch.tensor([0, 1, 2])
    assert_close(compiled(x, labels), per_sample(x, labels))


def test_what_a_function_reads_is_guarded():
    class Scale(nn.Module):
        factor = 2.0

        def forward(self, x):
            return (x * self.factor).sum()

    module, x = Scale(), torch.ones(3)
    compiled = jit(lambda x: vmap(grad(module))(x[None]))
    assert_close(compiled(x), 2 * x[None])
    module.factor = 3.0
    assert_close(compiled(x), 3 * x[None])
    assert cache_misses(compiled) == 2


def test_random_numbers_under_vmap():
    x = torch.zeros(4, 3)
    different = jit(lambda x: vmap(lambda t: t + torch.rand(3), randomness="different")(x))(x)
    assert (different[0] != different[1]).all()
    same = jit(lambda x: vmap(lambda t: F.dropout(t + 1), randomness="same")(x))(x)
    assert (same == same[0]).all()
    with pytest.raises(RuntimeError, match="randomness"):
        jit(lambda x: vmap(lambda t: t + torch.rand(3))(x))(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: vmap(lambda t: t, in_dims=(0, 0))(x),
        lambda x: vmap(lambda t: t, in_dims=5)(x),
        lambda x: vmap(lambda t: 1)(x),
        lambda x: vmap(lambda t, s: t)(x, x.t()),
        lambda x: vmap(lambda t: t, out_dims=None)(x),
        lambda x: vmap(torch.sin, randomness="sometimes")(x),
        lambda x: grad(torch.sin)(x),
        lambda x: grad(lambda t: 1.0)(x),
        lambda x: grad(lambda t: t.sum(), argnums=1)(x),
        lambda x: grad(lambda t: t.add_(1).sum())(x),
        lambda x: grad(lambda t: (t * 2).detach().requires_grad_().sum())(x),
        lambda x: grad(lambda t: (x[0].add_(1) * t).sum())(x),
        lambda x: jvp(torch.sin, (x,), (x[0],)),
        lambda x: jvp(torch.sin, (x,), x),
        lambda x: vjp(torch.sin, x)[1]((x, x)),
        lambda x: vmap(lambda t: torch.zeros(3).mul_(t))(x),
    ],
)
def test_misuse_raises_what_eager_raises(function):
    x = torch.randn(4, 3)
    with pytest.raises(Exception) as expected:  # noqa: PT011  (whatever it is)
        function(x)
    with pytest.raises(type(expected.value)) as raised:
        jit(function)(x)
    assert str(raised.value).splitlines()[0][:60] == str(expected.value).splitlines()[0][:60]


def test_choices_by_values_of_examples_name_the_line():
    with pytest.raises(AcquisitionError, match=r"t\.sum\(\) > 0"):
        jit(lambda x: vmap(lambda t: t if t.sum() > 0 else -t)(x))(torch.randn(4, 3))


def test_examples_do_not_leave_their_function():
    kept = []
    with pytest.raises(AcquisitionError, match="another way than its results"):
        jit(lambda x: (vmap(lambda t: kept.append(t * 2) or t)(x), kept[0] + 1))(torch.randn(4, 3))


def test_examples_are_not_kept_by_objects():
    class Keeper(nn.Module):
        def forward(self, x):
            def keep(t):
                self.kept = t
                return t * 2

            return vmap(keep)(x)

    with pytest.raises(AcquisitionError, match="another way than its results"):
        jit(Keeper())(torch.randn(4, 3))


def test_an_exception_within_leaves_the_rest_of_the_program_as_it_was():
    def program(x):
        try:
            vmap(lambda t: t @ torch.ones(7))(x)
        except RuntimeError:
            return vmap(grad(lambda t: t.sin().sum()))(x)

    x = torch.randn(4, 3)
    assert_close(jit(program)(x), x.cos())


def test_compiled_functions_under_transforms_of_torch():
    compiled = jit(lambda x: (x**3).sum())
    x = torch.randn(4, 3)
    assert_close(vmap(grad(compiled))(x), 3 * x**2)
    assert_close(jit(lambda x: vmap(grad(compiled))(x))(x), 3 * x**2)


def test_gradients_per_sample_of_attention():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
    parameters, x = {name: p.detach() for name, p in layer.named_parameters()}, torch.randn(3, 5, 4)

    def gradients(x):
        return vmap(grad(lambda p, t: functional_call(layer, p, (t[None],)).sin().sum()), (None, 0))(parameters, x)

    expected = [torch.autograd.grad(layer(t[None]).sin().sum(), list(layer.parameters())) for t in x]
    assert_close(list(jit(gradients)(x).values()), [torch.stack(parts) for parts in zip(*expected, strict=True)])


def test_operations_that_pytorch_runs_whole():
    torch.manual_seed(0)
    a = torch.randn(4, 3, 3)
    a = a @ a.mT + torch.eye(3)

    def program(a):
        return (
            vmap(lambda m: (torch.linalg.eigvalsh(m), torch.linalg.solve(m, m[0])))(a),
            vmap(grad(lambda m: torch.linalg.slogdet(m)[1] + torch.linalg.eigvalsh(m).sum()))(a),
            hessian(torch.logdet)(a[0]),
        )

    same_as_eager(program, a, strides=False)


class Scaled(torch.autograd.Function):
    """Has a derivative that is not that of what it computes, so that it can be told from it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, v, k):
        return x * v * k, (x + v).sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.k = inputs[2]

    @staticmethod
    def backward(ctx, g, h):
        x, v = ctx.saved_tensors
        return g * v * ctx.k * 5 + h, g * x * 7 + h * 2, None


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: vmap(lambda t: Scaled.apply(w @ t, w[0], 2.0))(x),
        lambda x, w: vmap(lambda t: Scaled.apply(t, w[0], 2.0), in_dims=1)((w @ x.t()).t()[:3]),
        lambda x, w: vmap(grad(lambda t: Scaled.apply(w @ t, w[0], 2.0)[0].sin().sum()))(x),
        lambda x, w: vmap(vmap(lambda t, u: Scaled.apply(t * w[0, 0], u, 2.0)[0], (0, None)))(x, x[:, 0]),
        lambda x, w: grad(lambda x: vmap(lambda t: Scaled.apply(t, w[0], 2.0)[0])(x).sum())(x),
        lambda x, w: jacrev(lambda t: Scaled.apply(w @ t, t, 2.0)[0])(x[0]),
    ],
)
def test_functions_with_their_own_derivative(program):
    torch.manual_seed(0)
    same_as_eager(program, torch.randn(4, 3), torch.randn(3, 3, requires_grad=True), strides=False)


def test_gradients_of_what_is_linearized_go_to_tangents_alone():
    def program(x, t):
        output, push = linearize(torch.sin, x)
        return output, push(t)

    x, t = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for function in (program, jit(program)):
        output, pushed = function(x, t)
        of_primal, of_tangent = torch.autograd.grad(pushed.sum(), [x, t], allow_unused=True)
        assert of_primal is None
        assert_close(of_tangent, x.detach().cos())
        assert_close(torch.autograd.grad(output.sum(), x)[0], x.detach().cos())
