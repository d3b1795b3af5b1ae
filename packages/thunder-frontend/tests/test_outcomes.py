"""What Python sees of values that a program computes: a program for each outcome, and a check where it was seen."""

import random
import threading

import pytest
import torch
from torch import nn

from thunder_frontend import (
    AcquisitionError,
    DataDependentError,
    FallbackWarning,
    cache_misses,
    jit,
    last_traces,
    mark_dynamic,
)


def doubled_or_less(x):
    h = x.sin()
    if h.sum() > 0:
        return h * 2
    return h - 1


def halved(x):
    count = 0
    while x.abs().max() > 1:
        x, count = x / 2, count + 1
    return x, count


def looked_up(x, table):
    i = int(x.argmax())
    return x[i] * 2, table[i], f"{i}", list(range(i)), "abc"[i], x[:i]


def in_conditions(x):
    n = x.sum().item()
    kind = "big" if n > 3 else "small" if n else "none"
    return kind, x * (n > 3 and 2), not x.any(), bool(x[0] > x[1]) or None, [x for _ in range(2) if x.sum() > 3]


def used_as_truths(x):
    truth, other = (x > 0).all().item(), bool(x.sum() > 3)
    same = truth is True, other is not False, truth is other, truth is None, other is x
    return same, truth & other, True | truth, other ^ 1, truth << 2, 2**other, "ab"[truth], [x] * other


def listed(x):
    a, b, c = (x > 1).tolist()
    return {a: x, (b, c): -x}


def rows_that_are_kept(x):
    kept = x[x > 0] * 2
    first, *rest = torch.nonzero(x)
    total = torch.stack([row * i for i, row in enumerate(kept)]).sum() if len(kept) else x.sum()
    left, right = kept.tensor_split(2)
    return total + left.sum() * 3 - right.sum(), first, rest, len(kept.split(1))


def labels(x):
    return [(label, torch.nonzero(x == label).flatten().tolist()) for label in torch.unique(x.detach().round())]


def rows_that_are_written(x):
    kept = x.detach()[x > 0] * 2
    for i, row in enumerate(kept):
        row.add_(i)
    return kept


def packed(x):
    lengths = (x.detach().abs().long() + 1).clamp(max=3)
    rows = x.sin()[:, None, None] * torch.arange(6.0).view(3, 2)
    sequence = nn.utils.rnn.pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(sequence, batch_first=True)


def formatted(x):
    old = "%d" % x.argmax()  # noqa: UP031  (which asks the tensor for a number, in C)
    return old, f"{int(x.argmin()):03d}", format(int(x.argmax()), ">4"), "abc"[x.argmin()]


def found_in(x):
    return x * 2 if 1.0 in x else x, x[0] in x[1:], 4 not in x, "a" in "abc" and x.sum() in (3, x.sum())


PROGRAMS = {
    "branch": (doubled_or_less, ()),
    "loop": (halved, ()),
    "values": (looked_up, ({0: "a", 1: "b", 2: "c"},)),
    "conditions": (in_conditions, ()),
    "truths": (used_as_truths, ()),
    "lists": (listed, ()),
    "formats": (formatted, ()),
    "membership": (found_in, ()),
    "rows": (rows_that_are_kept, ()),
    "labels": (labels, ()),
    "writes": (rows_that_are_written, ()),
}
INPUTS = ([1.0, 2.0, 3.0], [4.0, 2.0, 1.0], [0.0, 0.0, 0.5], [-1.0, -2.0, -0.5], [1.0, 2.0, 3.0], [0.0, 4.0, 2.0])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_every_call_is_eagers_whatever_came_before(name, requires_grad):
    program, rest = PROGRAMS[name]
    compiled = jit(program)
    order = random.Random(0)
    for values in order.choices(INPUTS, k=20):
        x = torch.tensor(values, requires_grad=requires_grad)
        ours, eagers = (torch.utils._pytree.tree_leaves(f(x, *rest)) for f in (compiled, program))
        for our, eager in zip(ours, eagers, strict=True):
            assert type(our) is type(eager)
            if isinstance(eager, torch.Tensor):
                torch.testing.assert_close(our, eager, rtol=0, atol=0)
                if eager.requires_grad:
                    pair = [torch.autograd.grad(t.sum(), x)[0] for t in (our, eager)]
                    torch.testing.assert_close(*pair, rtol=0, atol=0)
            else:
                assert our == eager
    assert cache_misses(compiled) <= len(INPUTS)


