"""What was found once, of a bounded number of structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from thunder_loops import Structure

T = TypeVar("T")


class Memo(Generic[T]):
    """Answers by structure. Threads may find the same answer at once; then one of them is kept.

    Args:
        most: answers that are kept; beyond, those found first are forgotten.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._found: dict[Structure, T] = {}

    def get(self, structure: Structure | None, find: Callable[[], T]) -> T:
        """Return the answer for a structure, found now if it is new; where there is no structure, each time."""
        if structure is None:
            return find()
        if structure in self._found:
            return self._found[structure]
        found = find()
        while len(self._found) >= self.most:
            self._found.pop(next(iter(self._found)), None)
        return self._found.setdefault(structure, found)
