"""Layers that several processes compute together, beside one process."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from thunder_distributed import (
    Colwise,
    Rowwise,
    SequenceParallel,
    VocabularyCrossEntropy,
    WholeSequence,
    clip_grad_norm_,
    column_parallel,
    ddp,
    fsdp,
    get_model_state_dict,
    parallelize,
    row_parallel,
)
from thunder_frontend import jit, last_backward_traces, last_traces


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


class Tied(nn.Module):
    """A language model whose head is its embedding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.up, self.head = nn.Embedding(12, 8), nn.Linear(8, 8), nn.Linear(8, 12, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        return self.head(F.gelu(self.up(self.tokens(tokens))))


def scenario_tied_weights_that_are_cut_stay_tied(rank, size):
    model = Tied()
    whole = copy.deepcopy(model)
    ours = parallelize(model, None, {"tokens": Rowwise(), "head": Colwise(gather_output=True)})
    assert ours.head.weight is ours.tokens.weight and ours.head.weight.shape == (12 // size, 8)
    mine, theirs = (torch.optim.SGD(m.parameters(), lr=0.5) for m in (ours, whole))
    for seed in range(4):
        tokens = torch.randint(12, (2, 5), generator=torch.Generator().manual_seed(seed))
        losses = []
        for m, steps in ((whole, theirs), (ours, mine)):
            loss = F.cross_entropy(m(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            steps.step()
            steps.zero_grad()
            losses.append(loss.detach())
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(get_model_state_dict(ours, full=True), whole.state_dict(), rtol=1e-5, atol=1e-6)


class OnSequence(Model):
    """What is between layers is of a part of the sequence, and so are the positions."""

    def __init__(self, norm=nn.LayerNorm):
        super().__init__()
        self.norm, self.positions, self.head = norm(8), nn.Embedding(8, 8), nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(8))
        x = x + self.attention(x)
        return self.head(x + self.down(F.gelu(self.up(self.norm(x)))))


ON_SEQUENCE = {
    "tokens": Rowwise(sequence_dim=1),
    "positions": Rowwise(sequence_dim=0),
    "attention.[qkv]": Colwise(sequence_dim=1),
    "attention.out": Rowwise(sequence_dim=1),
    "norm": SequenceParallel(),
    "up": Colwise(sequence_dim=-2),
    "down": Rowwise(sequence_dim=-2),
    "head": Colwise(gather_output=True, sequence_dim=1),
}
GATHERED = {**ON_SEQUENCE, "attention.[qkv]": Colwise(), "attention": WholeSequence()}


def steps_as_one(make, plan, loss_of, **options):
    torch.manual_seed(3)
    model = make()
    whole = copy.deepcopy(model)
    ours = parallelize(model, None, plan, **options)
    generator = torch.Generator().manual_seed(4)
    for _ in range(3):
        tokens = torch.randint(11, (2, 8), generator=generator)
        losses = []
        for m in (whole, ours):
            loss = loss_of(m, tokens)
            loss.backward()
            losses.append(loss.detach())
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)
        for mine, theirs in zip(ours.norm.parameters(), whole.norm.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)
        for m in (whole, ours):
            torch.optim.SGD(m.parameters(), lr=0.1).step()
            m.zero_grad()
    state = get_model_state_dict(ours, full=True)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(state[name], value, rtol=1e-4, atol=1e-5)
    return ours


def scenario_between_layers_each_process_has_a_part_of_the_sequence(rank, size):
    def loss_of(model, tokens):
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    for plan in (ON_SEQUENCE, GATHERED):
        for norm in (nn.LayerNorm, nn.RMSNorm):
            steps_as_one(lambda norm=norm: OnSequence(norm), plan, loss_of)


class WithLoss(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.model, self.loss = OnSequence(), loss

    @property
    def norm(self):
        return self.model.norm

    def forward(self, tokens):
        return self.loss(self.model(tokens).flatten(0, 1), tokens.flatten())


def scenario_the_loss_of_a_vocabulary_in_parts(rank, size):
    torch.manual_seed(5)
    logits, targets = 20 * torch.randn(7, 4 * size), torch.randint(4 * size, (7,))
    targets[2] = targets[5] = -1
    for reduction in ("mean", "sum", "none"):
        whole, mine = logits.clone().requires_grad_(), logits.chunk(size, 1)[rank].clone().requires_grad_()
        expected = F.cross_entropy(whole, targets, ignore_index=-1, reduction=reduction)
        found = jit(VocabularyCrossEntropy(ignore_index=-1, reduction=reduction))(mine, targets)
        torch.testing.assert_close(found, expected)
        for loss in (expected, found):
            (loss * torch.arange(1.0, 1 + loss.numel()).reshape(loss.shape)).sum().backward()
        torch.testing.assert_close(mine.grad, whole.grad.chunk(size, 1)[rank])

    plan = {f"model.{name}": style for name, style in ON_SEQUENCE.items()} | {"model.head": Colwise(sequence_dim=1)}
    parted = WithLoss(VocabularyCrossEntropy())
    joint = copy.deepcopy(parted)
    joint.loss = nn.CrossEntropyLoss()
    ours = parallelize(parted, None, plan)
    tokens = torch.randint(11, (2, 8))
    for model in (ours, joint):
        model(tokens).backward()
    torch.testing.assert_close(ours.norm.weight.grad, joint.norm.weight.grad, rtol=1e-4, atol=1e-6)


def products_run_beside_the_ring(size):
    """Check that a plan trains as one process does where products are split, and what the programs do."""

    def loss_of(model, tokens):
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    ours = steps_as_one(OnSequence, ON_SEQUENCE, loss_of, splits_products=True)
    forward, backward = (str(t[-1]) for t in (last_traces(ours), last_backward_traces(ours)))
    rings = [program.count("collectives.permute(") / (size - 1) for program in (forward, backward)]
    assert rings == [5, 7]  # q, k and v read one gather of the forward program, and have a sum each in the backward one
    assert ".reduce_scatter(" not in backward and backward.count(".all_gather(") == 2, backward  # of embeddings


def scenario_products_run_beside_the_ring(rank, size):
    products_run_beside_the_ring(size)


def scenario_what_cannot_run_on_a_sequence_is_refused(rank, size):
    said = refused(TypeError, lambda: parallelize(Model(), None, {"head": SequenceParallel()}))
    assert "head, a Linear, on parts of a sequence; SequenceParallel takes a LayerNorm or an RMSNorm" in said
    model = parallelize(Model(), None, {"norm": SequenceParallel()})
    assert "norm, a LayerNorm already cut" in refused(
        TypeError, lambda: parallelize(model, None, {"norm": WholeSequence()})
    )
