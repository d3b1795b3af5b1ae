"""Compiled programs whose sizes and numbers depend on values: one program for all of them."""

import copy
import operator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves
from versions import ENDS_OF_SLICES, needs_torch

from thunder_frontend import cache_misses, jit
from thunder_guards.errors import DataDependentError

torch.manual_seed(0)
VALUES = [torch.randn(6, 4) for _ in range(3)] + [torch.ones(6, 4), -torch.ones(6, 4)]
LINEAR = nn.Linear(4, 4)


def masked_loss(x):
    mask = x[:, 0] > 0
    return F.cross_entropy(x[mask], (x > 0).long().sum(1)[mask] % 4, reduction="sum")


def experts(x):
    out, router = torch.zeros_like(x), (x.sum(-1) > 0).long()
    for i in range(2):
        idx = torch.where(router == i)[0]
        out.index_add_(0, idx, F.gelu(LINEAR(x[idx])) * (i + 1))
    return out


def experts_by_one_hot(x):
    out = torch.zeros_like(x)
    weights, chosen = torch.topk(torch.softmax(x, -1), 2, dim=-1)
    mask = F.one_hot(chosen, 4).permute(2, 1, 0)
    for i in range(4):
        idx, top = torch.where(mask[i])
        tokens = x[None, top].reshape(-1, x.shape[-1])
        out.index_add_(0, top, (LINEAR(tokens) * weights[top, idx, None]).to(x.dtype))
    return out


def written_by_mask(x):
    y, mask = x.clone(), x > 0
    y[mask] += 1
    y[mask] = y[mask] * 2
    return y


def written_beside_a_copy(x):
    places = torch.nonzero(x > 0)
    turned = places.T.contiguous()
    turned.add_(1)
    return places, turned


PROGRAMS = [
    lambda x: x[x > 0].sum(),
    lambda x: torch.nonzero(x),
    lambda x: x.masked_select(x > 0).mean(),
    lambda x: torch.where(x > 0),
    lambda x: torch.bincount((x.abs() * 3).long().flatten()),
    lambda x: x[x > 0].exp() * x[x > 0].shape[0],
    lambda x: x * x.max().item(),
    lambda x: x / float(x.detach().abs().sum()),
    lambda x: torch.zeros(int((x > 0).sum()), 3) + 1,
    lambda x: torch.ones(len(x[x > 0])),
    lambda x: x[x > 0].shape,
    lambda x: (x > 0).nonzero().shape[0] + 1,
    lambda x: (x > 0).sum().item(),
    lambda x: torch.equal(x, x.abs()),
    lambda x: x[x > 0].view(-1, 1) * 2 + 1,
    lambda x: torch.cat([x[x > 0], x[x < 0]]).softmax(0),
    pytest.param(lambda x: x[: (x[:, 0] > 0).sum().item()] * 2, marks=ENDS_OF_SLICES, id="slice"),
    lambda x: x.split([(x[:, 0] > 0).sum().item(), (x[:, 0] <= 0).sum().item()]),
    lambda x: F.layer_norm(x[x[:, 0] > 0], (4,)),
    lambda x: x[x[:, 0] > 0].T @ x[x[:, 0] > 0],
    lambda x: x[x > 0].sort()[0][:2],
    lambda x: x[x > 0].cumprod(0).unsqueeze(0),
    lambda x: x[x[:, 0] > 0, 1:3],
    lambda x: torch.repeat_interleave(x, (x[:, 0] > 0).long() + 1, dim=0).cumsum(0),
    masked_loss,
    lambda x: F.mse_loss(x[x.detach()[:, 0] > 0], x.detach().flip(0)[x.detach()[:, 0] > 0], reduction="sum"),
    lambda x: x[x > 0] + (x * 2)[x > 0],
    experts,
    experts_by_one_hot,
    written_by_mask,
    written_beside_a_copy,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: f"{p.__name__}_{p.__code__.co_firstlineno}")
