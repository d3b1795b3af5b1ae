"""Functions that other packages want to be interpreted in place of those of a library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from thunder_interpreter import Interpreted

IN_PLACE: dict[Callable[..., Any], Interpreted] = {}
F = TypeVar("F", bound=Callable[..., object])


def interpreted_in_place_of(replaced: Callable[..., Any]) -> Callable[[F], F]:
    """Let programs run the decorated function where another one is called, with the same arguments.

    Args:
        replaced: written in Python, of any library.

    Raises:
        ValueError: something is run in its place already.

    Example:
        >>> from thunder_frontend import interpreted_in_place_of
        >>> def twice(x):
        ...     raise NotImplementedError("which a library does in native code")
        >>> @interpreted_in_place_of(twice)
        ... def written_out(x):
        ...     return x + x
    """

    def register(function: F) -> F:
        if replaced in IN_PLACE:
            raise ValueError(f"{replaced.__qualname__} is replaced already, by {IN_PLACE[replaced].fn}")
        IN_PLACE[replaced] = Interpreted(function)
        return function

    return register
