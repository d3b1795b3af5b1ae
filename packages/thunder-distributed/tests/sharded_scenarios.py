"""Sharded parameters on several processes, beside one process that has the whole batch."""

import copy
import itertools
from contextlib import nullcontext

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy

import thunder_frontend
from thunder_distributed import (
    DisagreementError,
    FSDPBucketingStrategy,
    FSDPType,
    axis_of,
    ddp,
    fsdp,
    join,
    unshard_params,
)
from thunder_distributed.modules import parallel_of
from thunder_distributed.parameters import part_of
from thunder_distributed.sharded import _Sharder
from thunder_ir import device

STRATEGIES = tuple(itertools.product(FSDPType, FSDPBucketingStrategy))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return x + self.scale * self.inner(self.norm(x))


class Model(nn.Module):
    """Blocks of an odd width between an embedding and a head that may be tied; it has a parameter of no dimension."""

    def __init__(self, tied=False, width=5, blocks=1):
        super().__init__()
        self.tokens = nn.Embedding(11, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 11, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def trained(model, batches, share, *, steps, accumulate=1, prepare=None):
    """Train on a share of each batch; return the losses."""
    if prepare is not None:
        prepare(model)
    losses = []
    for i, (x, y) in enumerate(batches):
        x, y = share(x), share(y)
        last = i % accumulate == accumulate - 1
        if last or not hasattr(model, "no_sync"):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
            loss.backward()
        else:
            with model.no_sync():
                loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
                loss.backward()
        if last:
            steps.step()
            steps.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses)


def as_one_process(rank, size, make=Model, steps=4, accumulate=1, tolerance=1e-5, **options):
    """Check that a sharded model trains as one process does on the joint batch; return it."""
    torch.manual_seed(1)
    model = make()
    whole = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(2)
    batches = [(torch.randint(11, (2 * size, 3), generator=generator),) * 2 for _ in range(steps)]
    ours = fsdp(model, **options)
    mine = torch.optim.AdamW([p for p in ours.parameters() if p.requires_grad], lr=0.01)
    theirs = torch.optim.AdamW([p for p in whole.parameters() if p.requires_grad], lr=0.01)
    expected = trained(whole, batches, lambda t: t, steps=theirs, accumulate=accumulate)
    losses = trained(ours, batches, lambda t: t.chunk(size)[rank], steps=mine, accumulate=accumulate)
    torch.distributed.all_reduce(losses)
    torch.testing.assert_close(losses / size, expected, rtol=tolerance, atol=tolerance)
    return ours


def scenario_every_strategy_trains_as_one_process(rank, size):
    for sharding, bucketing in STRATEGIES[1::2]:
        as_one_process(rank, size, sharding_strategy=sharding, bucketing_strategy=bucketing)


def scenario_tied_weights_train_as_one_process(rank, size):
    for sharding, bucketing in STRATEGIES[:1] + STRATEGIES[-1:]:
        model = as_one_process(
            rank, size, lambda: Model(tied=True), sharding_strategy=sharding, bucketing_strategy=bucketing
        )
        assert dict(model.named_parameters()).keys() == dict(Model(tied=True).named_parameters()).keys()
        backward = str(thunder_frontend.last_backward_traces(model)[-1])
        expected = 8 if bucketing is FSDPBucketingStrategy.NONE else 2
        assert backward.count(".reduce_scatter") == expected, backward
        if bucketing is FSDPBucketingStrategy.NONE:
            assert str(thunder_frontend.last_traces(model)[-1]).count(".all_gather(") == expected


def scenario_accumulation_trains_as_one_process(rank, size):
    as_one_process(rank, size, accumulate=3, sharding_strategy=FSDPType.ZERO3)


def scenario_parameters_may_be_cut_along_any_dimension(rank, size):
    as_one_process(
        rank,
        size,
        shard_dim=lambda name, parameter: max(parameter.ndim - 1, 0),
        bucketing_strategy=FSDPBucketingStrategy.BLOCK,
        sharding_strategy=FSDPType.ZERO3,
    )


def scenario_offload_changes_nothing_where_the_device_is_a_cpu(rank, size):
    model = as_one_process(rank, size, sharding_strategy=FSDPType.ZERO3, offload_policy=CPUOffloadPolicy())
    traces = thunder_frontend.last_traces(model)[-1], thunder_frontend.last_backward_traces(model)[-1]
    assert not any("copy_to" in str(trace) for trace in traces)


