"""Guards on many tensors in native code: what passes is what PyTorch's own check passed, and nothing else."""

import importlib
from weakref import WeakValueDictionary

import pytest
import torch
from torch import nn

import thunder_native.guards
from thunder_frontend import cache_misses, jit
from thunder_native.runtime import missing, runtime

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")


@pytest.fixture
def tensors():
    runtime()
    return (
        torch.ones(3),
        nn.Parameter(torch.ones(2, 3)),
        torch.ones(4, dtype=torch.int64),
        torch.ones(()),
        torch.ones(0, 2),
    )


def test_the_same_tensors_pass_and_others_do_not(tensors):
    same = thunder_native.guards.unchanged(tensors, 1)
    assert same(tensors) is True and same((torch.zeros(5, 5), *tensors[1:])) is True
    for place in range(1, len(tensors)):
        other = tensors[place].detach().clone().requires_grad_(tensors[place].requires_grad)
        assert same((*tensors[:place], other, *tensors[place + 1 :])) is False
    assert same(tensors[:-1]) is False and same((*tensors, tensors[0])) is False


def test_the_first_ones_are_apart_from_each_other_and_from_the_rest(tensors):
    one = thunder_native.guards.unchanged(tensors, 1)
    assert not any(one((t, *tensors[1:])) for t in tensors[1:])
    two = thunder_native.guards.unchanged(tensors, 2)
    assert (
        two(tensors)
        and two((tensors[1], tensors[0], *tensors[2:]))
        and not two((tensors[0], *tensors[::2], tensors[4]))
    )
    assert not two((tensors[0], tensors[0], *tensors[2:])) and not two((tensors[0], tensors[2], *tensors[2:]))


CHANGES = {
    "requires_grad": lambda t: t.requires_grad_(not t.requires_grad),
    "sizes": lambda t: setattr(t, "data", torch.ones(3, 2)),
    "strides": lambda t: setattr(t, "data", torch.ones(3, 2).t()),
    "dtype": lambda t: setattr(t, "data", t.data.double()),
    "class": lambda t: setattr(t, "__class__", type("Sub", (type(t),), {})),
    "conjugate": lambda t: setattr(t, "data", torch._neg_view(t.data)),
    "device": lambda t: torch.utils.swap_tensors(t, torch.ones(2, 3, device="meta")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tensor_that_changed_does_not_pass(tensors, change):
    changing = torch.ones(2, 3)
    every = (*tensors, changing)
    same = thunder_native.guards.unchanged(every, 1)
    assert same(every)
    CHANGES[change](changing)
    assert not same(every)


def test_where_nothing_is_in_memory_there_is_no_snapshot(tensors, monkeypatch):
    runtime.cache_clear()
    try:
        assert thunder_native.guards.unchanged(tensors, 1) is None
    finally:
        runtime()


def test_of_tensors_of_other_devices_there_is_no_snapshot(tensors):
    assert thunder_native.guards.unchanged((*tensors, torch.ones(2, device="meta")), 1) is None


def network():
    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(12)])


def change_a_shape(module):
    module[3] = nn.Linear(4, 4, bias=False)


def share(module):
    module[3].weight = module[5].weight


def other_numbers(module):
    module[3].weight.data = torch.ones(4, 4, dtype=torch.float64).float().t().contiguous().t()


def freeze(module):
    module[3].weight.requires_grad_(False)


@pytest.mark.parametrize("change", [change_a_shape, share, other_numbers, freeze])
@pytest.mark.parametrize("compilers_loaded", [False, True])
def test_a_program_is_made_again_where_eager_would_notice(change, compilers_loaded, monkeypatch):
    if compilers_loaded:
        importlib.import_module("torch._dynamo.guards")
    made = []
    monkeypatch.setattr("thunder_guards._codegen.tensor_checks._SHARED", WeakValueDictionary())
    monkeypatch.setattr(
        "thunder_guards._codegen.tensor_checks._SNAPSHOTS",
        [lambda tensors, others: made.append(thunder_native.guards.unchanged(tensors, others)) or made[-1]],
    )
    module, x = network(), torch.randn(2, 4)
    compiled = jit(module)
    for _ in range(8):
        compiled(x)
    assert len(made) == 1 and made[0] is not None and cache_misses(compiled) == 1
    change(module)
    for _ in range(8):
        torch.testing.assert_close(compiled(x), module(x))
    found = torch.autograd.grad(compiled(x).sum(), [p for p in module.parameters() if p.requires_grad])
    expected = torch.autograd.grad(module(x).sum(), [p for p in module.parameters() if p.requires_grad])
    for pair in zip(found, expected, strict=True):
        torch.testing.assert_close(*pair)
