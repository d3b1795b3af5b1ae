"""Layers that several processes compute together, beside one process."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from thunder_distributed import (
    Colwise,
    Rowwise,
    clip_grad_norm_,
    column_parallel,
    ddp,
    fsdp,
    get_model_state_dict,
    parallelize,
    row_parallel,
)


class Attention(nn.Module):
    def __init__(self, width=8, heads=4):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.size = width // heads

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Model(nn.Module):
    """The vocabulary, of 11, is no multiple of the processes."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.attention = Attention()
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens):
        x = self.tokens(tokens)
        x = x + self.attention(x)
        return self.head(x + self.down(F.gelu(self.up(self.norm(x)))))


PLAN = {
    "tokens": Rowwise(),
    "attention.[qkv]": Colwise(),
    "attention.out": Rowwise(),
    "up": Colwise(),
    "down": Rowwise(),
}


def trains_as_one(rank, size, make_parallel, share=lambda t: t, tolerance=1e-5, clip=None):
    torch.manual_seed(1)
    model = Model()
    whole = copy.deepcopy(model)
    ours = make_parallel(model)
    mine, theirs = (torch.optim.AdamW(m.parameters(), lr=0.01) for m in (ours, whole))
    generator = torch.Generator().manual_seed(2)
    for _ in range(4):
        tokens = torch.randint(11, (2 * size, 5), generator=generator)
        losses = []
        for m, steps, t in ((whole, theirs, tokens), (ours, mine, share(tokens))):
            loss = F.cross_entropy(m(t).flatten(0, 1), t.flatten())
            loss.backward()
            if clip is not None:
                (nn.utils.clip_grad_norm_(m.parameters(), clip) if m is whole else clip_grad_norm_(m, clip))
            steps.step()
            steps.zero_grad()
            losses.append(loss.detach())
        if share(tokens) is not tokens:
            torch.distributed.all_reduce(losses[1])
            losses[1] /= size
        torch.testing.assert_close(losses[1], losses[0], rtol=tolerance, atol=tolerance)
    return ours, whole


def scenario_a_plan_trains_as_one_process(rank, size):
    ours, whole = trains_as_one(rank, size, lambda m: parallelize(m, None, PLAN), clip=0.1)
    assert ours.up.weight.shape == (16 // size, 8) and ours.down.weight.shape == (8, 16 // size)
    state = get_model_state_dict(ours, full=True)
    for name, value in whole.state_dict().items():
        if name != "attention.k.bias":  # whose gradient is zero but for rounding, which Adam makes large
            torch.testing.assert_close(state[name], value, rtol=1e-4, atol=1e-5)


def scenario_layers_may_be_cut_one_by_one(rank, size):
    trains_as_one(rank, size, lambda m: column_parallel(m, ["up", "attention.q"]))
    trains_as_one(rank, size, lambda m: row_parallel(m, ["down", "attention.out"]))
    trains_as_one(rank, size, lambda m: parallelize(m, None, {"tokens": Colwise(gather_output=True)}))


def scenario_over_another_dimension_batches_differ(rank, size):
    for shape in ((size, 1), (1, size)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
        over_both(rank, size, mesh, (lambda t: t.chunk(size)[rank]) if shape[0] > 1 else (lambda t: t))


def over_both(rank, size, mesh, share):
    for more in (lambda m: ddp(m, process_group=mesh["data"]), lambda m: fsdp(m, device_mesh=mesh["data"])):
        trains_as_one(rank, size, lambda m, more=more: more(parallelize(m, mesh["tensor"], PLAN)), share, clip=0.1)


def refused(error, call):
    try:
        call()
    except error as raised:
        return str(raised)
    raise AssertionError("nothing was refused")


def scenario_what_cannot_be_cut_is_refused(rank, size):
    said = refused(ValueError, lambda: parallelize(Model(), None, {"head": Colwise()}))
    assert "head.weight has 11 entries along dimension 0, no multiple of the 2 processes of axis 'tensor'" in said
    assert "and no module is called so" in refused(KeyError, lambda: parallelize(Model(), None, {"nothing": Colwise()}))
    assert "norm, a LayerNorm; it takes" in refused(TypeError, lambda: parallelize(Model(), None, {"norm": Colwise()}))
    model = parallelize(Model(), None, {"up": Colwise()})
    assert "up, a Linear already cut" in refused(TypeError, lambda: parallelize(model, None, {"up": Colwise()}))
