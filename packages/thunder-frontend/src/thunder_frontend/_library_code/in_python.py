"""What is interpreted in place of functions in C, which call what they are given unseen."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any


def reduce(function: Callable[[Any, Any], Any], iterable: Iterable[Any], /, *initial: Any) -> Any:
    """Do what ``functools.reduce`` does, such as ``reduce(getattr, ["layer", "weight"], model)``."""
    items = iter(iterable)
    if initial:
        (value,) = initial
    else:
        try:
            value = next(items)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value") from None
    for item in items:
        value = function(value, item)
    return value


def bound(function: Any, owner: Any) -> Any:
    """Return a method; an acquisition makes it without looking into what code in C is given."""
    return types.MethodType(function, owner)


def remade(cls: Any, attributes: object) -> Any:
    """Return an object with these attributes, an iterable of pairs, without running its ``__init__``."""
    made = object.__new__(cls)
    made.__dict__.update(attributes)
    return made