def scenario_programs_that_copy_parts_and_gradients_train_as_one_process(rank, size):
    """The device is the host's memory, once more: what is copied, where, and when is as on any other."""
    computed_on, _Sharder.computed_on = _Sharder.computed_on, lambda self, parameter: device("cpu")
    try:
        for strategy, bucketing in (STRATEGIES[0], STRATEGIES[4]):
            options = {"sharding_strategy": strategy, "bucketing_strategy": bucketing}
            options["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
            gradients_like_one_process(rank, size, [(0, 1), (0,)], **options)
            model = as_one_process(rank, size, accumulate=2, **options)
            assert str(thunder_frontend.last_traces(model)[-1]).count(".copy_to(") == 9
            assert str(thunder_frontend.last_backward_traces(model)[-1]).count(".copy_to(") >= 9
    finally:
        _Sharder.computed_on = computed_on


def scenario_each_process_keeps_its_part(rank, size):
    model = as_one_process(rank, size, steps=1)
    kept = sum(p.numel() for p in model.parameters())
    whole = sum(p.numel() for p in Model().parameters())
    padding = sum(p[0].numel() if p.ndim else 1 for p in Model().parameters())
    assert whole / size <= kept <= whole / size + padding
    assert all(p.grad is None or p.grad.shape == p.shape for p in model.parameters())


def saved_floats(model):
    compiled = thunder_frontend.compiled_function(model).compiled[-1]
    return sum(p.numel for p in compiled.computation.split.saved if p.dtype.is_floating)


def scenario_gathered_parameters_are_kept_or_gathered_again(rank, size):
    kept = as_one_process(rank, size, steps=1, sharding_strategy=FSDPType.ZERO2)
    again = as_one_process(rank, size, steps=1, sharding_strategy=FSDPType.ZERO3)
    matrices = sum(p.numel() for p in Model().parameters() if p.ndim == 2) - 55  # an embedding's is not read again
    assert saved_floats(kept) - saved_floats(again) >= matrices / 3
    assert "all_gather" not in str(thunder_frontend.last_backward_traces(kept)[-1])
    assert "all_gather" in str(thunder_frontend.last_backward_traces(again)[-1])


def scenario_frozen_parameters_are_gathered_and_not_sent_back(rank, size):
    def make():
        model = Model()
        model.blocks[0].requires_grad_(False)
        return model

    for sharding in FSDPType:
        model = as_one_process(rank, size, make, sharding_strategy=sharding)
        assert all(p.grad is None for p in model.blocks[0].parameters())


def scenario_parts_may_be_replicated_over_a_second_dimension(rank, size):
    for shape in ((size, 1), (1, size)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard"))
        as_one_process(rank, size, device_mesh=mesh, bucketing_strategy=FSDPBucketingStrategy.BLOCK)


def scenario_models_begin_on_the_meta_device(rank, size):
    with torch.device("meta"):
        model = Model(tied=True)
    whole = Model(tied=True)

    def init(module):
        for name, parameter in module.named_parameters(recurse=False):
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view(parameter.shape) + len(name) / 10)

    ours = fsdp(model, init=init, broadcast_from=0, sharding_strategy=FSDPType.ZERO3)
    with torch.no_grad():
        for module in whole.modules():
            init(module)
    assert ours.head.__dict__["_parameters"]["weight"] is ours.tokens.__dict__["_parameters"]["weight"]
    tokens = torch.arange(6).view(2, 3)
    torch.testing.assert_close(ours(tokens), whole(tokens))


def scenario_parameters_may_be_gathered_in_fewer_bits(rank, size):
    torch.manual_seed(1)
    model = Model()
    whole = copy.deepcopy(model)
    ours = fsdp(model, param_dtype=torch.bfloat16, reduce_dtype=torch.float32, sharding_strategy=FSDPType.ZERO3)
    tokens = torch.arange(6).view(2, 3)
    loss = ours(tokens).float().square().mean()
    loss.backward()
    assert all(p.dtype is p.grad.dtype is torch.float32 for p in ours.parameters() if p.grad is not None)
    torch.testing.assert_close(loss, whole(tokens).square().mean(), rtol=2e-2, atol=1e-2)


def scenario_evaluation_gathers_as_well(rank, size):
    torch.manual_seed(1)
    model = Model()
    whole = copy.deepcopy(model).eval()
    ours = fsdp(model).eval()
    tokens = torch.arange(6).view(2, 3)
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), whole(tokens))


