"""What was found once, of a bounded number of structures of regions of PyTorch's calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from thunder_ir import BoundSymbol, Builder, Proxy, find_builder
from thunder_loops import Structure, is_of_one_program, structure_of
from thunder_torch.literals import PLAIN

T = TypeVar("T")


def structure(bounds: Sequence[BoundSymbol], outputs: Iterable[Proxy]) -> Structure | None:
    """Return what regions have in common that one kernel serves; see :func:`thunder_loops.structure_of`."""
    return structure_of(bounds, outputs, plain=PLAIN, symbolic="identical")


def structure_now(bound: BoundSymbol) -> Structure | None:
    """Return what calls have in common that are alike for sizes as they are now."""
    return structure_of((bound,), (), plain=PLAIN, symbolic="at hand")


class Memo(Generic[T]):
    """Answers by structure. Threads may find the same answer at once; then one of them is kept.

    Answers for symbolic sizes are kept as long as what records the constraints that were met on the way to them.

    Args:
        most: answers that are kept; beyond, those found first are forgotten.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._found: dict[Structure, T] = {}
        self._of_one_program: WeakKeyDictionary[Builder, dict[Structure, T]] = WeakKeyDictionary()

    def get(self, structure: Structure | None, find: Callable[[], T]) -> T:
        """Return the answer for a structure, found now if it is new; where there is no structure, each time."""
        known = None if structure is None else self._known(structure)
        if structure is None or known is None:
            return find()
        if structure in known:
            return known[structure]
        found = find()
        while len(known) >= self.most:
            known.pop(next(iter(known)), None)
        return known.setdefault(structure, found)

    def _known(self, structure: Structure) -> dict[Structure, T] | None:
        if not is_of_one_program(structure):
            return self._found
        builder = find_builder()
        return None if builder is None else self._of_one_program.setdefault(builder, {})