def test_programs_show_what_they_check():
    compiled = jit(doubled_or_less)
    compiled(torch.ones(2))
    assert "Look(expected=True, as_truth=True" in str(last_traces(compiled)[-1])


def test_a_call_of_another_outcome_leaves_no_trace_of_the_first_try():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(()))
            self.seen = None

        def forward(self, x):
            self.total += 1
            x = nn.functional.dropout(x, 0.5)
            x.mul_(2)
            self.seen = x.shape
            if x.sum() > 4:
                self.total += 10
                x = nn.functional.dropout(x, 0.1)
            return x + torch.rand(3)

    ours, eager = Counts(), Counts()
    compiled = jit(ours)
    for seed in range(16):
        results = []
        for run in (compiled, eager):
            torch.manual_seed(seed)
            x = torch.ones(3)
            results.append((run(x), x, torch.get_rng_state()))
        torch.testing.assert_close(*results, rtol=0, atol=0)
        assert torch.equal(ours.total, eager.total) and ours.seen == eager.seen
    assert cache_misses(compiled) <= 3


def test_outcomes_are_bounded_and_then_the_frame_is_split_off():
    def text(x):
        return f"{int(x.sum())}".strip()

    compiled = jit(text, fallback="split", outcomes=3)
    with pytest.warns(FallbackWarning, match=r"saw more than 3 different things(.|\n)*test_outcomes.py"):
        assert [compiled(torch.full((2,), float(i))) for i in range(6)] == [f"{i * 2}" for i in range(6)]
    assert cache_misses(compiled) == 3
    refusing = jit(text, outcomes=3)
    with pytest.raises(DataDependentError, match="saw more than 3 different things"):
        for i in range(6):
            refusing(torch.full((2,), float(i)))


@pytest.mark.parametrize(("cache", "programs"), [("constant values", 4), ("auto", 3)])
def test_each_size_has_outcomes_of_its_own(cache, programs):
    compiled = jit(doubled_or_less, cache=cache)
    for sign in (1, -1, 1):
        for size in (2, 3):
            x = torch.full((size,), 1.0 * sign)
            torch.testing.assert_close(compiled(x), doubled_or_less(x))
    assert cache_misses(compiled) == programs


def test_what_is_read_on_one_way_only_is_guarded_on_that_way():
    settings = {"scale": 2.0}

    def program(x):
        return x * settings["scale"] if x.sum() > 0 else x

    compiled = jit(program)
    for scale in (2.0, 3.0):
        settings["scale"] = scale
        for sign in (1, -1, -1, 1):
            x = torch.full((2,), 1.0 * sign)
            assert torch.equal(compiled(x), program(x))
    assert cache_misses(compiled) == 3


def test_outcomes_that_alternate_under_threads_are_eagers():
    compiled, wrong = jit(doubled_or_less), []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(30):
            x = torch.randn(4, generator=generator)
            if not torch.equal(compiled(x), doubled_or_less(x)):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_outcome_of_most_calls_is_tried_first():
    compiled = jit(doubled_or_less)
    for sign in (1, -1, *[1] * 20):
        compiled(torch.full((2,), 1.0 * sign))
    first = compiled._dispatcher.proposed((torch.ones(2),), {})[0]
    assert first.program.path == (True,)


def test_branches_within_functions_that_are_transformed_stay_refused():
    with pytest.raises(DataDependentError, match="vmap|torch.func"):
        jit(lambda x: torch.vmap(lambda row: row if row.sum() > 0 else -row)(x))(torch.ones(2, 2))


