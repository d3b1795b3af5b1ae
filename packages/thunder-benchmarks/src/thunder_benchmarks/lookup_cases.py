"""What specialisations of a module may differ in: how each of many is called."""

from __future__ import annotations

import enum
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

PARAMETERS = 200
MANY = 1000
Read: TypeAlias = Callable[["Reads", torch.Tensor, Any], Any]


def as_text(module: Reads, x: torch.Tensor, given: Any) -> int:
    """Return the length of what is given as a text, so that each value has a program of its own."""
    return len(f"{given}")


class Reads(nn.Module):
    """A module that reads many parameters, and computes little.

    Args:
        read: returns a number of what is given, or of what is elsewhere.
        count: of parameters.
    """

    def __init__(self, read: Read = as_text, count: int = PARAMETERS) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(count)])
        self.switches = nn.ModuleList([nn.Identity() for _ in range(10)])
        self.read = read
        self.number: Any = 0

    def forward(self, x: torch.Tensor, given: Any = 0) -> torch.Tensor:
        """Return a sum of all that is given and read."""
        weight = torch.cat(list(self.weights))
        total: torch.Tensor = x.sum() + weight[0] + self.read(self, x, given)
        return total


@dataclass(frozen=True)
class Difference:
    """What specialisations differ in.

    Args:
        call: calls a compiled module the way that leads to specialisation ``i``.
        read: what the module reads of what it is given, or elsewhere.
        ways: how many ways there are at most.
    """

    call: Callable[[Any, int], Any]
    read: Read = as_text
    ways: int = MANY


class Outside:
    """Holds what the module reads from outside of itself."""

    level = 0


def given(values: list[Any]) -> Callable[[Any, int], Any]:
    """Return what calls a module with one of some values."""
    return lambda module, i: module(X, values[i])


def _by_attribute(module: Any, i: int) -> Any:
    module.number = i
    return module(X)


def _by_attribute_of_submodule(module: Any, i: int) -> Any:
    module.switches[3].number = i
    return module(X)


def _by_training_flags(module: Any, i: int) -> Any:
    for k, switch in enumerate(module.switches):
        switch.training = bool(i >> k & 1)
    return module(X)


def _by_global(module: Any, i: int) -> Any:
    Outside.level = i
    return module(X)


def _by_cell() -> Difference:
    level = 0

    def call(module: Any, i: int) -> Any:
        nonlocal level
        level = i
        return module(X)

    return Difference(call, lambda module, x, _: len(f"{level}"))


def _by_environment_variable(module: Any, i: int) -> Any:
    os.environ["THUNDER_BENCHMARKS_LEVEL"] = TEXTS[i]
    return module(X)


def _by_grad_mode(module: Any, i: int) -> Any:
    with torch.set_grad_enabled(i % 2 == 0):
        return module(X, i // 2)


def _by_autocast(module: Any, i: int) -> Any:
    with torch.autocast("cpu", enabled=i % 2 == 0):
        return module(X, i // 2)


def _by_default_dtype(module: Any, i: int) -> Any:
    torch.set_default_dtype(DTYPES[i % 2])
    try:
        return module(X, i // 2)
    finally:
        torch.set_default_dtype(torch.float32)


X = torch.ones(2, 3)
TEXTS = [f"text {i}" for i in range(MANY)]
SHAPED = [torch.ones(2, i + 2) for i in range(MANY)]
PERMUTED = [torch.ones(2, 2, 2, 2, 2).permute(order) for order in itertools.permutations(range(5))]
DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32)
TYPED = [torch.ones(3).to(dtype) for dtype in DTYPES]
REQUIRING = [torch.ones(2, 3, requires_grad=i == 1) for i in range(2)]
Kinds = enum.Enum("Kinds", TEXTS)  # type: ignore[misc]
DIFFERENCES: dict[str, Difference] = {
    "shape": Difference(lambda module, i: module(SHAPED[i])),
    "stride": Difference(lambda module, i: module(PERMUTED[i]), lambda m, x, _: x.contiguous().view(-1)[0], 120),
    "dtype": Difference(lambda module, i: module(TYPED[i % len(TYPED)], i // len(TYPED))),
    "requires_grad": Difference(lambda module, i: module(REQUIRING[i % 2], i // 2)),
    "shapes in a list": Difference(
        given([[torch.ones(i % 30), torch.ones(i // 30)] for i in range(MANY)]),
        lambda m, x, given: given[0].sum() + given[1].sum(),
    ),
    "values of a tensor": Difference(
        given([torch.tensor([i, 3]) for i in range(MANY)]), lambda m, x, given: len(f"{given.tolist()}")
    ),
    "number": Difference(lambda module, i: module(X, i)),
    "quotient of a number": Difference(
        lambda module, i: module(X, 10 * i + 3), lambda m, x, given: len(f"{given // 10}")
    ),
    "shape and number": Difference(lambda module, i: module(SHAPED[i], i % 7)),
    "string": Difference(given(TEXTS)),
    "slice": Difference(given([slice(0, i) for i in range(MANY)])),
    "member of an enumeration": Difference(given(list(Kinds)), lambda m, x, given: len(given.name)),
    "number in a dict": Difference(
        given([{"number": i} for i in range(MANY)]), lambda m, x, given: len(f"{given['number']}")
    ),
    "key of a dict": Difference(given([{i: 1} for i in range(MANY)]), lambda m, x, given: len(f"{next(iter(given))}")),
    "set": Difference(given([{i} for i in range(MANY)]), lambda m, x, given: len(f"{sorted(given)}")),
    "attribute": Difference(_by_attribute, lambda m, x, _: len(f"{m.number}")),
    "attribute of a submodule": Difference(_by_attribute_of_submodule, lambda m, x, _: len(f"{m.switches[3].number}")),
    "training flags": Difference(
        _by_training_flags, lambda m, x, _: sum([k * s.training for k, s in enumerate(m.switches)])
    ),
    "attribute of a class": Difference(_by_global, lambda m, x, _: len(f"{Outside.level}")),
    "closure cell": _by_cell(),
    "environment variable": Difference(
        _by_environment_variable, lambda m, x, _: len(os.environ["THUNDER_BENCHMARKS_LEVEL"])
    ),
    "grad mode": Difference(_by_grad_mode),
    "autocast": Difference(_by_autocast),
    "default dtype": Difference(_by_default_dtype),
}
