"""Data parallelism on several processes, beside PyTorch's, bit for bit."""

import copy
import functools
from contextlib import nullcontext

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thunder_frontend
from thunder_distributed import DisagreementError, FSDPType, axis_of, ddp, fsdp
from thunder_distributed.agreement import axis_in
from thunder_distributed.costs.measuring import measure_network, measure_operations, sizes_in
from thunder_distributed.passes import collectives_of


class Tied(nn.Module):
    """An embedding that is the output's matrix, too, and a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        return self.head(self.norm(x + self.inner(x)))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def trained(model, module, batches, *, optimizer=torch.optim.AdamW, accumulate=0, clip=None):
    """Train a module that is ``model`` in parallel; return the losses and the parameters after each step."""
    steps = optimizer([p for p in model.parameters() if p.requires_grad], lr=0.01)
    losses, states = [], []
    for i, (x, y) in enumerate(batches):
        if accumulate and i % accumulate != accumulate - 1:
            with module.no_sync():
                loss = F.cross_entropy(module(x).flatten(0, -2), y.flatten())
                loss.backward()
        else:
            loss = F.cross_entropy(module(x).flatten(0, -2), y.flatten())
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            steps.step()
            steps.zero_grad()
        losses.append(loss.item())
        states.append([p.detach().clone() for p in model.parameters()])
    return losses, states


def same_as_torch(rank, make, batch, steps=20, options=None, **how):
    """Check that a model trains as in DistributedDataParallel, to the last bit."""
    torch.manual_seed(3 + rank)  # all begin with the first's parameters
    model = make()
    theirs = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(10 + rank)
    batches = [batch(generator) for _ in range(steps)]
    ours = ddp(model, **(options or {}))
    expected = trained(theirs, DistributedDataParallel(theirs), batches, **how)
    assert trained(model, ours, batches, **how)[0] == expected[0]
    result = [p.detach() for p in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(result, expected[1][-1], strict=True))
    return ours


def vectors(generator):
    return torch.randn(6, 5, generator=generator), torch.randint(3, (6,), generator=generator)


def tokens(generator):
    return torch.randint(11, (2, 7), generator=generator), torch.randint(11, (2, 7), generator=generator)


def scenario_a_network_trains_as_in_torch(rank, size):
    same_as_torch(rank, mlp, vectors)


def scenario_tied_weights_train_as_in_torch(rank, size):
    same_as_torch(rank, Tied, tokens)


def scenario_accumulation_is_as_in_torch(rank, size):
    same_as_torch(rank, mlp, vectors, accumulate=4)


def scenario_clipping_is_as_in_torch(rank, size):
    same_as_torch(rank, mlp, vectors, clip=0.1, optimizer=torch.optim.SGD)


def scenario_large_gradients_are_summed_in_place(rank, size):
    def make():
        return nn.Sequential(nn.Embedding(2048, 160), nn.Linear(160, 160), nn.GELU(), nn.Linear(160, 2048))

    def batch(generator):
        return torch.randint(2048, (2, 7), generator=generator), torch.randint(2048, (2, 7), generator=generator)

    for accumulate in (0, 2):
        ours = same_as_torch(rank, make, batch, steps=4, accumulate=accumulate)
    collectives = collectives_of(thunder_frontend.last_backward_traces(ours)[-1])
    alone = [b.args[0] for b in collectives if "all_reduce_within" in b.symbol.id and b.args[2] == "mean"]
    assert sorted(t.shape for t in alone) == [(2048, 160), (2048, 160)], collectives


def scenario_frozen_parameters_stay(rank, size):
    def make():
        model = mlp()
        model[0].requires_grad_(False)
        return model

    same_as_torch(rank, make, vectors, steps=5)


def scenario_parameters_that_are_no_longer_frozen_train_as_in_one_process(rank, size):
    torch.manual_seed(3)
    model = mlp()
    model[0].requires_grad_(False)
    whole = copy.deepcopy(model)
    ours = ddp(model)
    mine, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, whole))
    generator = torch.Generator().manual_seed(10)
    for step in range(4):
        if step == 2:
            model[0].requires_grad_(True)
            whole[0].requires_grad_(True)
        x, y = torch.randn(6 * size, 5, generator=generator), torch.randint(3, (6 * size,), generator=generator)
        F.cross_entropy(ours(x.chunk(size)[rank]), y.chunk(size)[rank]).backward()
        F.cross_entropy(whole(x), y).backward()
        mine.step(), theirs.step()
        mine.zero_grad(), theirs.zero_grad()
    torch.testing.assert_close(list(model.parameters()), list(whole.parameters()))


def scenario_batch_normalisation_is_as_in_torch(rank, size):
    def make():
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))

    same_as_torch(rank, make, vectors, steps=5)


def scenario_many_small_buckets_are_as_one(rank, size):
    same_as_torch(rank, mlp, vectors, steps=5, options={"bucket_size_in_mb": 0.0005})
    same_as_torch(rank, mlp, vectors, steps=5, options={"bucket_size_in_mb": 0})


def scenario_what_thunder_compiled_before_is_taken(rank, size):
    model = mlp()
    ours = ddp(thunder_frontend.jit(model, partition="save-all"))
    assert thunder_frontend.last_compile_options(ours) is not None
    ours(vectors(None)[0]).sum().backward()
    again = thunder_frontend.jit(ours)
    again(vectors(None)[0]).sum().backward()
    assert "all_reduce" in str(thunder_frontend.last_backward_traces(again)[-1])


def scenario_gradients_may_be_sent_in_fewer_bits(rank, size):
    torch.manual_seed(3)
    model = mlp()
    ours = ddp(copy.deepcopy(model), gradient_dtype=torch.bfloat16)
    exact = ddp(model)
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(rank))
    ours(x).sum().backward()
    exact(x).sum().backward()
    for p, q in zip(ours.parameters(), exact.parameters(), strict=True):
        assert p.grad.dtype is torch.float32
        torch.testing.assert_close(p.grad, q.grad, rtol=2e-2, atol=1e-2)
    assert "bfloat16" in str(thunder_frontend.last_backward_traces(ours)[-1])


def scenario_what_the_simulator_takes_is_measured(rank, size):
    model = ddp(thunder_frontend.jit(mlp(), executors=["torch"]))
    model(torch.randn(4, 5)).sum().backward()
    programs = thunder_frontend.last_traces(model)[-1], thunder_frontend.last_backward_traces(model)[-1]
    sizes = sizes_in(programs)
    assert list(sizes) == ["all_reduce"]
    axis = axis_of(None, "data")
    more = {"all_gather": [2e5], "reduce_scatter": [1e5], **{k: sorted(v) for k, v in sizes.items()}}
    network = measure_network(axis, more, seconds=0.01)
    beside = [network.beside(kind, 1e5, size) for kind in network.tables]
    assert min([seconds for seconds, _ in beside]) > 0
    told = [network.seconds(kind, 1e5, size) for kind in network.tables] + [busy for _, busy in beside]
    others = [None] * size
    dist.all_gather_object(others, told)
    assert others == [told] * size
    ledger = axis_in(collectives_of(programs[1])[0]).ledger
    before = ledger.calls
    costs = measure_operations(programs, rounds=2, communicates=True)
    assert sum(costs.values()) > 0
    assert ledger.calls == before + 3 * len(collectives_of(programs[1]))


class Experts(nn.Module):
    """A layer of which each batch says which of its experts it uses."""

    def __init__(self, count: int = 3, tied: bool = False) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 4)
        self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(count))
        if tied:
            self.experts[1].weight = self.experts[0].weight

    def forward(self, x, used):
        y = self.inner(x).tanh()
        return sum(self.experts[i](y) for i in used)


def gradients_like_torch(rank, *sessions, parallel=ddp, dtype=None, zeroes=True, tied=False):
    """Check gradients of steps whose batches use other experts, beside PyTorch's.

    Args:
        sessions: for each step the experts that each batch uses on this rank; all but the last are within
            ``no_sync()``. A single one stands for two steps.
        parallel: makes the model parallel.
        dtype: in which gradients are sent.
        zeroes: whether gradients are let go of after each step.
        tied: whether two experts have the same weight.
    """
    torch.manual_seed(3)
    model = Experts(tied=tied)
    theirs = DistributedDataParallel(copy.deepcopy(model), find_unused_parameters=True)
    ours = parallel(model) if dtype is None else parallel(model, gradient_dtype=dtype)
    mine, other = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, theirs))
    generator = torch.Generator().manual_seed(10 + rank)
    for session in sessions if len(sessions) > 1 else 2 * sessions:
        for i, used in enumerate(session):
            x = torch.randn(6, 5, generator=generator)
            for module in (ours, theirs):
                with nullcontext() if i == len(session) - 1 else module.no_sync():
                    module(x, used).square().mean().backward()
        for p, q in zip(model.parameters(), theirs.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None)
            if p.grad is not None:
                tolerance = {} if dtype is None else {"rtol": 2e-2, "atol": 1e-2}
                torch.testing.assert_close(p.grad, q.grad, **tolerance)
        mine.step(), other.step()
        if zeroes:
            mine.zero_grad(), other.zero_grad()
    return ours


def scenario_what_only_batches_without_synchronisation_use_is_synchronised(rank, size):
    ours = gradients_like_torch(rank, [(0, 1), (0,)])
    assert "reduce_kept" in str(thunder_frontend.last_backward_traces(ours)[-1])


def scenario_what_one_process_alone_uses_without_synchronisation_is_synchronised(rank, size):
    gradients_like_torch(rank, [(0, 1) if rank else (0,), (0,)])
    gradients_like_torch(rank, [(0, 1 + rank), (0,)])
    gradients_like_torch(rank, [(0, 1), (0,)], dtype=torch.bfloat16)


def scenario_one_process_alone_leaves_batches_unsynchronised(rank, size):
    gradients_like_torch(rank, [(0, 1), (0,)] if rank else [(0,)])


def scenario_programs_that_use_all_parameters_communicate_no_more(rank, size):
    ours = gradients_like_torch(rank, [(0,), (0, 1, 2)])
    assert "reduce_kept" not in str(thunder_frontend.last_backward_traces(ours)[-1])


def scenario_frozen_parameters_are_not_asked_for(rank, size):
    model = Experts()
    model.experts[2].requires_grad_(False)
    ours = ddp(model)
    ours(torch.ones(2, 5), (0, 1)).sum().backward()
    ledger = axis_in(collectives_of(thunder_frontend.last_backward_traces(ours)[-1])[0]).ledger
    before = ledger.calls
    ours(torch.ones(2, 5), (0, 1)).sum().backward()
    frozen = ledger.calls - before
    model.experts[2].requires_grad_(True)
    ours(torch.ones(2, 5), (0, 1)).sum().backward()
    assert ledger.calls - before == 2 * frozen + 1


def scenario_parameters_frozen_while_their_gradients_wait_are_refused(rank, size):
    model = Experts()
    ours = ddp(model)
    with ours.no_sync():
        ours(torch.ones(2, 5), (0, 1)).sum().backward()
    model.experts[1].requires_grad_(False)
    loss = ours(torch.ones(2, 5), (0,)).sum()
    with pytest.raises(RuntimeError, match=r"experts\.1\.weight was frozen .* no_sync"):
        loss.backward()


def scenario_processes_that_synchronise_other_parameters_of_equal_shapes_are_refused(rank, size):
    ours = ddp(Experts())
    with pytest.raises(DisagreementError, match=r"on rank 1: all_reduce_within of .*places \(0, 1, 4, 5\)"):
        ours(torch.ones(2, 5), (rank,))


EACH_STEP = ([[(0,)], [(1, 2)], [(2,)], [(0, 1), (1,)], [(1,)]], [[(1,)], [(1,)], [(0, 2)], [(0,), (2,)], [(1, 0)]])
"""What the processes use, each in another way than the others in most steps."""


def scenario_processes_may_use_other_parameters(rank, size):
    finding = functools.partial(ddp, find_unused_parameters=True)
    sessions = EACH_STEP[rank % 2]
    gradients_like_torch(rank, *sessions, parallel=finding)
    gradients_like_torch(rank, *sessions, parallel=finding, zeroes=False)
    gradients_like_torch(rank, *sessions, parallel=finding, dtype=torch.bfloat16)
    gradients_like_torch(rank, *sessions, parallel=finding, tied=True)
    gradients_like_torch(rank, *sessions, parallel=functools.partial(finding, bucket_size_in_mb=0))


def scenario_gradients_that_no_process_makes_stay_as_they_are(rank, size):
    model = Experts()
    ours = ddp(model, find_unused_parameters=True)
    model.experts[2].requires_grad_(False)
    model.experts[1].weight.grad = torch.ones(3, 4)
    ours(torch.ones(2, 5), (0, 2)).sum().backward()
    assert torch.equal(model.experts[1].weight.grad, torch.ones(3, 4))
    assert model.experts[1].bias.grad is model.experts[2].weight.grad is None
    assert model.experts[0].weight.grad is not None


def scenario_processes_that_run_other_programs_of_those_agreed_on_are_refused(rank, size):
    for parallel in (ddp, functools.partial(fsdp, sharding_strategy=FSDPType.ZERO2)):
        ours = parallel(Experts())
        for used in ((0,), (1,), (0,)):
            ours(torch.ones(2, 5), used).sum().backward()
        with pytest.raises(DisagreementError, match="processes of axis .* run different programs"):
            ours(torch.ones(2, 5), (rank,)).sum().backward()
        ours(torch.ones(2, 5), (1,)).sum().backward()


class Statistics(nn.Module):
    """Batch norms, of which each batch says which it uses, and a buffer that does not change."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 4)
        self.norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(2))
        self.register_buffer("large", torch.ones(100_000))

    def forward(self, x, used=0):
        return self.norms[used](self.inner(x)) * self.large[0]


