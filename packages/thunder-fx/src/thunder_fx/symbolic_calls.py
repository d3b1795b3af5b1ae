"""Calls that get symbolic numbers, which PyTorch's own functions would refuse before anybody could record them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import handle_torch_function

from thunder_ir import NumberProxy, flat_proxies


def flat_numbers(value: Any) -> list[NumberProxy]:
    """Return the symbolic numbers in a nested value."""
    return [p for p in flat_proxies(value) if isinstance(p, NumberProxy)]


def called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of PyTorch, or of numbers; one that gets symbolic numbers goes straight to who records."""
    if not flat_numbers((args, kwargs)):
        return function(*args, **kwargs)
    if function in OF_NUMBERS:
        return OF_NUMBERS[function](*args, **kwargs)
    tensors = [a for a in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
    if getattr(function, "__module__", "") in ("_operator", "math", "builtins"):
        if not tensors:
            return function(*args, **kwargs)
        function, args = _method(function, args)
    return handle_torch_function(function, tensors, *args, **kwargs)


def _method(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the method of tensors that an operator calls, and its arguments."""
    name = function.__name__
    if isinstance(args[0], torch.Tensor):
        return getattr(torch.Tensor, f"__{name}__"), args
    swapped = SWAPPED.get(name, f"r{name}")
    return getattr(torch.Tensor, f"__{swapped}__"), (args[1], args[0])


SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
"""What a comparison is when its sides change places."""


def _larger(a: Any, b: Any) -> Any:
    return a if a >= b else b


def _smaller(a: Any, b: Any) -> Any:
    return a if a <= b else b


OF_NUMBERS: dict[Any, Callable[..., Any]] = {
    torch.sym_max: _larger, torch.sym_min: _smaller, torch.sym_not: operator.not_, torch.sym_int: lambda a: int(a),
}  # fmt: skip
"""Functions of numbers that know PyTorch's symbols and no other."""

__all__ = ["called", "flat_numbers"]