def test_one_program_serves_any_number_of_hits_forward_and_backward(program):
    torch.manual_seed(0)  # eager's own rounding of some gradients comes near to what is allowed
    compiled = jit(program)
    torch.manual_seed(0)
    for value in VALUES:
        x, y = value.clone().requires_grad_(), value.clone().requires_grad_()
        found, expected = compiled(x), program(y)
        torch.testing.assert_close(found, expected, equal_nan=True)
        assert type(found) is type(expected)
        results = [(a, b) for a, b in zip(tensors(found), tensors(expected), strict=True) if b.requires_grad]
        if results:
            seeds = [torch.rand_like(b) for _, b in results]
            torch.autograd.backward([a for a, _ in results], seeds)
            torch.autograd.backward([b for _, b in results], seeds)
            torch.testing.assert_close(x.grad, y.grad, equal_nan=True)
    assert cache_misses(compiled) == 1


def tensors(value):
    return [t for t in (value if isinstance(value, tuple) else (value,)) if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("unique", [torch.unique, torch.unique_consecutive], ids=lambda f: f.__name__)
def test_unique_with_counts(unique):
    compiled = jit(lambda x: unique(x, return_counts=True))
    for x in VALUES:
        torch.testing.assert_close(compiled(x.round()), unique(x.round(), return_counts=True))
    assert cache_misses(compiled) == 1


def test_momentum_that_depends_on_the_number_of_batches():
    eager, module = nn.BatchNorm1d(4, momentum=None), nn.BatchNorm1d(4, momentum=None)
    compiled = jit(module)
    for x in VALUES:
        torch.testing.assert_close(compiled(x), eager(x))
        torch.testing.assert_close(module.running_var, eager.running_var)
    assert int(module.num_batches_tracked) == len(VALUES) and cache_misses(compiled) == 1


def test_statistics_of_selected_rows_train():
    class Selected(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.norm(self.linear(x[x[:, 0] > -1]))

    eager, module = Selected(), Selected()
    module.load_state_dict(eager.state_dict())
    compiled = jit(module)
    for x in VALUES[:3]:
        (eager(x) ** 2).sum().backward()
        (compiled(x) ** 2).sum().backward()
    for found, expected in zip(module.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(module.norm.running_mean, eager.norm.running_mean)


def empty_or_not(x):
    n = torch.nonzero(x).shape[0]
    if n == 0:
        return x
    return x * n


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (empty_or_not, ["dimension 0 of what", "nonzero returns", "== 0", "if n == 0:", "empty_or_not"]),
        (lambda x: x * 2 if x.sum().item() > 0 else x, ["what item() returns", "> 0"]),
        (lambda x: [i for i in range(x[x > 0].shape[0])], ["Python needs the value of"]),
        (lambda x: max(len(x[x > 0]), 3), ["< 3"]),
        (lambda x: {x[x > 0].shape[0]: 1}, ["Python needs the value of"]),
        (lambda x: len(f"{x.sum().item()}"), ["Python needs the value of"]),
        (lambda x: x * 2 if torch.allclose(x, x + 1) else x, ["!= 0"]),
        (lambda x: x.view(1, -1).nonzero().stride(), ["lies in memory", "stride"]),
        (lambda x: list(x[x > 0]), ["unbind"]),
        (lambda x: x[x > 0].tolist(), ["Python needs the value"]),
        (lambda x: max(x[0].tolist()), ["Tensor_tolist returns"]),
        (lambda x: torch.arange(x.abs().max().item()), ["arange"]),
    ],
)
def test_what_python_has_to_know_is_refused_with_the_place(program, words):
    with pytest.raises(DataDependentError) as caught:
        jit(program, outcomes=0)(VALUES[0])
    for word in [*words, "test_unknown_sizes.py"]:
        assert word in str(caught.value)


def test_a_refusal_leaves_everything_as_it_was():
    seen = []

    def program(x, fail):
        seen.append(1)
        n = x[x > 0].shape[0]
        x.add_(1)
        if fail and n > 3:
            return x
        return x * n

    compiled, x = jit(program, outcomes=0), VALUES[0].clone()
    with pytest.raises(DataDependentError):
        compiled(x, True)
    assert seen == [] and torch.equal(x, VALUES[0])
    torch.testing.assert_close(compiled(x, False), (VALUES[0] + 1) * int((VALUES[0] > 0).sum()))
    assert seen == [1] and torch.equal(x, VALUES[0] + 1)


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.ModuleList(Expert() for _ in range(3))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            idx = torch.where(chosen == i)[0]
            out = out.index_add(0, idx, expert(x[idx]) * weights[idx, None])
        return out


def test_a_mixture_of_experts_trains():
    eager, module = Experts(), Experts()
    module.load_state_dict(eager.state_dict())
    compiled = jit(module)
    for x in VALUES:
        expected, found = eager(x), compiled(x)
        torch.testing.assert_close(found, expected)
        expected.pow(2).sum().backward()
        found.pow(2).sum().backward()
    for a, b in zip(module.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize(
    "program",
    [
        lambda x, lengths: x.split(lengths.tolist()),
        lambda x, lengths: [part.sum() for part in x.split(lengths.tolist())],
        pytest.param(lambda x, lengths: [(x[:n] * 2).sum() for n in lengths.tolist()], marks=ENDS_OF_SLICES),
        lambda x, lengths: torch.arange(int(lengths.max()))[None] < lengths[:, None],
        lambda x, lengths: sum(lengths.tolist()) + lengths.max().item(),
    ],
)
def test_lengths_that_are_values(program):
    compiled, x = jit(program), VALUES[0].clone().requires_grad_()
    for lengths in ([2, 4], [5, 1], [6, 0], [0, 6]):
        torch.testing.assert_close(compiled(x, torch.tensor(lengths)), program(x, torch.tensor(lengths)))
    assert cache_misses(compiled) == 1


def test_an_integer_of_what_is_none_raises_as_in_eager():
    compiled = jit(lambda x: torch.ones(3) * int(x.sum()))
    for x in (torch.tensor([1.7, 0.0]), torch.tensor([-2.5, 0.0])):
        assert torch.equal(compiled(x), torch.ones(3) * int(x.sum()))
    with pytest.raises(ValueError, match="NaN"):
        compiled(torch.tensor([float("nan"), 1.0]))
    assert cache_misses(compiled) == 1


def test_masks_that_are_drawn_twice_are_two():
    def program(x):
        return x[torch.rand_like(x) > 0.5].sum() + x[torch.rand_like(x) > 0.5].sum()

    compiled, x = jit(program), VALUES[0]
    for seed in range(3):
        torch.manual_seed(seed)
        expected = program(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected)


def test_gradients_inside_of_programs():
    def program(x):
        return torch.autograd.grad(x[x > 0].prod() + x[x < 0].cumprod(0).sum(), x)[0]

    compiled = jit(program)
    for value in VALUES[:3]:
        x = value.clone().requires_grad_()
        torch.testing.assert_close(compiled(x), program(x))
    assert cache_misses(compiled) == 1


def test_parts_of_sizes_that_only_the_run_tells_are_put_where_a_known_number_of_them_fits():
    def experts(x, scores):
        chosen = scores > 0
        order = chosen.long().argmax(1).sort().indices
        parts = x[order].split(chosen.long().sum(0).tolist())
        joined = torch.cat([part * (i + 1) for i, part in enumerate(parts)])
        return torch.zeros_like(x).index_add(0, order, joined).view(2, -1).t()

    compiled = jit(experts)
    x = torch.randn(4, 2)
    for scores in ([[1.0, -1], [-1, 1], [1, -1], [-1, 1]], [[1.0, -1], [1, -1], [1, -1], [-1, 1]]):
        result = compiled(x, torch.tensor(scores))
        assert torch.equal(result, experts(x, torch.tensor(scores)))
    assert cache_misses(compiled) == 1


@needs_torch(2, 13, "asks whether such a size is one")
def test_parts_of_written_tensors_have_sizes_that_only_the_run_tells():
    def program(x):
        kept = x[x > 0]
        kept.mul_(2)
        parts = kept.split((x > 0).sum(1).tolist())
        parts[0].zero_()
        parts[1].add_(1)
        return kept, parts[0], torch.cat([part * 2 for part in parts])

    compiled = jit(program)
    for seed in range(3):
        x = torch.randn(3, 5, generator=torch.Generator().manual_seed(seed))
        kept, first, joined = compiled(x)
        torch.testing.assert_close((kept, first, joined), program(x))
        assert first.untyped_storage().data_ptr() == kept.untyped_storage().data_ptr()
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize(
    "take",
    [
        lambda rows: len(rows.unbind()),
        lambda rows: sum([row.sum() for row in rows]),
        lambda rows: rows.split(1)[0],
        lambda rows: rows.chunk(2)[0],
        lambda rows: rows.tensor_split(3)[0],
    ],
)
def test_python_sees_how_many_parts_there_are_of_an_unknown_size(take):
    def program(x):
        return take(x[x[:, 0] > 0]) * 2

    compiled = jit(program)
    for count in (1, 2, 1):
        x = torch.tensor([[1.0, 2.0], [-1.0, 2.0], [count - 1.0, 3.0]])
        torch.testing.assert_close(compiled(x), program(x))
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize(
    "take",
    [
        lambda rows: torch.stack(rows.unbind(1)),
        lambda rows: rows.chunk(2, -1)[1],
        lambda rows: torch.cat([rows, rows]).split([rows.shape[0], rows.shape[0]])[1],
    ],
)
def test_parts_of_a_known_number_are_taken_of_an_unknown_size(take):
    compiled = jit(lambda x: take(x[x[:, 0] > 0]))
    for rows in ([1.0, -1.0, 1.0], [-1.0, -1.0, 1.0], [-1.0, -1.0, -1.0]):
        x = torch.tensor(rows)[:, None] * torch.ones(2)
        assert torch.equal(compiled(x), take(x[x[:, 0] > 0]))


@pytest.mark.parametrize("cache", ["constant values", "symbolic values", "auto"])
def test_what_is_laid_out_otherwise_is_written_to(cache):
    def program(x, w):
        places = x.nonzero()
        places.index_add_(0, torch.tensor([0]), places[:1])
        places[:, 0] = 7
        return w * places.sum(), places

    compiled, w = jit(program, cache=cache), torch.ones(3, requires_grad=True)
    for x in (torch.eye(2), torch.ones(2, 3)):
        (a, b), (c, d) = compiled(x, w), program(x, w)
        assert torch.equal(a, c) and torch.equal(b, d)


def test_strides_that_rest_on_no_unknown_size_are_known():
    def program(x):
        rows = torch.stack([x, x * 2], 1)[x > 0]
        return x[x > 0].stride(), rows.stride(), rows.is_contiguous(), x[x > 0].is_contiguous()

    compiled = jit(program)
    for x in (torch.arange(-2.0, 3.0), -torch.ones(3), torch.ones(1)):
        assert compiled(x) == program(x)


def test_what_a_mask_selects_is_replaced_by_values_of_its_own_in_training_too():
    def program(x, mask, values):
        y = torch.zeros_like(x)
        y[mask] = values * 2
        return y * x

    mask = torch.tensor([True, False, True, True, False])
    given = torch.randn(5, requires_grad=True), mask, torch.randn(3, requires_grad=True)
    ours, eagers = (run(*given) for run in (jit(program, fallback="error"), program))
    torch.testing.assert_close(ours, eagers)
    gradients = [torch.autograd.grad(result.sum(), (given[0], given[2])) for result in (ours, eagers)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("read", [lambda m: m.max().item(), lambda m: int(m.max())], ids=["item", "int"])
def test_a_copy_in_another_order_is_a_copy_where_a_size_is_read_from_a_tensor(read):
    def program(x, m):
        n = read(m)
        y = torch.zeros((2, n, 8)) + x
        turned = y.view(2, n, 2, 4).transpose(1, 2)
        copy = turned.contiguous()
        copy.add_(1)
        return y, copy.view(2, 2 * n, -1)

    compiled, x = jit(program), torch.randn(2, 1, 8)
    for m in (torch.tensor([0, 2, 1]), torch.tensor([5, 2])):
        assert all(map(torch.equal, compiled(x, m), program(x, m)))


@pytest.mark.parametrize("divide", [operator.truediv, operator.floordiv, operator.mod])
def test_a_division_by_zero_raises_though_nobody_reads_what_it_gives(divide):
    def program(x):
        divide(1, int(x.sum()))
        return x + 1

    compiled = jit(program, fallback="error")
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(ZeroDivisionError):
        compiled(torch.zeros(3))


@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_unknown_lengths_drops_the_same_in_backward(masked):
    def program(x, keep):
        q = x[keep]
        mask = torch.zeros_like(x[:, 0])[~keep].expand(q.shape[0], -1) if masked else None
        return F.scaled_dot_product_attention(q[None], q[None], q[None], mask, 0.5)

    compiled, x = jit(program), torch.randn(8, 4, dtype=torch.float64, requires_grad=True)
    keep = torch.arange(8) % 2 == 0
    found = []
    for run in (program, compiled):
        torch.manual_seed(0)
        found.append((torch.autograd.grad(run(x, keep).square().sum(), x)[0], torch.rand(1)))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.select(0, 0), "index 0 out of range"),
        (lambda v: v.view(2, 2), "is invalid for input of size 0"),
        (lambda v: v + torch.ones(3), "must match the size of tensor b"),
    ],
    ids=["select", "view", "add"],
)
def test_what_sizes_of_the_run_are_refused_for_is_raised_though_nobody_reads_the_result(call, message):
    def program(x):
        positive = torch.masked_select(x, x > 0)
        call(positive)
        return positive + 2

    compiled = jit(program, fallback="error")
    fits = torch.ones(3) if message.startswith("must") else torch.ones(4)
    assert torch.equal(compiled(fits), program(fits))
    with pytest.raises((RuntimeError, IndexError), match=message):
        compiled(-torch.ones(4))


