"""What an index says of where, and nothing of what the result looks like: single integers, and where slices begin.

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


def as_from_the_first(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call with an index of the same metadata: 0 for an integer, slices that begin at 0.

    What holds more than integers, slices, ``None`` and ``...`` stays as it is, and so does what is out of range.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor
        >>> from thunder_torch.places import as_from_the_first
        >>> as_from_the_first(torch.Tensor.__getitem__, (Tensor((5, 6)), (-2, slice(1, None, 2))))[1]
        (0, slice(0, 5, 2))
    """
    if function not in KEYED or len(args) < 2 or not isinstance(args[0], TensorProxy):
        return args
    key, shape = args[1], args[0].shape
    keys = key if key.__class__ is tuple else (key,)
    if not is_basic(key) or keys.count(...) > 1:
        return args
    omitted = len(shape) - sum([k.__class__ in (int, slice) for k in keys])
    if omitted < 0:
        return args
    first, dim = [], 0
    for k in keys:
        if k is ...:
            dim += omitted
        elif k is not None:
            k, dim = _from_the_first(k, shape[dim]), dim + 1
        first.append(k)
    return (args[0], tuple(first) if key.__class__ is tuple else first[0], *args[2:])


_BASIC = frozenset({int, slice, type(None), type(...)})


def is_basic(key: Any) -> bool:
    """Whether an index holds nothing but integers, slices, ``None`` and ``...``, so that it gives a view."""
    return all([k.__class__ in _BASIC for k in (key if key.__class__ is tuple else (key,))])


def _from_the_first(key: Any, size: Any) -> Any:
    """Return the first of the integers or slices that select as many elements of a dimension, with the same step."""
    if size.__class__ is not int:
        return key
    if key.__class__ is int:
        return 0 if -size <= key < size else key
    if any([part is not None and part.__class__ is not int for part in (key.start, key.stop, key.step)]):
        return key
    if key.step is not None and key.step < 1:
        return key
    chosen = range(*key.indices(size))
    return slice(0, chosen[-1] - chosen[0] + 1 if chosen else 0, chosen.step)


def is_place(key: Any) -> bool:
    """Whether a tensor stands for one integer in an index. Booleans and ``uint8`` are masks."""
    if isinstance(key, TensorProxy):
        return not key.shape and not key.dtype.is_inexact and key.dtype not in (dtypes.bool8, dtypes.uint8)
    if not isinstance(key, torch.Tensor) or key.dim():
        return False
    return not (key.is_floating_point() or key.is_complex() or key.dtype in (torch.bool, torch.uint8))
