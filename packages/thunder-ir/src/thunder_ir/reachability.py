"""What can be reached from something, whatever it is that leads on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def reached(
    start: Iterable[T], following: Callable[[T], Iterable[T]], key: Callable[[T], Hashable] = id
) -> Iterator[T]:
    """Yield what the walk starts at and all that this leads to, each once; what was found last comes first.

    Whoever takes the values one by one may stop at any time: what a value leads to is asked after it was taken.

    Args:
        start: where the walk begins.
        following: returns what a value leads to.
        key: tells values apart; the default, by identity.

    Example:
        >>> from thunder_ir import reached
        >>> divisors = {12: [6, 4], 6: [3, 2], 4: [2]}
        >>> list(reached([12], lambda n: divisors.get(n, []), key=int))
        [12, 4, 2, 6, 3]
    """
    ahead, seen = list(start), {}
    while ahead:
        here = ahead.pop()
        known = key(here)
        if known not in seen:
            seen[known] = here  # alive, so that nothing else has its identity
            yield here
            ahead += following(here)


__all__ = ["reached"]
