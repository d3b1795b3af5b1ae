"""Signatures that PyTorch still takes, with a warning: numbers by position that now have names and come last."""

from __future__ import annotations

from typing import Any

import torch

T = torch.Tensor
_NAMES = {
    **dict.fromkeys(("add", "sub"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}
_FEWEST = {"add": 3, "sub": 3}
"""From how many arguments on a call is in the old form; four if not told."""

DEPRECATED: dict[Any, tuple[tuple[str, ...], int]] = {
    getattr(place, found): (names, _FEWEST.get(name, 4))
    for name, names in _NAMES.items()
    for place in (torch, T)
    for found in (name, f"{name}_")
    if hasattr(place, found)
}
"""Functions that have an old form: the names of the numbers in it, in order, and with how many arguments it begins."""


def in_current_form(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call such that numbers in it have their names.

    Args:
        function: one of :data:`DEPRECATED`.
        args, kwargs: of the call.

    Example:
        >>> import torch
        >>> from thunder_torch.deprecated_signatures import in_current_form
        >>> x = torch.ones(())
        >>> in_current_form(torch.add, (x, 2, x), {})
        ((tensor(1.), tensor(1.)), {'alpha': 2})
    """
    names, fewest = DEPRECATED[function]
    if len(args) < fewest:
        return args, kwargs
    numbers = [a for a in args if not isinstance(a, T)]
    tensors = tuple([a for a in args if isinstance(a, T)])
    return tensors, {**kwargs, **dict(zip(names, numbers, strict=False))}