def statistics_like_torch(rank, used, **options):
    """Check buffers after steps, one of them not synchronised, and what the model then says, beside PyTorch's."""
    torch.manual_seed(3)
    model = Statistics()
    theirs = DistributedDataParallel(copy.deepcopy(model), find_unused_parameters=True)
    ours = ddp(model, **options)
    generator = torch.Generator().manual_seed(10 + rank)
    for step, number in enumerate(used):
        x = torch.randn(6, 5, generator=generator)
        for module in (ours, theirs):
            with module.no_sync() if step == 1 else nullcontext():
                module(x, number).square().mean().backward()
    ours.eval(), theirs.eval()
    with torch.no_grad():
        expected = theirs(x, 0)
        torch.testing.assert_close(ours(x, 0), expected)
    for a, b in zip(ours.buffers(), theirs.module.buffers(), strict=True):
        torch.testing.assert_close(a, b)
    return ours


def scenario_statistics_are_those_of_the_first_process(rank, size):
    ours = statistics_like_torch(rank, (0, 0, 0))
    assert "buffers_of_first" not in str(thunder_frontend.last_traces(ours)[-1])  # of the call in eval mode
    ours.train()(torch.ones(2, 5))
    (call,) = [b for b in thunder_frontend.last_traces(ours)[-1].bound_symbols if "buffers_of_first" in b.symbol.id]
    ledger = axis_in(call).ledger
    before = ledger.sent
    ours(torch.ones(2, 5))
    assert 0 < ledger.sent - before < 1000


def scenario_statistics_of_processes_that_run_other_programs_are_synchronised(rank, size):
    statistics_like_torch(rank, (rank % 2, 0, 1, rank % 2), find_unused_parameters=True)


def scenario_statistics_may_stay_those_of_each_process(rank, size):
    model = Statistics()
    ours = ddp(model, broadcast_buffers=False)
    ours(torch.full((2, 5), float(rank))).sum().backward()
    mean = model.norms[0].running_mean
    others = [torch.empty_like(mean) for _ in range(size)]
    dist.all_gather(others, mean)
    assert not torch.equal(others[0], others[1])
