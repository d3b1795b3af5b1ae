"""What processes agree on, clipping by the joint norm, and state that is saved and loaded, on several processes."""

import copy
import tempfile
import weakref

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

from thunder_distributed import (
    AxisError,
    DisagreementError,
    FSDPBucketingStrategy,
    FSDPType,
    axis_of,
    clip_grad_norm_,
    ddp,
    fsdp,
    get_model_state_dict,
    get_optimizer_state_dict,
    load_model_state_dict,
    load_optimizer_state_dict,
)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x, both):
        return self.second(self.first(x)) if both else self.second(x)


def refused(call):
    try:
        call()
    except DisagreementError as error:
        return str(error)
    raise AssertionError("the processes agreed")


def scenario_processes_that_would_communicate_differently_say_so(rank, size):
    model = ddp(Branching(), process_group=axis_of(None, "branches", patience=20))
    said = refused(lambda: model(torch.ones(2, 3), rank == 0))
    assert "of axis 'branches' would communicate differently in computation_backward" in said
    assert "Collective 1 is\n  on rank 0: all_reduce" in said and "float32[20]" in said and "float32[8]" in said


def scenario_a_process_that_compiles_nothing_is_named(rank, size):
    model = ddp(nn.Linear(3, 2), process_group=axis_of(None, "absent", patience=1))
    if rank == 0:
        said = refused(lambda: model(torch.ones(2, 3)).sum().backward())
        assert "rank 1 has not compiled what rank 0 has, computation_backward, after 1 s" in said
    dist.barrier()


def scenario_a_process_may_have_a_batch_of_another_size(rank, size):
    model = ddp(nn.Linear(3, 2))
    for length in (4, 4 + rank, 4):
        model(torch.ones(length, 3)).mean().backward()


def scenario_a_group_that_is_destroyed_is_let_go(rank, size):
    group = dist.new_group()
    model = ddp(nn.Linear(3, 2), process_group=axis_of(group, "short-lived"))
    model(torch.ones(2, 3)).sum().backward()
    alive = weakref.ref(group)
    dist.destroy_process_group(group)
    del group
    assert alive() is None, "its threads would outlive the interpreter, and end the process with an abort"
    try:
        model(torch.ones(4, 3)).sum().backward()
    except AxisError as error:
        assert "the process group of axis 'short-lived' was destroyed" in str(error)
    else:
        raise AssertionError("gradients were averaged over a group that is gone")


def mlp():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 1))


def inputs(rank=None, size=None):
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(6))
    return x if rank is None else x.chunk(size)[rank]


def scenario_gradients_are_clipped_by_the_norm_of_all_parts(rank, size):
    for norm in (2.0, 1.0, float("inf")):
        whole, model = mlp(), mlp()
        ours = fsdp(model, bucketing_strategy=FSDPBucketingStrategy.LAYER)
        whole(inputs()).square().mean().backward()
        ours(inputs(rank, size)).square().mean().backward()
        expected = nn.utils.clip_grad_norm_(whole.parameters(), 0.01, norm)
        torch.testing.assert_close(clip_grad_norm_(ours, 0.01, norm), expected)
        state = {name: p.grad for name, p in whole.named_parameters()}
        for name, p in ours.named_parameters():
            there = p.grad.shape[0] if rank == 0 else state[name].shape[0] - p.grad.shape[0]
            start = 0 if rank == 0 else p.grad.shape[0]
            torch.testing.assert_close(p.grad[:there], state[name][start : start + there])


def trained(model, optimizer, rank, size, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(inputs(rank, size)).square().mean().backward()
        optimizer.step()


def scenario_whole_state_is_that_of_one_process(rank, size):
    names = mlp().state_dict()
    model = fsdp(mlp())
    state = get_model_state_dict(model, full=True)
    assert list(state) == list(names) and all(torch.equal(state[n], names[n]) for n in names)
    other = {n: t + 1 for n, t in names.items()}
    load_model_state_dict(model, other)
    state = get_model_state_dict(model, full=True)
    assert all(torch.equal(state[n], other[n]) for n in names)


def scenario_training_goes_on_bit_for_bit_from_a_checkpoint(rank, size):
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    model = fsdp(mlp(), sharding_strategy=FSDPType.ZERO3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    trained(model, optimizer, rank, size, 3)
    state = {"model": get_model_state_dict(model), "optimizer": get_optimizer_state_dict(model, optimizer)}
    dcp.save(state, checkpoint_id=folder[0])
    trained(model, optimizer, rank, size, 3)
    expected = get_model_state_dict(model, full=True)

    again = fsdp(nn.Sequential(*copy.deepcopy(list(mlp()))))
    resumed = torch.optim.AdamW(again.parameters(), lr=0.01)
    state = {"model": get_model_state_dict(again), "optimizer": get_optimizer_state_dict(again, resumed)}
    dcp.load(state, checkpoint_id=folder[0])
    load_model_state_dict(again, state["model"])
    load_optimizer_state_dict(again, resumed, state["optimizer"])
    trained(again, resumed, rank, size, 3)
    found = get_model_state_dict(again, full=True)
    assert all(torch.equal(found[n], expected[n]) for n in expected)


def scenario_asking_for_the_state_of_a_new_optimizer_changes_nothing(rank, size):
    for make in (
        lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
        lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01), amsgrad=True),
        lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, dampening=0.5, weight_decay=0.1),
        lambda p: torch.optim.RMSprop(p, momentum=0.5),
        lambda p: torch.optim.SGD(p),
    ):
        found = []
        for asks in (False, True):
            model = fsdp(mlp())
            optimizer = make(model.parameters())
            if asks:
                before = copy.deepcopy(optimizer.param_groups)
                state = get_optimizer_state_dict(model, optimizer)["state"]
                assert not optimizer.state and optimizer.param_groups[0]["lr"] == before[0]["lr"]
                assert all(p.grad is None for p in model.parameters())
                assert all(entries.get("step", 0) == 0 for entries in state.values())
            trained(model, optimizer, rank, size, 2)
            found.append(get_model_state_dict(model, full=True))
        assert all(torch.equal(found[0][n], found[1][n]) for n in found[0])


def scenario_a_checkpoint_is_read_by_one_process(rank, size):
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    model = fsdp(mlp(), shard_dim=lambda name, p: p.ndim - 1)
    dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=folder[0])
    whole = {name: torch.zeros_like(t) for name, t in mlp().state_dict().items()}
    dcp.load({"model": whole}, checkpoint_id=folder[0])
    assert all(torch.equal(whole[n], t) for n, t in mlp().state_dict().items())


def scenario_state_of_another_shape_is_refused(rank, size):
    model = fsdp(mlp())
    state = mlp().state_dict()
    try:
        load_model_state_dict(model, {**state, "0.weight": torch.ones(2, 2)})
    except ValueError as error:
        assert "0.weight has shape [7, 3], and the state dict [2, 2]" in str(error)
    try:
        load_model_state_dict(model, {n: t for n, t in state.items() if n != "0.weight"})
    except KeyError as error:
        assert "lacks ['0.weight']" in str(error)
    else:
        raise AssertionError("what is missing was not noticed")
