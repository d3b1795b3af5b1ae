"""Models cut into stages, beside one process."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from thunder_distributed import DisagreementError, axis_of, pipeline
from thunder_distributed._torch_versions import TRAINS_BESIDE_CONSTANTS
from thunder_frontend import jit


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, table, tokens):
        kept = tokens if tokens.is_floating_point() else tokens > 0
        return x + self.down(F.gelu(self.up(self.norm(x + table)))) * kept.unsqueeze(-1)


class Model(nn.Module):
    """Every block reads the tokens and a table of a buffer; the first one's result is read at the end again."""

    def __init__(self, blocks=4):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.register_buffer("table", torch.linspace(-1, 1, 16 * 8).view(16, 8))
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.head = nn.Linear(8, 11)
        self.tokens.weight.requires_grad_(True)
        self.blocks[1].up.requires_grad_(False)

    def forward(self, tokens):
        x = start = self.tokens(tokens)
        table = self.table[: tokens.shape[1]].cos()
        kept = tokens if TRAINS_BESIDE_CONSTANTS else (tokens > 0) + 0 * x[..., 0]
        for block in self.blocks:
            x = block(x, table, kept)
        return self.head(x + start)


def loss_of(made, targets):
    return F.cross_entropy(made.flatten(0, 1), targets.flatten())


def trains_as_one(
    rank, size, schedule_class, split_at, make=Model, steps=4, micro=4, wrap=None, share=lambda t: t, group=None
):
    """Train by a schedule, and in one process; losses and parameters must be the same."""
    torch.manual_seed(1)
    model = make()
    whole = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(2)
    batches = [torch.randint(11, (4 * micro, 6), generator=generator) for _ in range(steps)]
    axis = axis_of(group)
    example = share(batches[0])
    stages = pipeline(model, group, split_at=split_at, args=(example[: len(example) // micro],), wrap=wrap)
    several = schedule_class is ScheduleInterleaved1F1B
    schedule = schedule_class(stages if several else stages[0], micro, loss_fn=loss_of)
    optimizers = [torch.optim.AdamW(s.submod.parameters(), lr=0.01) for s in stages]
    theirs = torch.optim.AdamW(whole.parameters(), lr=0.01)
    for tokens in batches:
        mine, losses = share(tokens), []
        given = (mine,) if axis.rank == 0 else ()
        last = {"target": mine.roll(1, 1), "losses": losses} if axis.rank == axis.size - 1 else {}
        schedule.step(*given, **last)
        expected = loss_of(whole(tokens), tokens.roll(1, 1))
        expected.backward()
        if losses and len(mine) == len(tokens):
            torch.testing.assert_close(torch.stack(losses).mean(), expected, rtol=1e-5, atol=1e-5)
        for optimizer in (*optimizers, theirs):
            optimizer.step()
            optimizer.zero_grad()
    return stages, whole


def same_parameters(stages, whole):
    found = {name: p for s in stages for name, p in s.submod.named_parameters()}
    assert found.keys() <= dict(whole.named_parameters()).keys()
    for name, parameter in found.items():
        torch.testing.assert_close(parameter, whole.get_parameter(name), rtol=1e-4, atol=1e-5)
    return found


def scenario_schedules_train_as_one_process(rank, size):
    for schedule in (ScheduleGPipe, Schedule1F1B):
        stages, whole = trains_as_one(rank, size, schedule, [f"blocks.{4 // size * i}" for i in range(1, size)])
        found = same_parameters(stages, whole)
        assert ("tokens.weight" in found) == (rank == 0) and ("head.weight" in found) == (rank == size - 1)


def scenario_each_process_may_have_several_stages(rank, size):
    stages, whole = trains_as_one(rank, size, ScheduleInterleaved1F1B, ["blocks.1", "blocks.2", "blocks.3"])
    assert [s.stage_index for s in stages] == [rank, rank + 2]
    same_parameters(stages, whole)


def scenario_what_thunder_compiled_before_is_taken(rank, size):
    stages, whole = trains_as_one(rank, size, ScheduleGPipe, ["blocks.2"], lambda: Model(), steps=1)
    same_parameters(stages, whole)
    compiled = jit(Model(), partition="save-all")
    assert len(pipeline(compiled, split_at=["blocks.2"], args=(torch.zeros(2, 6, dtype=torch.int64),))) == 1


def scenario_models_that_differ_are_noticed(rank, size):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU() if rank else nn.GELU(), nn.Linear(2, 2))
    try:
        pipeline(model, split_at=["2"], args=(torch.ones(2, 2),))
    except DisagreementError as error:
        assert "relu" in str(error) and "gelu" in str(error), error
    else:
        raise AssertionError("nobody noticed")