@needs_torch(2, 13, "broadcasts tensors of sizes that only the run tells")
@pytest.mark.parametrize("second", [lambda x: x[x > 1], lambda x: x[:3], lambda x: x[:1], lambda x: x[:2, None]])
def test_tensors_of_unknown_sizes_are_broadcast(second):
    def program(x):
        return torch.broadcast_tensors(x[x > 0], second(x))

    compiled = jit(program)
    for values in ([2.0, 3.0, 4.0], [2.0, 3.0, 0.0], [2.0, 1.0, 1.0], [3.0, 2.0, 1.0]):
        x = torch.tensor(values)
        try:
            expected = program(x)
        except RuntimeError:
            with pytest.raises(RuntimeError, match="must match"):
                compiled(x)
        else:
            torch.testing.assert_close(compiled(x), expected)


def test_sizes_of_the_run_that_are_one_by_chance_are_broadcast_as_in_eager():
    def program(x, y):
        noise = torch.rand(3)
        return (x[x > 0] + y[y > 0]) * (x + noise).sum()

    compiled = jit(program, fallback="error")
    for x, y in [
        ((1.0, 2, 0), (3.0, 0, 0)),
        ((1.0, 2, 0), (3.0, 4, 0)),
        ((1.0, 0, 0), (3.0, 4, 0)),
        ((1.0, 0, 0), (0, 0, 0)),
    ]:
        x, y = torch.tensor(x, requires_grad=True), torch.tensor(y)
        results = []
        for function in (program, compiled):
            torch.manual_seed(0)
            results.append((found := function(x, y), *torch.autograd.grad(found.sum(), x), torch.get_rng_state()))
        torch.testing.assert_close(*results)


