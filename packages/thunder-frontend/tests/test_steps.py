"""Whole steps of training in one compiled function: loss, ``backward()``, optimizer. Truth is what eager does."""

import copy

import pytest
import torch
from torch import optim
from torch.testing import assert_close

from thunder_frontend import cache_misses, jit, last_backward_traces, last_traces
from thunder_guards.errors import AcquisitionError


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(4, 8, bias=False), torch.nn.Linear(8, 2)
        self.norm = torch.nn.BatchNorm1d(8)
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


def data():
    torch.manual_seed(1)
    return [torch.randn(5, 4) for _ in range(10)]


def plain_step(model, optimizer):
    def step(x):
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def accumulating_step(model, optimizer):
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        for part in x.split(2):
            if part.shape[0] > 1:
                (model(part).pow(2).mean() / 2).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return norm

    return step


def step_with_closure(model, optimizer):
    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = model(x).abs().mean()
            torch.autograd.backward(loss)
            return loss

        return optimizer.step(closure)

    return step


def step_with_two_losses(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        y = model(x)
        first, second = y[:, 0].pow(2).mean(), y[:, 1].cos().sum()
        first.backward(retain_graph=True)
        second.backward(torch.tensor(0.5))
        optimizer.step()
        third = model(x).sum()
        third.backward()
        return first, third.detach()

    return step


def several_steps_in_one(model, optimizer):
    def step(x):
        losses = []
        for part in x.split((2, 3)):
            for _ in range(2):
                optimizer.zero_grad()
                loss = model(part).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss)
        return losses

    return step


def state_of(model, optimizer):
    grads = {n: p.grad for n, p in model.named_parameters()}
    states = [dict(optimizer.state[p]) for p in model.parameters() if p in optimizer.state]
    return model.state_dict(), grads, states


def both(make_step, make_optimizer, network=Network, dtype=torch.float32):
    """Run ten steps eagerly and compiled, and compare what they return and leave behind."""
    eager_model = network().to(dtype)
    our_model = copy.deepcopy(eager_model)
    eager_optimizer, our_optimizer = make_optimizer(eager_model), make_optimizer(our_model)
    eager, ours = make_step(eager_model, eager_optimizer), jit(make_step(our_model, our_optimizer))
    for x in data():
        expected, got = eager(x.to(dtype)), ours(x.to(dtype))
        assert_close(got, expected)
        assert_close(state_of(our_model, our_optimizer), state_of(eager_model, eager_optimizer))
    return ours, eager_model, our_model


