"""Selection by masks as selection by the places where they are true, which one mask has but once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_ir import BoundSymbol, Proxy, TensorProxy, substitute
from thunder_ir.keys import key_of
from thunder_ir.passes.traits import has_effect, is_random
from thunder_ir.unknown import surely_equal
from thunder_tracing.tensors.producers import Producers

GETITEM = torch.Tensor.__getitem__
SELECTIONS = frozenset({GETITEM, torch.masked_select, torch.Tensor.masked_select})

STEPS = 4
"""How far back it is looked how masks came about, to see that two are the same."""


class Places:
    """Where masks are true, found once for each: what is selected by one mask has one size.

    Masks that are computed in the same way from the same values are one.

    Args:
        producers: of the trace in the making.
        find: records where a mask is true.
    """

    def __init__(self, producers: Producers, find: Callable[[TensorProxy], Any]) -> None:
        self._producers = producers
        self._find = find
        self._found: dict[str, Any] = {}

    def __call__(self, mask: TensorProxy) -> Any:
        """Return a tensor of numbers for each dimension of the mask."""
        key = _computed(mask, self._producers(), STEPS)
        if key not in self._found:
            self._found[key] = self._find(mask)
        return self._found[key]


def _computed(value: Proxy, producers: dict[str, BoundSymbol], steps: int) -> str:
    """Return as text how a value is computed; its name where that is not to be said in a few steps."""
    bound = producers.get(value.name)
    if bound is None or not steps or not isinstance(bound.output, Proxy) or has_effect(bound) or is_random(bound):
        return value.name
    inputs = {p.name: p.renamed(_computed(p, producers, steps - 1)) for p in bound.inputs}
    return f"{id(bound.symbol)}{key_of(substitute(bound.args, inputs))}{key_of(substitute(bound.kwargs, inputs))}"


def selected_by_places(
    function: Any, args: tuple[Any, ...], places: Callable[[TensorProxy], Any]
) -> tuple[Any, tuple[Any, ...]]:
    """Return a call that selects by the places where masks are true what the given one selects by the masks.

    Args:
        function, args: the call. What selects by no index of plain dimensions and fitting masks stays as it is.
        places: from a mask to where it is true, a tensor of numbers for each of its dimensions.
    """
    if function not in SELECTIONS or len(args) != 2:
        return function, args
    a, key = args
    items = key if key.__class__ is tuple else (key,)
    if not any(map(_is_mask, items)) or (function is not GETITEM and key.ndim != a.ndim):
        return function, args
    found: list[Any] = []
    dim = 0
    for item in items:
        if _is_mask(item):
            if not surely_equal(item.shape, a.shape[dim : dim + item.ndim]):
                return function, args
            found += places(item)
            dim += item.ndim
        elif item is None:
            found.append(item)
        elif isinstance(item, (int, slice, TensorProxy)) and not isinstance(item, bool):
            found.append(item)
            dim += 1
        else:
            return function, args
    return GETITEM, (a, tuple(found))


def _is_mask(item: object) -> bool:
    return isinstance(item, TensorProxy) and item.dtype.is_bool and item.ndim > 0
