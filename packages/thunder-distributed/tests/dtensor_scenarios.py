"""DTensors as they are in compiled programs, beside eager: operations are placed by PyTorch's own rules."""

import copy
import functools
import inspect
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import thunder_distributed  # noqa: F401  (which lets programs hold what makes DTensors)
import thunder_frontend
from thunder_frontend import AcquisitionError, jit


@functools.cache
def mesh_of(size):
    """Return the mesh of all scenarios: with PyTorch 2.9, programs refuse the second of two equal ones."""
    return init_device_mesh("cpu", (size,))


def layers():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4))


def cut_rows(model, mesh, of_norms):
    """Cut the parameters of a model into rows, but for those of layer norms, which lie as is said."""

    def cut(name, module, mesh):
        placement = of_norms if isinstance(module, nn.LayerNorm) else Shard(0)
        for key, parameter in list(module._parameters.items()):
            module._parameters[key] = nn.Parameter(distribute_tensor(parameter.detach(), mesh, [placement]))

    return distribute_module(model, mesh, cut)


def trains(model, x):
    """Whether PyTorch itself differentiates a model: 2.10 does not where parameters of layer norms are cut."""
    try:
        model(x).full_tensor().sum().backward()
    except RuntimeError as error:
        assert "same shape as normalized_shape" in str(error), error
        return False
    return True


def same(ours, expected):
    assert type(ours) is DTensor and ours.placements == expected.placements, (ours.placements, expected.placements)
    torch.testing.assert_close(ours.full_tensor(), expected.full_tensor())


def scenario_inputs_of_any_placement(rank, size):
    mesh = mesh_of(size)

    def program(x, y):
        return (torch.softmax(x @ y.t(), -1).exp() * 3 + x.sum()).relu().sin()

    compiled = jit(program, fallback="error")
    whole = torch.randn(6, 6), torch.randn(6, 6)
    for first in (Shard(0), Shard(1), Replicate()):
        for second in (Shard(0), Replicate()):
            given = [distribute_tensor(t, mesh, [p]) for t, p in zip(whole, (first, second), strict=True)]
            same(compiled(*given), program(*given))
    torch.testing.assert_close(compiled(*whole), program(*whole))  # which are none


def scenario_parameters_train_as_in_eager(rank, size):
    mesh = mesh_of(size)

    probe = distribute_tensor(torch.ones(6, 4), mesh, [Shard(0)])
    of_norms = Shard(0) if trains(cut_rows(layers(), mesh, Shard(0)), probe) else Replicate()
    ours, theirs = [cut_rows(layers(), mesh, of_norms) for _ in range(2)]
    compiled = jit(ours, fallback="error")
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (ours, theirs)]
    for _ in range(4):
        x = distribute_tensor(torch.randn(6, 4), mesh, [Shard(0)])
        results = [compiled(x), theirs(x)]
        same(*results)
        for y, optimizer in zip(results, optimizers, strict=True):
            y.full_tensor().square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(mine, expected)


def scenario_the_forwards_of_sharded_modules_are_compiled(rank, size):
    mesh = mesh_of(size)
    ours, theirs = layers(), layers()
    for module in ours:
        module.forward = jit(module.forward)
    for model in (ours, theirs):
        for module in model:
            if list(module.parameters()):
                fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (ours, theirs)]
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        x = torch.randn(6, 4, generator=generator)
        for model, optimizer in zip((ours, theirs), optimizers, strict=True):
            F.mse_loss(model(x), torch.zeros(6, 4)).backward()
            optimizer.step()
            optimizer.zero_grad()
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(mine, expected)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.size = width // heads

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, width=16, heads=4, words=13):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.norm, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        x = x + self.attention(self.norm(x))
        x = x + self.down(F.gelu(self.up(self.second(x))))
        return self.head(x)


HEADS = {"attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel()}
PLAN = {
    "tokens": RowwiseParallel(input_layouts=Replicate()),
    **HEADS,
    "attention.out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=Replicate()),
}
ON_SEQUENCES = {
    "tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "attention": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
    **HEADS,
    "attention.out": RowwiseParallel(output_layouts=Shard(1)),
    "second": SequenceParallel(),
    "up": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Shard(1)),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
}


