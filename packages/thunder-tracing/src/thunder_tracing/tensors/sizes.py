"""Shapes and numbers as user code sees them: with symbolic dimensions, and fixed where Python needs plain ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from thunder_ir import IntegerProxy, NumberProxy
from thunder_prims.checks import count
from thunder_tracing.tensors.run_texts import RunText, formatted


class SymbolicSize(tuple):  # type: ignore[type-arg]
    """The shape of a tensor with symbolic dimensions, in place of ``torch.Size``, which cannot hold them.

    Parts and sums of it are such shapes again where they are a ``torch.Size`` in eager.
    """

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return as_size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        return as_size(super().__add__(other)) if SUMS_ARE_SIZES else super().__add__(other)

    def __radd__(self, other: tuple[Any, ...]) -> Any:
        return as_size(other + tuple(self)) if SUMS_ARE_SIZES else other + tuple(self)

    def __mul__(self, times: Any) -> Any:
        return as_size(super().__mul__(times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return repr(torch.Size([int(dimension) for dimension in self]))

    def numel(self) -> Any:
        """Return the product of the dimensions."""
        return count(self)


BRACKETS: dict[type, tuple[str, str]] = {tuple: ("(", ")"), SymbolicSize: ("torch.Size([", "])")}
"""Between what the text of the dimensions stands."""

SUMS_ARE_SIZES = type(torch.Size() + ()) is torch.Size


def as_size(dimensions: Sequence[Any]) -> Any:
    """Return dimensions as a shape that user code sees."""
    cls: Any = SymbolicSize if any([isinstance(d, IntegerProxy) for d in dimensions]) else torch.Size
    return cls(dimensions)


def sum_of_sizes(add: object, a: Any, b: Any) -> Any:
    """Return a ``torch.Size`` joined with a tuple of symbolic numbers, which it cannot hold."""
    if torch.Size not in (type(a), type(b)) or add not in (operator.add, operator.iadd):
        return NotImplemented
    if not isinstance(a, tuple) or not isinstance(b, tuple) or not any([isinstance(d, IntegerProxy) for d in (*a, *b)]):
        return NotImplemented
    return as_size((*a, *b)) if SUMS_ARE_SIZES else (*a, *b)


def shown(value: object) -> Any:
    """Return the text of a shape or tuple with symbolic numbers, which it fixes no more than the text of one of them.

    Returns:
        ``NotImplemented`` for other values, and for tuples of what is neither a number nor such a tuple.
    """
    if type(value) not in BRACKETS or not any([isinstance(item, (NumberProxy, *BRACKETS)) for item in value]):  # type: ignore[attr-defined]
        return NotImplemented
    before, after = BRACKETS[type(value)]
    text: Any = before
    for place, item in enumerate(value):  # type: ignore[arg-type, var-annotated]
        plain = type(item) in (int, float, bool)
        part = repr(item) if plain else formatted(item) if isinstance(item, NumberProxy) else shown(item)
        if part is NotImplemented:
            return NotImplemented
        text += (", " if place else "") + part
    return text + ("," if type(value) is tuple and len(value) == 1 else "") + after


def fixed(key: Any) -> Any:
    """Return a key with the values at hand of the symbolic numbers in it, which the program gets fixed to.

    Args:
        key: of a dict: a number, a shape, a text, or anything else.
    """
    if isinstance(key, (NumberProxy, RunText)):
        return key.fixed()
    if type(key) in (tuple, SymbolicSize) and any([isinstance(item, (NumberProxy, RunText, tuple)) for item in key]):
        return (tuple if type(key) is tuple else torch.Size)(map(fixed, key))
    return key
