"""Mixtures of experts that processes share, beside one process with the whole batch."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from thunder_distributed import (
    ExpertParallel,
    FSDPType,
    clip_grad_norm_,
    ddp,
    fsdp,
    get_model_state_dict,
    parallelize,
)


class Experts(nn.Module):
    """One network for each expert, on rows of which the first ``counts[0]`` are for the first, and so on."""

    def __init__(self, experts=4, width=8, hidden=16):
        super().__init__()
        self.up = nn.Parameter(torch.randn(experts, width, hidden) / 3)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / 4)

    def forward(self, x, counts):
        ends = counts.cumsum(0).to(torch.int32)
        hidden = F.silu(torch._grouped_mm(x, self.up, offs=ends))
        return torch._grouped_mm(hidden, self.down, offs=ends)


class Mixture(nn.Module):
    """Each row goes to the experts of its largest scores."""

    def __init__(self, experts=4, chosen=2):
        super().__init__()
        self.router, self.experts = nn.Linear(8, experts), Experts(experts)
        self.count, self.chosen = experts, chosen

    def forward(self, x):
        rows = x.flatten(0, 1)
        weights, places = self.router(rows).softmax(-1).topk(self.chosen)
        flat = places.flatten()
        order = flat.argsort(stable=True)
        y = self.experts(rows[order // self.chosen], F.one_hot(flat, self.count).sum(0))
        y = y[order.argsort()].view(*places.shape, -1)
        return x + (y * weights.unsqueeze(-1)).sum(1).view(x.shape)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.mixtures = nn.Embedding(11, 8), nn.Sequential(Mixture(), Mixture())
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 11)

    def forward(self, tokens):
        return self.head(self.norm(self.mixtures(self.tokens(tokens))))


PLAN = {"mixtures.*.experts": ExpertParallel()}


def trains_as_one(rank, size, make_parallel, steps=4, uneven=False):
    torch.manual_seed(1)
    model = Model()
    if uneven:  # all rows are for experts of the first process
        with torch.no_grad():
            model.mixtures[0].router.bias.copy_(torch.tensor([9.0, 8.0, 0.0, 0.0]))
    whole = copy.deepcopy(model)
    ours = make_parallel(model)
    mine, theirs = (torch.optim.AdamW(m.parameters(), lr=0.01) for m in (ours, whole))
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        tokens = torch.randint(11, (2 * size, 6), generator=generator)
        losses = []
        for m, optimizer, t in ((whole, theirs, tokens), (ours, mine, tokens.chunk(size)[rank])):
            loss = F.cross_entropy(m(t).flatten(0, 1), t.flatten())
            loss.backward()
            (nn.utils.clip_grad_norm_(m.parameters(), 0.5) if m is whole else clip_grad_norm_(m, 0.5))
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        torch.distributed.all_reduce(losses[1])
        torch.testing.assert_close(losses[1] / size, losses[0], rtol=1e-5, atol=1e-5)
    for name, value in get_model_state_dict(ours, full=True).items():
        torch.testing.assert_close(value, whole.state_dict()[name], rtol=1e-3, atol=1e-4)
    return ours


def scenario_experts_train_as_in_one_process(rank, size):
    ours = trains_as_one(rank, size, lambda m: ddp(parallelize(m, None, PLAN)))
    assert ours.mixtures[0].experts.up.shape == (4 // size, 8, 16)


def scenario_all_rows_may_be_for_one_process(rank, size):
    trains_as_one(rank, size, lambda m: ddp(parallelize(m, None, PLAN)), steps=1, uneven=True)


def scenario_what_is_no_expert_may_be_sharded(rank, size):
    trains_as_one(rank, size, lambda m: fsdp(parallelize(m, None, PLAN), sharding_strategy=FSDPType.ZERO3), steps=2)


class Limited(nn.Module):
    """Experts that take the first rows only, each, as many as they have room for; of the others come zeros."""

    def __init__(self, experts, capacity):
        super().__init__()
        self.experts, self.capacity = experts, capacity

    def forward(self, x, counts):
        y, start = torch.zeros_like(x), 0
        for i, count in enumerate(counts.tolist()):
            rows = slice(start, start + min(count, self.capacity))
            y[rows] = F.silu(x[rows] @ self.experts.up[i]) @ self.experts.down[i]
            start += count
        return y


def scenario_experts_have_room_for_so_many_rows(rank, size):
    torch.manual_seed(1)
    model = nn.ModuleDict({"experts": Experts()})
    for capacity, counts in ((2, [5, 0, 3, 1]), (3, [0, 0, 9, 0]), (20, [4, 3, 1, 1]), (1, [0, 0, 0, 0])):
        expected = Limited(copy.deepcopy(model["experts"]), capacity)
        ours = ddp(parallelize(Called(copy.deepcopy(model)), None, {"of.experts": ExpertParallel(capacity)}))
        for process in range(size):  # each has other rows
            x = torch.randn(sum(counts) + 2, 8, generator=torch.Generator().manual_seed(process)).requires_grad_()
            mine = torch.tensor(counts if process == 0 else counts[::-1])
            y = expected(x, mine)
            y.square().sum().backward()
            if process == rank:
                given, y_here, dx = x.detach().clone().requires_grad_(), y, x.grad
                y_ours = ours(given, mine)
        y_ours.square().sum().backward()
        torch.testing.assert_close(y_ours, y_here)
        torch.testing.assert_close(given.grad, dx)
        for name, p in ours.of["experts"].named_parameters():
            whole = dict(expected.experts.named_parameters())[name].grad / size
            torch.testing.assert_close(p.grad, whole.chunk(size)[rank])


class Called(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x, counts):
        return self.of["experts"](x, counts)


def scenario_what_cannot_be_is_refused(rank, size):
    for plan, module, message in (
        ({"0": ExpertParallel()}, nn.Sequential(nn.Sequential(nn.Linear(2, 2))), "takes a module whose own parameters"),
        ({"0": ExpertParallel()}, nn.Sequential(nn.Linear(4, 3)), "share experts whose number they divide"),
        ({"0": ExpertParallel(0)}, nn.Sequential(nn.Linear(4, 4)), "an expert takes a row at least"),
    ):
        try:
            parallelize(module, None, plan)
        except (TypeError, ValueError) as error:
            assert message in str(error), error
        else:
            raise AssertionError(f"nobody said {message}")
    from thunder_distributed import Colwise

    model = parallelize(nn.Sequential(nn.Linear(4, 4)), None, {"0": Colwise(gather_output=True)})
    try:
        ddp(model)
    except ValueError as error:
        assert "processes of axis 'data' share it" in str(error), error
    else:
        raise AssertionError("parts that differ were averaged")
