"""Selection by masks as selection by the places where they are true, which one mask has but once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_ir import TensorProxy
from thunder_ir.unknown import surely_equal

GETITEM = torch.Tensor.__getitem__
SELECTIONS = frozenset({GETITEM, torch.masked_select, torch.Tensor.masked_select})
"""Functions of a tensor and what selects from it."""


def selected_by_places(
    function: Any, a: TensorProxy, key: Any, places: Callable[[TensorProxy], Any]
) -> tuple[Any, tuple[Any, Any]]:
    """Return a call that selects by the places where masks are true what the given one selects by the masks.

    Args:
        function: one of :data:`SELECTIONS`.
        a: what is selected from.
        key: as Python passes it on. What is no index of plain dimensions and fitting masks stays as it is.
        places: from a mask to where it is true, a tensor of numbers for each of its dimensions.
    """
    items = key if key.__class__ is tuple else (key,)
    if not any(map(_is_mask, items)) or (function is not GETITEM and key.ndim != a.ndim):
        return function, (a, key)
    found: list[Any] = []
    dim = 0
    for item in items:
        if _is_mask(item):
            if not surely_equal(item.shape, a.shape[dim : dim + item.ndim]):
                return function, (a, key)
            found += places(item)
            dim += item.ndim
        elif item is None:
            found.append(item)
        elif isinstance(item, (int, slice, TensorProxy)) and not isinstance(item, bool):
            found.append(item)
            dim += 1
        else:
            return function, (a, key)
    return GETITEM, (a, tuple(found))


def _is_mask(item: Any) -> bool:
    return isinstance(item, TensorProxy) and item.dtype.is_bool and item.ndim > 0


__all__ = ["SELECTIONS", "selected_by_places"]
