"""What was found once, of a bounded number of structures of regions of PyTorch's calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from thunder_ir import BoundSymbol, Proxy
from thunder_loops import Structure, structure_of
from thunder_torch.literals import PLAIN

T = TypeVar("T")


def structure(bounds: Sequence[BoundSymbol], outputs: Iterable[Proxy]) -> Structure | None:
    """Return what regions have in common that one kernel serves; see :func:`thunder_loops.structure_of`."""
    return structure_of(bounds, outputs, plain=PLAIN)


def structure_now(bound: BoundSymbol) -> Structure | None:
    """Return what calls have in common that are alike for sizes as they are now."""
    return structure_of((bound,), (), plain=PLAIN, sizes_at_hand=True)


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
