"""functionalize, for those who ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def functionalize(function: F) -> F:
    """Return ``function``: what it does while it is recorded is free of writes already.

    Whoever records a program with in-place operations turns them into values; so there is nothing left to do.
    """
    return function