OPTIMIZERS = {
    "sgd": (optim.SGD, {}),
    "sgd-momentum": (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd-lists": (optim.SGD, {"momentum": 0.9, "foreach": True}),
    "adam": (optim.Adam, {"amsgrad": True}),
    "adamw": (optim.AdamW, {}),
    "adamw-lists": (optim.AdamW, {"foreach": True}),
    "adamw-tensor": (optim.AdamW, {"lr": torch.tensor(0.05)}),
    "rmsprop-lists": (optim.RMSprop, {"momentum": 0.5, "foreach": True}),
    "adagrad": (optim.Adagrad, {}),
    "nadam": (optim.NAdam, {}),
    "adadelta-lists": (optim.Adadelta, {"foreach": True}),
    "adamax": (optim.Adamax, {}),
    "rprop": (optim.Rprop, {}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_are_those_of_eager(name):
    cls, options = OPTIMIZERS[name]
    ours, *_ = both(plain_step, lambda model: cls(model.parameters(), **{"lr": 0.05, **options}))

    assert cache_misses(ours) == 2  # the first step makes the state of the optimizer


@pytest.mark.parametrize(
    "make_step", [accumulating_step, step_with_closure, step_with_two_losses, several_steps_in_one]
)
def test_steps_of_other_kinds_are_those_of_eager(make_step):
    dtype = torch.float64  # where gradients are mathematically zero, AdamW makes steps of what was rounded
    ours, *_ = both(make_step, lambda model: optim.AdamW(model.parameters(), lr=0.05), dtype=dtype)

    assert cache_misses(ours) == 2


def test_groups_of_parameters_have_options_of_their_own():
    def make(model):
        return optim.SGD(
            [{"params": model.first.parameters(), "lr": 0.1}, {"params": model.second.parameters()}], lr=0.01
        )

    both(plain_step, make)


def test_a_changed_rate_is_noticed():
    eager_model = Network()
    our_model = copy.deepcopy(eager_model)
    eager_optimizer, our_optimizer = (optim.SGD(m.parameters(), lr=0.1) for m in (eager_model, our_model))
    eager, ours = plain_step(eager_model, eager_optimizer), jit(plain_step(our_model, our_optimizer))
    for rate in (0.1, 0.1, 0.5):
        for optimizer in (eager_optimizer, our_optimizer):
            optimizer.param_groups[0]["lr"] = rate
        assert_close(ours(data()[0]), eager(data()[0]))
    assert_close(our_model.state_dict(), eager_model.state_dict())


def test_a_parameter_that_is_exchanged_gets_a_state_of_its_own():
    model = Network()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = jit(plain_step(model, optimizer))
    x = data()[0]
    step(x), step(x), step(x)
    old = model.first.weight
    model.first.weight = torch.nn.Parameter(old.detach().clone())
    optimizer.param_groups[0]["params"] = list(model.parameters())
    reference = copy.deepcopy(model)
    before = optimizer.state[old]["momentum_buffer"].clone()

    step(x)

    reference(x).pow(2).mean().backward()
    assert_close(optimizer.state[model.first.weight]["momentum_buffer"], reference.first.weight.grad)
    assert_close(optimizer.state[old]["momentum_buffer"], before)


def test_gradients_share_no_memory():
    def step(a, b, c):
        (a + b + c.reshape(6)).sum().backward()

    given = [torch.ones(6, requires_grad=True), torch.ones(6, requires_grad=True), torch.ones(2, 3, requires_grad=True)]
    jit(step)(*given)

    assert len({t.grad.data_ptr() for t in given}) == 3
    given[0].grad.mul_(5)
    assert [t.grad.sum().item() for t in given] == [30.0, 6.0, 6.0]


def test_gradients_are_laid_out_as_their_leaves():
    leaf = torch.randn(3, 4).t().requires_grad_()
    expected = leaf.detach().requires_grad_()
    (expected * 2).exp().sum().backward()

    jit(lambda w: (w * 2).exp().sum().backward())(leaf)

    assert leaf.grad.stride() == expected.grad.stride()
    assert_close(leaf.grad, expected.grad)


@pytest.mark.parametrize("use", [lambda g: g, lambda g: g.view(-1), lambda g: g.view(-1)[:2].mul_(5), lambda g: g * 2])
@pytest.mark.parametrize(
    "loss",
    [
        lambda w, m: w.t() * m,
        lambda w, m: w.t() * m * w.t().exp(),
        lambda w, m: m[:, :2].t() @ w.t(),
        lambda w, m: w * m.t(),
        lambda w, m: (w.t() * m).t().sin() * w,
        lambda w, m: w.reshape(-1) * m.reshape(-1),
        lambda w, m: w.sum(0) * m.sum(1),
    ],
)
def test_what_a_step_makes_of_a_gradient_lies_where_the_gradient_does(loss, use):
    def step(w, m):
        loss(w, m).sum().backward()
        return use(w.grad)

    def called(function):
        w, m = torch.linspace(0, 1, 12).view(3, 4).requires_grad_(), torch.linspace(1, 2, 12).view(4, 3)
        made = function(w, m)
        made.add_(1)
        return made, made.stride(), made is w.grad, w.grad

    compiled = jit(step, fallback="error")
    for _ in range(2):
        assert_close(called(compiled), called(step))


def test_gradients_are_added_to_the_tensor_that_is_there():
    x = torch.ones(3, requires_grad=True)
    x.grad = before = torch.full((3,), 7.0)

    jit(lambda x: (x * 2).sum().backward())(x)

    assert x.grad is before
    assert_close(before, torch.full((3,), 9.0))


def test_gradients_of_leaves_made_inside():
    def program(x):
        inner = torch.ones(3, requires_grad=True)
        (inner * x).sum().backward()
        return inner, inner.grad * 2

    x = torch.arange(3.0)
    leaf, doubled = jit(program)(x)

    assert leaf.is_leaf and leaf.requires_grad
    assert_close(leaf.grad, x)
    assert_close(doubled, 2 * x)


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_a_gradient_with_a_gradient():
    def step(x):
        x.pow(3).sum().backward(create_graph=True)
        return x.grad.pow(2).sum()

    results = []
    for run in (step, jit(step)):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        results.append(torch.autograd.grad(run(x), x)[0])
    assert_close(results[1], results[0])


def to_zero(x):
    loss = x.exp().sum()
    gradient = torch.autograd.grad(loss, x)[0]
    x.data = x.data - 0.1 * gradient
    return loss


def penalised(x):
    loss = x.exp().sum()
    gradient = torch.autograd.grad(loss, x, create_graph=True)[0]
    return loss + gradient.pow(2).sum()


def of_a_sum(x):
    total = (x + 1).sum()
    torch.autograd.grad(total, x)
    return total


def of_a_part(x):
    y = x.exp()
    torch.autograd.grad((y * 2).sum(), y)
    return y


@pytest.mark.parametrize("function", [to_zero, penalised, of_a_sum, of_a_part])
def test_what_autograd_grad_went_through_has_a_derivative_again_if_nothing_of_it_was_freed(function):
    outcomes = []
    for run in (function, jit(function)):
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        result = run(x)
        assert result.requires_grad
        try:
            result.sum().backward()
            outcomes.append(x.grad)
        except RuntimeError as error:
            outcomes.append(str(error)[:40])
    assert str(outcomes[1]) == str(outcomes[0])


@pytest.mark.parametrize(
    "twice",
    [
        lambda loss, x: [torch.autograd.grad(loss, x)[0] for _ in range(2)],
        lambda loss, x: [loss.backward() for _ in range(2)],
        lambda loss, x: [torch.autograd.grad(loss, x)[0], loss.backward()],
    ],
)
def test_no_graph_is_gone_through_twice_unless_it_is_retained(twice):
    x = torch.ones(3, requires_grad=True)
    for run in (lambda f: f, jit):
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            run(lambda x: twice(x.exp().sum(), x))(x)
    linear = jit(lambda x: [torch.autograd.grad(total, x)[0] for total in [(x + 2).sum()] for _ in range(2)])(x)
    assert torch.equal(linear[0], linear[1])


def test_gradients_of_and_by_what_requires_none_are_refused():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        jit(lambda x, y: torch.autograd.grad(y.sum(), x))(x, y)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        jit(lambda x, y: torch.autograd.grad((x * y).sum(), y))(x, y)


def test_a_loss_that_was_differentiated_says_so_when_it_is_differentiated_again():
    x = torch.ones(3, requires_grad=True)

    def step(x):
        loss = x.exp().sum()
        loss.backward()
        return loss

    loss = jit(step)(x)
    assert loss.requires_grad
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_a_loss_whose_graph_is_kept_can_be_differentiated_again():
    x = torch.ones(3, requires_grad=True)

    def step(x):
        loss = x.exp().sum()
        loss.backward(retain_graph=True)
        return loss

    jit(step)(x).backward()

    assert_close(x.grad, 2 * torch.exp(torch.ones(3)))


def test_what_has_no_part_in_the_loss_keeps_its_graph():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x, y):
        x.exp().sum().backward()
        return y.exp()

    jit(step)(x, y).sum().backward()

    assert_close(y.grad, torch.exp(torch.ones(3)))
    assert_close(x.grad, torch.exp(torch.ones(3)))


def test_only_the_leaves_that_are_asked_for():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    jit(lambda x, y: (x * y).sum().backward(inputs=[y]))(x, y)

    assert x.grad is None
    assert_close(y.grad, torch.ones(3))


@pytest.mark.parametrize(
    ("program", "error", "match"),
    [
        (lambda x: (x * 2).backward(), RuntimeError, "only for scalar outputs"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "does not require grad"),
        (lambda x: (x * 2).backward(torch.ones(2)), RuntimeError, "Mismatch in shape"),
    ],
)
def test_errors_are_those_of_eager(program, error, match):
    for run in (program, jit(program)):
        with pytest.raises(error, match=match):
            run(torch.ones(3, requires_grad=True))


def test_what_cannot_be_done_is_said():
    outer = torch.ones(3, requires_grad=True)
    with pytest.raises(AcquisitionError, match="computed outside"):
        jit(lambda x: x.sum().backward())(outer * 2)
    hooked = torch.ones(3, requires_grad=True)
    hooked.register_hook(lambda gradient: gradient * 2)
    with pytest.raises(AcquisitionError, match="hooks"):
        jit(lambda x: x.sum().backward())(hooked)
    model = Network()
    optimizer = optim.AdamW(model.parameters(), fused=True)
    with pytest.raises(AcquisitionError, match="fused=False"):
        jit(plain_step(model, optimizer))(data()[0])
    assert all(p.grad is None for p in model.parameters())
    assert not optimizer.state


def test_the_program_that_runs_has_no_graph_to_keep():
    model = Network()
    step = jit(plain_step(model, optim.SGD(model.parameters(), lr=0.1)))
    step(data()[0])

    assert not last_backward_traces(step)
    assert "gradients" in str(last_traces(step)[0])
    assert "gradients" not in str(last_traces(step)[1])


def test_two_losses_meet_the_same_random_numbers():
    def step(x, w):
        h = torch.nn.functional.dropout(x @ w, 0.5)
        h = torch.nn.functional.dropout(torch.nn.functional.rrelu(h, training=True), 0.3)
        first, second = h.pow(2).sum(), h.cos().sum()
        first.backward(retain_graph=True)
        early = w.grad.clone()
        second.backward()
        return first.detach(), early, torch.rand(2)

    x, start = torch.randn(6, 8), torch.randn(8, 5)
    results = []
    for run in (step, jit(step)):
        torch.manual_seed(0)
        w = start.clone().requires_grad_()
        results.append((run(x, w), w.grad, torch.rand(2)))
    assert_close(results[1], results[0])


def test_two_losses_meet_the_derivative_that_the_user_wrote():
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.round()

        @staticmethod
        def backward(context, gradient):
            return gradient * 2

    def step(w):
        y = Rounded.apply(w * 3)
        y.sum().backward(retain_graph=True)
        (y * y).sum().backward()

    results = []
    for run in (step, jit(step)):
        w = torch.linspace(-1, 1, 5).requires_grad_()
        run(w)
        results.append(w.grad)
    assert_close(results[1], results[0])


def test_a_scaler_of_gradients_within_a_step_is_refused():
    model = Network()
    optimizer, scaler = optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")

    def step(x):
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    with pytest.raises(AcquisitionError, match="leave the scaler outside"):
        jit(step)(data()[0])


def test_functions_on_lists_take_those_of_the_caller():
    def update(parameters, gradients):
        torch._foreach_mul_(parameters, 2.0)
        torch._foreach_add_(parameters, gradients, alpha=-0.1)

    compiled = jit(update)
    found, expected = ([torch.ones(3), torch.ones(2)] for _ in range(2))
    gradients = [torch.arange(3.0), torch.ones(2)]
    for _ in range(2):
        compiled(found, gradients)
        update(expected, gradients)
    torch.testing.assert_close(found, expected)


def test_functions_on_lists_in_place_return_what_they_were_given():
    def update(parameters):
        updated = torch._foreach_add_(parameters, 1.0)
        return updated, [2 * p for p in updated]

    compiled = jit(update)
    for parameters in ([torch.ones(3)], (torch.ones(3),)):
        for call in range(4):
            updated, twice = compiled(parameters)
            assert updated is parameters
            assert_close(twice, [torch.full((3,), 2.0 * (call + 2))])


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=torch.tensor(0.1)),
        lambda p: optim.SGD(p, lr=torch.tensor(0.1), foreach=True),
        lambda p: optim.SGD(p, lr=torch.tensor(0.1), momentum=0.9, nesterov=True),
    ],
)
def test_a_learning_rate_may_be_a_tensor_that_changes(make):
    parameters, steps = [], []
    for wrap in (lambda f: f, jit):
        w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        optimizer = make([w])

        def step(w=w, optimizer=optimizer):
            w.grad = w.detach() * 2
            optimizer.step()

        parameters.append((w, optimizer))
        steps.append(wrap(step))
    for rate in (0.1, 0.5, 1.0):
        for (_, optimizer), step in zip(parameters, steps, strict=True):
            optimizer.param_groups[0]["lr"].fill_(rate)
            step()
    assert_close(parameters[1][0], parameters[0][0])
    assert cache_misses(steps[1]) <= 2


def test_who_asks_for_gradients_through_a_graph_that_is_freed_is_told():
    def program(x):
        y = x.sin()
        y.sum().backward()
        return y

    x = torch.ones(3, requires_grad=True)
    y = jit(program, fallback="error")(x)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y.sum(), x, allow_unused=True)