def test_tensors_that_stand_for_integers_are_looked_at_where_operations_need_them():
    def classes(x):
        i = x.long()
        return torch.nn.functional.one_hot(i, max(i.max() + 2, 4))

    compiled = jit(classes)
    for largest in (5.0, 1.0, 7.0, 5.0):
        x = torch.tensor([1.0, largest, 0.0])
        assert torch.equal(compiled(x), classes(x))
    assert cache_misses(compiled) == 3


def test_a_refusal_behind_a_branch_is_told_of_instead_of_the_branch():
    def program(x):
        y = x * 2 if x.sum() > 0 else x
        return y + torch.sparse_coo_tensor([[0]], [1.0], (3,), check_invariants=True).to_dense()

    with pytest.raises(AcquisitionError, match="sparse_coo"):
        jit(program)(torch.ones(3))


def test_what_a_tensor_cannot_hold_raises_as_in_eager():
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed in a <class 'str'>"):
        jit(lambda x: "a" in x)(torch.ones(2))


def test_sequences_that_are_packed_by_computed_lengths_are_padded_as_in_eager():
    compiled = jit(packed, fallback="split")
    for values in INPUTS:
        torch.testing.assert_close(compiled(torch.tensor(values)), packed(torch.tensor(values)), rtol=0, atol=0)


@pytest.mark.parametrize(
    "squeezes",
    [
        lambda x: (x > 0).nonzero().squeeze(),
        lambda x: (x > 0).nonzero().squeeze(-1),
        lambda x: x[x > 0].squeeze(),
        lambda x: torch.squeeze(x[x > 0][None], dim=1) * 2,
        lambda x: x[x > 0][:, None, None].squeeze((0, -1)),
        lambda x: x[torch.where(x > 0)[0].squeeze(0)].exp(),
    ],
)
def test_a_dimension_whose_size_turns_out_to_be_one_is_squeezed(squeezes):
    compiled = jit(squeezes)
    for values in ([1.0, 2, 3], [1, -1, 3], [-1, 2, -1], [1, -1, -1], [-1, -1, -1], [1, 2, -1], [-1, -1, 4]):
        results, gradients = [], []
        for function in (squeezes, compiled):
            x = torch.tensor(values, dtype=torch.float32, requires_grad=True)
            results.append(function(x))
            if results[-1].requires_grad:
                results[-1].square().sum().backward()
            gradients.append(x.grad)
        assert results[1].shape == results[0].shape
        torch.testing.assert_close((results[1], gradients[1]), (results[0], gradients[0]))
    assert cache_misses(compiled) <= 3


class Settled(torch.autograd.Function):
    """Draws, and looks at a value on its way."""

    @staticmethod
    def forward(ctx, x):
        y = x * torch.rand(()) + random.random()
        if x.sum() > 0:
            y = y + random.random()
        ctx.save_for_backward(x)
        return y * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x


def in_a_custom_function(x):
    return Settled.apply(x.sin()).sum() * random.random()


def after_a_custom_function(x):
    y = Settled.apply(x.sin() + torch.rand(3))
    if y.sum() > 1.5:
        y = y * random.random()
    return Settled.apply(y).sum() if y.min() > 0 else y.mean()


@pytest.mark.parametrize("program", [in_a_custom_function, after_a_custom_function])
@pytest.mark.parametrize("trained", [True, False])
def test_values_are_looked_at_in_custom_functions_that_draw_and_after_them(program, trained):
    compiled = jit(program, fallback="error")

    def called(function, x):
        torch.manual_seed(0), random.seed(0)
        x = x.clone().requires_grad_(trained)
        y = function(x)
        if trained:
            y.backward()
        return y, x.grad, torch.rand(2), random.random()

    for _ in range(2):
        for x in (torch.ones(3), -torch.ones(3), torch.tensor([0.1, 0.2, 0.1]), torch.tensor([-0.1, -0.3, 0.0])):
            torch.testing.assert_close(called(compiled, x), called(program, x))


class Turned(torch.autograd.Function):
    """Calls an operation whose metadata PyTorch tells."""

    @staticmethod
    def forward(ctx, x):
        return x.mT * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.mT * 2