def trained_with_hooks(plan, mesh, **options):
    """Train what parallelize_module made, compiled, beside the same in eager and a model in one process."""
    torch.manual_seed(1)
    ours = Transformer()
    theirs, whole = copy.deepcopy(ours), copy.deepcopy(ours)
    for model in (ours, theirs):
        parallelize_module(model, mesh, dict(plan))
    compiled = jit(ours, fallback="error", **options)
    models = (compiled, theirs, whole)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in models]
    for step in range(4):
        tokens = torch.randint(13, (2, 6 if step < 2 else 8), generator=torch.Generator().manual_seed(step))
        losses = []
        for model, optimizer in zip(models, optimizers, strict=True):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        assert type(losses[0]) is torch.Tensor
        torch.testing.assert_close(losses[0], losses[1])
        torch.testing.assert_close(losses[0], losses[2])
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        if isinstance(expected, DTensor):
            same(mine, expected)
        else:
            torch.testing.assert_close(mine, expected)
    return compiled


def scenario_what_parallelize_module_made_is_one_program(rank, size):
    compiled = trained_with_hooks(PLAN, mesh_of(size))
    forward = str(thunder_frontend.last_traces(compiled)[-1])
    assert forward.count("_moved(") >= 3, forward
    assert thunder_frontend.cache_misses(compiled) == 2  # for the two lengths


def scenario_hooks_of_sequence_parallelism_are_part_of_the_program(rank, size):
    trained_with_hooks(ON_SEQUENCES, mesh_of(size))


def scenario_hooks_are_part_of_programs_that_leave_sizes_open(rank, size):
    trained_with_hooks(PLAN, mesh_of(size), cache="symbolic values")


def scenario_another_placement_is_another_program(rank, size):
    mesh = mesh_of(size)

    def program(x):
        y = x * 2
        return (y if y.placements == (Replicate(),) else y.redistribute(placements=[Replicate()])).to_local() + rank

    compiled = jit(program, fallback="error")
    whole = torch.randn(2 * size, 3)
    for placement in (Shard(0), Replicate(), Shard(0)):
        torch.testing.assert_close(compiled(distribute_tensor(whole, mesh, [placement])), whole * 2 + rank)
    assert thunder_frontend.cache_misses(compiled) == 2


def scenario_gradients_of_parts_are_those_of_eager(rank, size):
    mesh = mesh_of(size)

    def uneven(x):
        d = distribute(x, Shard(0))
        return d.to_local().square().sum() + d.full_tensor().sin().sum()

    def summed(x):
        return DTensor.from_local(x, mesh, [Partial()]).redistribute(placements=[Replicate()]).to_local().sin().sum()

    def partial_of(x):
        return (DTensor.from_local(x, mesh, [Partial()], grad_placements=[Replicate()]) * 3).to_local().sum()

    def told(x):
        d = DTensor.from_local(x, mesh, [Replicate()])
        return d.to_local(grad_placements=[Partial()]).square().sum() * (rank + 1)

    def distribute(x, placement):
        return DTensor.from_local(x, mesh, [Replicate()]).redistribute(placements=[placement])

    torch.manual_seed(2)  # the same everywhere
    takes_placements = "grad_placements" in inspect.signature(DTensor.from_local).parameters  # since PyTorch 2.12
    for program in (uneven, summed, told, *([partial_of] if takes_placements else [])):
        x = torch.randn(2 * size + 1, 3)
        mine, theirs = (x.clone().requires_grad_() for _ in range(2))
        jit(program, fallback="error")(mine).backward()
        program(theirs).backward()
        torch.testing.assert_close(mine.grad, theirs.grad, msg=lambda text, program=program: f"{program}: {text}")


def scenario_writes_to_what_may_share_memory_are_refused(rank, size):
    mesh = mesh_of(size)

    def program(x):
        local = DTensor.from_local(x, mesh, [Replicate()]).to_local()
        local += 1
        return x * 2

    try:
        jit(program, fallback="error")(torch.ones(2))
    except AcquisitionError as error:
        assert "a write to a tensor that may share memory with a part of another one" in str(error), error
    else:
        raise AssertionError("a write that eager sees elsewhere was taken")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert jit(program)(torch.ones(2)).tolist() == [4.0, 4.0]