def scenario_gathers_may_have_a_group_of_their_own(rank, size):
    group = dist.new_group()
    model = as_one_process(rank, size, sharding_strategy=FSDPType.ZERO3, gather_group=group)
    backward = str(thunder_frontend.last_backward_traces(model)[-1])
    gathers = [line for line in backward.splitlines() if ".all_gather" in line]
    assert gathers and all("_shard_gathers" in line for line in gathers), backward
    assert "_shard_gathers" not in "".join(line for line in backward.splitlines() if ".reduce_scatter" in line)
    try:
        fsdp(Model(), gather_group=dist.new_group([rank], use_local_synchronization=True))
    except ValueError as error:
        assert "pass dist.new_group([0, 1])" in str(error), error
    else:
        raise AssertionError("a group of others was taken")


def scenario_parameters_are_whole_for_a_while(rank, size):
    torch.manual_seed(1)
    model = Model(tied=True)
    whole = {name: p.detach().clone() for name, p in model.named_parameters()}
    ours = fsdp(model)
    tokens = torch.arange(6).view(2, 3)
    before = ours(tokens)
    part = ours.head.__dict__["_parameters"]["weight"]
    with unshard_params(ours):
        for name, parameter in ours.named_parameters():
            assert torch.equal(parameter, whole[name]), name
        assert ours.head.__dict__["_parameters"]["weight"] is ours.tokens.__dict__["_parameters"]["weight"]
        try:
            ours(tokens)
        except RuntimeError as error:
            assert "called within unshard_params()" in str(error), error
        else:
            raise AssertionError("the model ran with whole parameters")
        with torch.no_grad():
            ours.head.weight.mul_(2)
            ours.blocks[0].scale.zero_()
    assert ours.head.__dict__["_parameters"]["weight"] is part
    torch.testing.assert_close(
        ours(tokens), F.embedding(tokens, whole["tokens.weight"] * 2) @ whole["tokens.weight"].T * 2
    )
    with unshard_params(ours, writeback=False), torch.no_grad():
        ours.head.weight.zero_()
    assert ours(tokens).abs().sum() > 0 and before.shape == (2, 3, 11)


def scenario_processes_may_have_fewer_batches_than_others(rank, size):
    for parallel in (ddp, fsdp):
        torch.manual_seed(1)
        model = Model()
        whole = copy.deepcopy(model)
        ours = parallel(model)
        mine, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, whole))
        generator = torch.Generator().manual_seed(3)
        batches = [[torch.randint(11, (2, 3), generator=generator) for _ in range(2 + r)] for r in range(size)]
        steps = 0
        for tokens, weight in join(batches[rank]):
            (F.cross_entropy(ours(tokens).flatten(0, 1), tokens.flatten()) * weight).backward()
            mine.step()
            mine.zero_grad()
            steps += 1
        assert steps == 1 + size
        for i in range(steps):
            for tokens in [b[i] for b in batches if i < len(b)]:
                (F.cross_entropy(whole(tokens).flatten(0, 1), tokens.flatten()) / size).backward()
            theirs.step()
            theirs.zero_grad()
        with unshard_params(ours):
            for name, parameter in ours.named_parameters():
                torch.testing.assert_close(parameter, whole.get_parameter(name), rtol=1e-4, atol=1e-5)
    assert [weight for _, weight in join(range(2 + rank), divide_by_initial_world_size=False)][-1] == (
        2.0 if rank else 0.0
    )
    try:
        list(join(range(rank)))
    except ValueError as error:
        assert "a process has no batch at all" in str(error), error
    else:
        raise AssertionError("a process without batches was taken")


