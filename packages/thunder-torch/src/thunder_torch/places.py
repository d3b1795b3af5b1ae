"""Indexing with tensors that hold a single integer: they say where, and nothing of what the result looks like.

Eager takes ``x[i]`` for a view of ``x`` where ``i`` is a tensor of one integer and no dimension, like a plain integer.
"""

from __future__ import annotations

from typing import Any

import torch

from thunder_ir import TensorProxy, dtypes


def setitem(a: torch.Tensor, key: Any, value: Any) -> torch.Tensor:
    """Return what ``a`` holds after ``a[key] = value``."""
    result = a.clone()
    result[key] = value
    return result


KEYED = frozenset({torch.Tensor.__getitem__, setitem})
"""Functions whose second argument is an index."""


def at_first_place(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call with 0 for each place in an index that a tensor holds: of the same metadata.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor
        >>> from thunder_torch.places import at_first_place
        >>> at_first_place(torch.Tensor.__getitem__, ("x", (Tensor((), "int64"), slice(2))))
        ('x', (0, slice(None, 2, None)))
    """
    if function not in KEYED or len(args) < 2:
        return args
    key = args[1]
    if key.__class__ is tuple:
        if not any([is_place(k) for k in key]):
            return args
        return (args[0], tuple([0 if is_place(k) else k for k in key]), *args[2:])
    return (args[0], 0, *args[2:]) if is_place(key) else args


def is_place(key: Any) -> bool:
    """Whether a tensor stands for one integer in an index. Booleans and ``uint8`` are masks."""
    if isinstance(key, TensorProxy):
        return not key.shape and not key.dtype.is_inexact and key.dtype not in (dtypes.bool8, dtypes.uint8)
    if not isinstance(key, torch.Tensor) or key.dim():
        return False
    return not (key.is_floating_point() or key.is_complex() or key.dtype in (torch.bool, torch.uint8))


__all__ = ["KEYED", "at_first_place", "is_place", "setitem"]