class Packed(nn.Module):
    """Runs a recurrent layer on sequences of several lengths, as models of speech and of time series do."""

    def __init__(self, layer, total_length=None, is_sorted=False):
        super().__init__()
        self.layer, self.total_length, self.is_sorted = layer, total_length, is_sorted

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.is_sorted)
        output, hidden = self.layer(packed)
        padded, counts = pad_packed_sequence(output, batch_first=True, total_length=self.total_length)
        return padded, counts, hidden, output.data, padded[:, -1].sum()


PACKED = {
    "lstm": lambda: Packed(nn.LSTM(3, 4, batch_first=True)),
    "gru": lambda: Packed(nn.GRU(3, 4, num_layers=2, bidirectional=True, dropout=0.5), total_length=9),
    "rnn": lambda: Packed(nn.RNN(3, 4, nonlinearity="relu")),
    "projected": lambda: Packed(nn.LSTM(3, 4, proj_size=2), is_sorted=True),
}


@pytest.mark.parametrize("name", PACKED)
def test_recurrent_layers_of_packed_sequences_need_one_program(name):
    eager = PACKED[name]()
    ours = copy.deepcopy(eager)
    compiled = jit(ours, fallback="error")
    for seed, rows in enumerate((3, 4, 6, 5)):
        x, lengths = torch.randn(rows, 7, 3), torch.randint(1, 8, (rows,)).sort(descending=True)[0]
        found = []
        for function in (eager, compiled):
            torch.manual_seed(seed)
            results = function(x, lengths)
            tensors = [t for t in tree_leaves(results) if t.requires_grad]
            sum(t.square().sum() for t in tensors).backward()
            found.append(results)
        torch.testing.assert_close(found[1], found[0])
        for our, expected in zip(ours.parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(our.grad, expected.grad)
    assert cache_misses(compiled) == 2  # the first size, and all others


def test_recurrent_layers_take_rows_that_values_select():
    layer = nn.LSTM(3, 4, batch_first=True)
    compiled = jit(lambda x: layer(x[x[:, 0, 0] > 0]), fallback="error")
    for rows in (1, 2, 4):
        x = torch.randn(5, 6, 3)
        x[:, 0, 0] = torch.arange(5) - 4.5 + rows
        expected = layer(x[x[:, 0, 0] > 0])
        torch.testing.assert_close(compiled(x), expected)
    assert cache_misses(compiled) == 1


def test_recurrent_layers_take_and_return_sizes_that_are_computed_from_values():
    def sizes(index):
        number = int(index.max()) + 1
        y, hidden = layer(index.new_zeros(1, number, 3, dtype=torch.float32))
        return y.shape, hidden.shape, y

    layer = nn.GRU(3, 4)
    compiled = jit(sizes, fallback="error")
    for rows in (6, 7, 9, 4):
        torch.testing.assert_close(compiled(torch.arange(rows) // 3), sizes(torch.arange(rows) // 3))


def test_distributions_check_as_many_values_as_the_run_selects():
    def program(x):
        kept = x[x > 0]
        return torch.distributions.Normal(kept, kept.exp()).log_prob(kept).sum()

    compiled = jit(program, fallback="error")
    for x in VALUES[:3]:
        torch.testing.assert_close(compiled(x), program(x))
    assert cache_misses(compiled) == 1


def test_lists_of_numbers_of_the_run_are_one_index():
    def program(x, places):
        i = [place.item() for place in places]
        y = x * 1
        y[i] = 0
        y[:, [i[0] % 4, 1]] += 1
        y[[i[0] % 3, -1], 2] *= 2
        return y, x[i], x[[i[0], x.shape[0] - 1], 1], x[i, i]

    compiled = jit(program, fallback="error")
    for rows, places in [(3, [0, 1, 2]), (3, [2, 2, 0]), (4, [1, 0, -1]), (5, [0, -3, 1]), (3, [0, 3, 1])]:
        x, same = (torch.linspace(1, 2, rows * 4).view(rows, 4).requires_grad_() for _ in range(2))
        if max(places) >= rows:
            with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
                compiled(x, torch.tensor(places))
            continue
        expected, made = program(x, torch.tensor(places)), compiled(same, torch.tensor(places))
        torch.testing.assert_close(made, expected)
        assert [m.stride() for m in made] == [e.stride() for e in expected]
        for each in (expected, made):
            sum(r.square().sum() for r in each).backward()
        torch.testing.assert_close(same.grad, x.grad)
    assert cache_misses(compiled) == 2


def test_what_a_mask_of_one_element_selects_is_written_where_it_selects():
    def program(x, y):
        out, mask = torch.ones_like(x), y > 0
        out[mask] = 1 - x[mask] / y[mask]
        return out

    compiled = jit(program, fallback="error")
    for y in (2.0, -1.0, 0.5):
        x, same = (torch.tensor(3.0, requires_grad=True) for _ in range(2))
        expected, made = program(x, torch.tensor(y)), compiled(same, torch.tensor(y))
        torch.testing.assert_close(made, expected)
        expected.backward(), made.backward()
        torch.testing.assert_close(same.grad, x.grad)
    assert cache_misses(compiled) == 1

    def wrong(x, mask):
        out = torch.ones_like(x)
        out[mask] = x[~mask]
        return out

    with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result"):
        jit(wrong)(torch.tensor(1.0), torch.tensor(True))
