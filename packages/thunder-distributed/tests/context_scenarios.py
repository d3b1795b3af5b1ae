"""Transformers of whose sequences each process has a part, beside one process."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from thunder_distributed import (
    FSDPType,
    clip_grad_norm_,
    context_parallel,
    ddp,
    fsdp,
    get_model_state_dict,
    sequence_part,
    whole_sequence,
)


class Block(nn.Module):
    def __init__(self, width=16, heads=4, groups=2, causal=True):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.size, self.causal = width // heads, causal
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = (nn.Linear(width, groups * self.size) for _ in range(2))
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.inner(x)


class Model(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 16), nn.Embedding(16, 16)
        self.blocks = nn.ModuleList(Block(causal=causal) for _ in range(2))
        self.head = nn.Linear(16, 11)

    def forward(self, tokens, positions):
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def trains_as_one(rank, size, make_parallel, causal=True, cut=sequence_part, steps=6):
    """Train beside one process that has whole sequences; losses and parameters must be the same."""
    torch.manual_seed(1)
    model = Model(causal)
    whole = copy.deepcopy(model)
    ours = make_parallel(model)
    mine, theirs = (torch.optim.AdamW(m.parameters(), lr=0.01) for m in (ours, whole))
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        tokens = torch.randint(11, (2 * size, 16), generator=generator)
        batch = tokens, torch.arange(16).expand(2 * size, -1), tokens.roll(1, 1)
        losses = []
        for m, optimizer, (x, at, y) in ((whole, theirs, batch), (ours, mine, [cut(t) for t in batch])):
            loss = F.cross_entropy(m(x, at).flatten(0, 1), y.flatten())
            loss.backward()
            (nn.utils.clip_grad_norm_(m.parameters(), 0.5) if m is whole else clip_grad_norm_(m, 0.5))
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        torch.distributed.all_reduce(losses[1])
        torch.testing.assert_close(losses[1] / size, losses[0], rtol=1e-5, atol=1e-5)
    for name, value in get_model_state_dict(ours, full=True).items():
        if not name.endswith("key.bias"):  # whose gradient is zero but for rounding, which Adam makes large
            torch.testing.assert_close(value, whole.state_dict()[name], rtol=1e-3, atol=1e-4)
    return ours


def scenario_a_ring_trains_as_one_process(rank, size):
    trains_as_one(rank, size, lambda m: ddp(context_parallel(m)))


def scenario_heads_are_exchanged_for_sequences(rank, size):
    trains_as_one(rank, size, lambda m: ddp(context_parallel(m, method="heads")), steps=3)


def scenario_without_a_mask_and_sharded(rank, size):
    trains_as_one(
        rank, size, lambda m: fsdp(context_parallel(m), sharding_strategy=FSDPType.ZERO3), causal=False, steps=3
    )


def scenario_results_are_joined_again(rank, size):
    whole = torch.arange(48).view(2, 24)
    assert torch.equal(whole_sequence(sequence_part(whole)), whole)
    torch.manual_seed(4)
    model = Model()
    tokens = torch.randint(11, (2, 16))
    at = torch.arange(16).expand(2, -1)
    expected = model(tokens, at)
    ours = context_parallel(copy.deepcopy(model))
    with torch.no_grad():
        torch.testing.assert_close(whole_sequence(ours(sequence_part(tokens), sequence_part(at))), expected)


def scenario_half_precision_is_as_precise(rank, size):
    torch.manual_seed(5)
    q, k, v = (torch.randn(2, 4, 16, 8) for _ in range(3))

    class Attention(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    ours = context_parallel(Attention())
    args = [sequence_part(t, None, 2).bfloat16().requires_grad_() for t in (q, k, v)]
    y = ours(*args)
    y.float().square().sum().backward()
    whole = [t.bfloat16().float().requires_grad_() for t in (q, k, v)]
    expected = F.scaled_dot_product_attention(*whole, is_causal=True)
    expected.square().sum().backward()
    torch.testing.assert_close(y.float(), sequence_part(expected.detach(), None, 2), rtol=2e-2, atol=2e-2)
    for mine, theirs in zip(args, whole, strict=True):
        torch.testing.assert_close(mine.grad.float(), sequence_part(theirs.grad, None, 2), rtol=4e-2, atol=6e-2)