def scenario_no_more_is_sent_than_has_to_be(rank, size):
    def sent(parallel):
        torch.manual_seed(1)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(3)])
        whole = sum(p.numel() * p.element_size() for p in model.parameters())
        axis = axis_of()
        ours = parallel(model, axis)
        optimizer = torch.optim.AdamW(ours.parameters())
        for _ in range(2):
            before = axis.ledger.sent
            ours(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return (axis.ledger.sent - before) / ((size - 1) / size * whole)

    assert sent(lambda m, axis: ddp(m, process_group=axis)) == 2
    for bucketing in FSDPBucketingStrategy:
        options = {"bucketing_strategy": bucketing}
        assert sent(lambda m, a, o=options: fsdp(m, device_mesh=a, sharding_strategy=FSDPType.ZERO2, **o)) == 2
        again = sent(lambda m, a, o=options: fsdp(m, device_mesh=a, sharding_strategy=FSDPType.ZERO3, **o))
        assert again == 2 + 5 / 6 * 768 / 840  # no bias again, nor the first matrix: nobody asks for x's gradient


class Experts(nn.Module):
    """A layer of which each batch says which of its experts it uses; each has a scale of no dimension."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 3)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(count))
        self.scales = nn.ParameterList(torch.tensor(1.5) for _ in range(count))

    def forward(self, x, used):
        y = self.inner(x).tanh()
        return sum(self.scales[i] * self.experts[i](y) for i in used)


def gradients_like_one_process(rank, size, session, tolerance=1e-6, **options):
    """Check gradients of steps whose batches use other experts, the second without zeroing those of the first.

    Args:
        session: the experts that each batch of a step uses; all but the last are within ``no_sync()``.
        tolerance: absolute and relative.
        options: of ``fsdp``.
    """
    torch.manual_seed(3)
    model = Experts()
    whole = copy.deepcopy(model)
    ours = fsdp(model, **options)
    dtype = options.get("param_dtype", torch.float32)
    generator = torch.Generator().manual_seed(10)
    for _ in range(2):
        for i, used in enumerate(session):
            x = torch.randn(6 * size, 5, generator=generator)
            whole(x, used).square().mean().backward()
            with nullcontext() if i == len(session) - 1 else ours.no_sync():
                ours(x.chunk(size)[rank].to(dtype), used).float().square().mean().backward()
        for name, how in parallel_of(model).items():
            expected, found = whole.get_parameter(name).grad, model.get_parameter(name).grad
            assert (found is None) == (expected is None), name
            if expected is not None:
                expected = part_of(expected.reshape(how.shape), how, how.axis.rank)
                torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    return ours


def scenario_what_only_batches_without_synchronisation_use_is_synchronised(rank, size):
    gradients_like_one_process(rank, size, [(0, 1), (0,)])
    gradients_like_one_process(
        rank, size, [(0, 1), (2,), (0,)], sharding_strategy=FSDPType.ZERO3,
        shard_dim=lambda name, parameter: max(parameter.ndim - 1, 0),
    )  # fmt: skip
    gradients_like_one_process(rank, size, [(0, 1), (0,)], device_mesh=init_device_mesh("cpu", (2, 1)))
    gradients_like_one_process(rank, size, [(0, 1), (0,)], 3e-2, param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    gradients_like_one_process(rank, size, [(0, 1), (0,)], 3e-2, reduce_dtype=torch.bfloat16)
    assert "reduce_kept" not in str(
        thunder_frontend.last_backward_traces(gradients_like_one_process(rank, size, [(0,), (0, 1, 2)]))[-1]
    )


def scenario_one_process_alone_has_gradients_that_are_not_synchronised(rank, size):
    torch.manual_seed(3)
    model = Experts()
    whole = copy.deepcopy(model)
    ours = fsdp(model)
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(10 + rank))
    with ours.no_sync():
        loss = ours(x, (0, 1)).square().mean()
    if not rank:
        loss.backward()
        whole(x, (0, 1)).square().mean().backward()
    ours(x, (0,)).square().mean().backward()
    whole(x, (0,)).square().mean().backward()
    for name, how in parallel_of(model).items():
        expected, found = whole.get_parameter(name).grad, model.get_parameter(name).grad
        expected = torch.zeros(how.shape) if expected is None else expected.reshape(how.shape)
        dist.all_reduce(expected)
        assert (found is None) == name.startswith(("experts.2", "scales.2")), name
        if found is not None:
            torch.testing.assert_close(found, part_of(expected / size, how, rank))


class Either(nn.Module):
    """Two layers, of which the batch decides which is used."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x, number):
        return self.layers[number](x)


@torch.no_grad()
def scenario_processes_that_gather_other_parameters_of_equal_shapes_are_refused(rank, size):
    for strategy in FSDPBucketingStrategy:
        ours = fsdp(Either(), bucketing_strategy=strategy)
        ours(torch.ones(2, 4), 0), ours(torch.ones(2, 4), 1)
        with pytest.raises(DisagreementError, match="run different programs"):
            ours(torch.ones(2, 4), rank)
