"""What is checked of tensors on each call, however many there are and however often the program was called."""

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit

CHANGES = {
    "requires_grad": lambda model: model[0].weight.requires_grad_(False),
    "dtype": lambda model: model.double(),
    "shape": lambda model: setattr(model[-1], "bias", nn.Parameter(torch.ones(1))),
    "strides": lambda model: setattr(model[0].weight, "data", model[0].weight.data.t()),
    "class": lambda model: setattr(model[0], "weight", Labelled(model[0].weight.detach())),
    "one for two": lambda model: setattr(model[-1], "weight", model[0].weight),
    "negative": lambda model: setattr(model[0].weight, "data", torch._neg_view(model[0].weight.data)),
}


class Labelled(nn.Parameter):
    pass


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("layers", [2, 12])
@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_tensors_of_other_kinds_are_noticed_on_each_call(change, layers, calls):
    model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(layers)])
    compiled = jit(model)
    for _ in range(calls):
        compiled(torch.ones(2, 3))
    assert cache_misses(compiled) == 1
    CHANGES[change](model)
    x = torch.ones(2, 3, dtype=model[0].weight.dtype)
    for _ in range(2):
        result, expected = compiled(x), model(x)
        torch.testing.assert_close(result, expected)
        model.zero_grad()
        result.sum().backward()
        found = [p.grad for p in model.parameters()]
        model.zero_grad()
        expected.sum().backward()
        for gradient, parameter in zip(found, model.parameters(), strict=True):
            torch.testing.assert_close(gradient, parameter.grad)
    assert cache_misses(compiled) == 2


def test_modules_of_equal_parameters_are_known_by_a_snapshot_each(monkeypatch):
    asked_for = []
    monkeypatch.setattr(
        "thunder_guards._codegen.tensor_checks._SNAPSHOTS",
        [lambda tensors, others, checks: asked_for.append(tensors[others:]) or (lambda _: False)],
    )
    modules = [nn.Sequential(*[nn.Linear(2, 2) for _ in range(12)]) for _ in range(2)]
    compiled = [jit(module, cache="constant values") for module in modules]
    for size in (2, 3):  # two programs of each
        for _ in range(8):
            for run in compiled:
                run(torch.ones(size, 2))
    assert len(asked_for) == 2
    for found, module in zip(asked_for, modules, strict=True):
        assert {*map(id, found)} == {*map(id, module.parameters())}
