"""State that modules and tensors carry: buffers, caches, gradients, attributes, random numbers, copies."""

import copy
import io
import pickle
import warnings

import pytest
import torch
from against_eager import same_as_eager
from torch import nn
from torch.nn.utils import prune

from thunder_frontend import jit


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.calls = 0

    def forward(self, x):
        self.total = self.total + x.sum(0)
        self.calls += 1
        if not hasattr(self, "late"):
            self.register_buffer("late", torch.ones(3))
        self.late.add_(1)
        return x * self.calls + self.total + self.late


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(8, 3))
        self.position, self.seen = 0, []

    def forward(self, x):
        self.keys[self.position : self.position + x.shape[0]] = x
        self.position += x.shape[0]
        self.seen.append(x * 2)
        return self.keys.sum() + torch.cat(self.seen).sum()


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(1, 3)])
        self.layers = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
        self.layers["b"].weight = self.layers["a"].weight
        self.shifts = nn.ParameterDict({"k": nn.Parameter(torch.ones(3))})

    def forward(self, x):
        for scale in self.scales:
            x = x * scale
        return self.layers["b"](self.layers["a"](x)) + self.shifts["k"]


def hooked_with_keywords():
    module = nn.Linear(3, 3)
    module.register_forward_pre_hook(lambda m, a, k: ((a[0] + 1,), k), with_kwargs=True)
    module.register_forward_hook(lambda m, a, k, out: out * 2, with_kwargs=True)
    return module


def old_weight_norm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(nn.Linear(3, 3))


@pytest.mark.parametrize(
    "make",
    [
        Counts, Cache, Tables, hooked_with_keywords, old_weight_norm,
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)), lambda: nn.utils.spectral_norm(nn.Linear(3, 3)),
        lambda: nn.Dropout(0.5, inplace=True), lambda: nn.BatchNorm1d(3),
    ],
)  # fmt: skip
def test_modules_and_their_state_go_on_as_in_eager(make):
    modules = []
    for _ in range(2):
        torch.manual_seed(0)
        modules.append(make())
    eager, ours = modules
    compiled = jit(ours)
    for seed in range(3):
        x = torch.arange(6.0).reshape(2, 3) + seed
        results = []
        for function in (eager, compiled):
            torch.manual_seed(seed)
            results.append(function(x.clone()))
        torch.testing.assert_close(*results)
        for result in results:
            if result.requires_grad:
                result.sum().backward()
    torch.testing.assert_close(dict(eager.state_dict()), dict(ours.state_dict()))
    for a, b in zip(eager.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_copies_and_saved_states_of_a_compiled_module_work():
    module, x = nn.Linear(3, 3), torch.randn(2, 3)
    compiled = jit(module)
    compiled(x)
    apart = copy.deepcopy(compiled)
    apart.weight.data.zero_()
    torch.testing.assert_close(apart(x), apart.bias.expand(2, 3))
    torch.testing.assert_close(compiled(x), module(x))
    torch.testing.assert_close(pickle.loads(pickle.dumps(compiled))(x), module(x))
    other, file = nn.Linear(3, 3), io.BytesIO()
    torch.save(other.state_dict(), file)
    file.seek(0)
    for assign in (False, True):
        compiled.load_state_dict(torch.load(file), assign=assign)
        file.seek(0)
        torch.testing.assert_close(compiled(x), other(x))
    compiled.to(torch.float64)
    torch.testing.assert_close(compiled(x.double()), module(x.double()))
    module.weight.data = torch.ones(3, 6, dtype=torch.float64)[:, ::2]
    torch.testing.assert_close(compiled(x.double()), module(x.double()))


def steps(weight, x):
    (gradient,) = torch.autograd.grad((weight * x).sum(), weight)
    with torch.no_grad():
        weight.sub_(0.1 * gradient)
    return weight


def test_an_optimizer_step_inside_writes_the_parameter():
    eager = torch.ones(3, requires_grad=True)
    ours, x = eager.detach().clone().requires_grad_(), torch.arange(3.0)
    compiled = jit(steps)
    for _ in range(3):
        steps(eager, x)
        assert compiled(ours, x) is ours
        torch.testing.assert_close(ours, eager)
    assert ours.is_leaf and ours.requires_grad


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.clone().normal_(1, 2), lambda x: x.normal_(), lambda x: x.clone().bernoulli_(0.3),
        lambda x: x.clone().exponential_(),
        lambda x: x.clone().bernoulli_(torch.full_like(x, 0.5)), lambda x: x.uniform_() + torch.rand(3),
        lambda x: x.clone().random_(10),
        lambda x: nn.functional.dropout(x.clone(), 0.5, inplace=True), lambda x: torch.add(x, 1, out=torch.empty(0)),
        lambda x: torch.tensor([1.0, x[0, 0], 2]), lambda x: torch.tensor([[1, 2], [3, 4]]) + x.shape[0],
        lambda x: torch.as_tensor([1.0, 2.0, 3.0]) + x,
        lambda x: torch.autograd.grad(((y := x.detach().requires_grad_()) ** 3).sum(), y)[0],
        lambda x: torch.zeros_like(x).requires_grad,
    ],
)  # fmt: skip
def test_random_numbers_outputs_and_new_tensors_are_eagers(program):
    same_as_eager(program, torch.randn(2, 3))


