"""DTensors as they are in compiled programs, beside eager: operations are placed by PyTorch's own rules."""

import copy
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from thunder_frontend import jit
from thunder_guards.errors import UnknownTensorError


def layers():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4))


def same(ours, expected):
    assert type(ours) is DTensor and ours.placements == expected.placements, (ours.placements, expected.placements)
    torch.testing.assert_close(ours.full_tensor(), expected.full_tensor())


def scenario_inputs_of_any_placement(rank, size):
    mesh = init_device_mesh("cpu", (size,))

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
    mesh = init_device_mesh("cpu", (size,))

    def cut(name, module, mesh):
        for key, parameter in list(module._parameters.items()):
            module._parameters[key] = nn.Parameter(distribute_tensor(parameter.detach(), mesh, [Shard(0)]))

    ours, theirs = layers(), layers()
    for model in (ours, theirs):
        distribute_module(model, mesh, cut)
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
    mesh = init_device_mesh("cpu", (size,))
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


def scenario_hooks_that_make_them_run_in_python(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    model = layers()
    expected = copy.deepcopy(model)
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "3": RowwiseParallel()})
    del model[2], expected[2]  # which would get parts
    x = torch.randn(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(jit(model)(x), expected(x))
    try:
        jit(model, fallback="error")(x)
    except UnknownTensorError as error:
        assert "use thunder_distributed.parallelize in place of parallelize_module" in str(error), error
    else:
        raise AssertionError("a program was made of hooks that make DTensors")