def test_values_that_custom_functions_compute_are_looked_at():
    def program(x):
        y = Turned.apply(x)
        return y if torch.equal(y, x) else y + 1

    compiled = jit(program, fallback="error")
    for x in (torch.zeros(7, 7), torch.ones(7, 7), torch.randn(7, 7)):
        x.requires_grad_()
        torch.testing.assert_close(compiled(x), program(x))


class Sided(torch.autograd.Function):
    """Looks at a value in its derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 5 if x.sum() > 0 else gradient * 7


def test_derivatives_of_custom_functions_that_look_at_values_are_those_for_these():
    def program(x):
        return Sided.apply(x.sin()).sum()

    compiled = jit(program, fallback="error")
    for x in (torch.ones(3), -torch.ones(3), -torch.ones(3), torch.ones(3)):
        ours, eagers = x.clone().requires_grad_(), x.clone().requires_grad_()
        compiled(ours).backward(), program(eagers).backward()
        torch.testing.assert_close(ours.grad, eagers.grad)
    assert cache_misses(compiled) == 2


class Weighed(torch.autograd.Function):
    """Looks at the gradient that it is given."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 5 if gradient.sum() > 0 else gradient * 7


def test_an_error_names_the_line_that_looks_at_a_gradient():
    with pytest.raises(DataDependentError, match=r"in backward: return gradient \* 5 if"):
        jit(lambda x: Weighed.apply(x.sin()).sum(), fallback="error")(torch.ones(3, requires_grad=True))


def skips(model, x):
    loss = nn.functional.dropout(model(x), 0.5).square().mean()
    loss.backward()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    if norm.isfinite():
        with torch.no_grad():
            for p in model.parameters():
                p -= p.grad * torch.rand(()) / max(int(norm), 1)
    return loss.detach()


def goes_on(model, x):
    model(x).square().mean().backward()
    if model.weight.grad.sum() > 0:
        (model(x * 2) * torch.rand(())).sum().backward()
    noise = torch.rand(2)
    return noise if model.bias.grad[0] > noise[0] else x.sum()


def uses_both(model, x):
    (found,) = torch.autograd.grad(model(x).square().sum(), model.bias)
    Weighs.apply(model(x)).sum().backward()
    return found * 2 if found[0] > 0 else model.weight.grad.clone()


class Weighs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.rand(())

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 5


@pytest.mark.parametrize("step", [skips, goes_on, uses_both])
def test_values_are_looked_at_after_backward(step):
    models = [nn.Linear(3, 2) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    compiled = jit(step)
    for index, scale in enumerate((1.0, -1.0, float("inf"), 3.0, 0.0, -9.0)):
        results, states = [], []
        for model, run in zip(models, (step, compiled), strict=True):
            torch.manual_seed(index)
            results.append(run(model, torch.tensor([[1.0, -2.0, 0.5], [0.5, 0.0, 1.0]]) * scale))
            states.append(torch.get_rng_state())
            if not all(p.grad.isfinite().all() for p in model.parameters()):
                model.zero_grad()
        torch.testing.assert_close(results[1], results[0], equal_nan=True)
        torch.testing.assert_close(states[1], states[0])
        torch.testing.assert_close([p.grad for p in models[1].parameters()], [p.grad for p in models[0].parameters()])
        torch.testing.assert_close(models[1].state_dict(), models[0].state_dict())


def test_a_value_is_looked_at_after_a_backward_pass_of_dynamic_sizes():
    def program(x, weight):
        (x * weight.sum()).sum().backward()
        if weight.grad.sum() > 0:
            return x.sin()
        return x.cos()

    compiled = jit(program, cache="symbolic values", fallback="error")
    for size, sign in ((2, 1), (3, 1), (4, -1), (5, -1), (6, 1)):
        weights = [torch.ones(3, requires_grad=True) for _ in range(2)]
        x = mark_dynamic(sign * torch.rand(size, 3), 0)
        torch.testing.assert_close(compiled(x, weights[0]), program(x, weights[1]))
        torch.testing.assert_close(weights[0].grad, weights[1].grad)
    assert cache_misses(compiled) <= 3