def test_gradients_are_read_and_written():
    def program(p):
        p.grad.mul_(2)
        before = p.grad + 1
        p.grad = None
        return before

    compiled = jit(program)
    p = nn.Parameter(torch.ones(2))
    for value in (1.0, 5.0):
        gradient = p.grad = torch.full((2,), value)
        assert torch.equal(compiled(p), torch.full((2,), value * 2 + 1))
        assert p.grad is None and torch.equal(gradient, torch.full((2,), value * 2))


def test_attributes_given_to_tensors_arrive():
    def program(x):
        x.tag = "seen"
        y = x * 2
        y.tag = 3
        return y

    compiled = jit(program)
    for _ in range(2):
        x = torch.ones(2)
        assert compiled(x).tag == 3 and x.tag == "seen"


def test_what_is_exchanged_is_fetched_before_it_is_written():
    class Pair:
        pass

    def program(pair, x):
        pair.a, pair.b = pair.b, pair.a
        first = pair.a
        pair.a = [x]
        return first

    compiled = jit(program)
    for _ in range(2):
        pair = Pair()
        pair.a, pair.b = a, b = [1], [2]
        assert compiled(pair, torch.ones(1)) is b
        assert pair.b is a and len(pair.a) == 1


def test_a_module_that_lost_its_hooks_cannot_be_called_whatever_else_changes():
    net, factors = nn.Sequential(nn.Linear(2, 2)), {"a": 1}

    def program(x):
        return net(x) * factors["a"]

    compiled, x = jit(program), torch.ones(2)
    compiled(x)
    vars(net[0]).clear()
    for factor in (2, 3):
        factors["a"] = factor
        for function in (program, compiled):
            with pytest.raises(AttributeError, match="has no attribute '_backward_hooks'"):
                function(x)


def test_pruning_and_its_removal_leave_a_module_as_in_eager():
    def program(net, x):
        prune.l1_unstructured(net, "weight", amount=3)
        y = net(x)
        prune.remove(net, "weight")
        return y

    torch.manual_seed(0)
    net, x = nn.Linear(4, 5), torch.randn(2, 4)
    twin, compiled = copy.deepcopy(net), jit(program, fallback="error")
    for _ in range(2):
        assert torch.equal(compiled(net, x), program(twin, x))
        assert list(net.state_dict()) == list(twin.state_dict()) == ["bias", "weight"]
        assert torch.equal(net.weight, twin.weight) and type(net.weight) is nn.Parameter and not net._forward_pre_hooks


class HasDefault:
    n = 1


def test_an_attribute_that_a_program_sets_and_deletes_is_found_in_the_class_again():
    def program(owner, x):
        owner.n = 3
        y = x * owner.n
        del owner.n
        return y * owner.n

    owner, compiled = HasDefault(), jit(program, fallback="error")
    for _ in range(2):
        assert torch.equal(compiled(owner, torch.ones(2)), torch.full((2,), 3.0))
        assert vars(owner) == {}
