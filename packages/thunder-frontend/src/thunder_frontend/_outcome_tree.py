"""The programs of one callable that differ in what Python saw of values which only the run of a program tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_frontend._outcomes import Look, Path
from thunder_frontend._pipeline import Compiled
from thunder_guards.errors import DataDependentError

OUTCOMES = 8
"""How many programs are made for what Python may see, by default."""

RECENT = 16
"""Over how many calls it is found out which program serves most."""


class OutcomeTree:
    """Finds programs by what Python saw first.

    Args:
        most: how many programs there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._programs: dict[Path, list[Compiled]] = {}
        self._landed: dict[int, list[int]] = {}
        self._all: list[Compiled] = []

    def add(self, compiled: Compiled) -> None:
        """Note a program in which Python sees something."""
        path = compiled.program.path
        if path:
            self._all.append(compiled)
            for length in range(1, len(path) + 1):
                self._programs.setdefault(path[:length], []).append(compiled)

    def along(self, path: Path) -> Sequence[Compiled]:
        """Return the programs in which Python sees this first."""
        return tuple(self._programs.get(path, ()))

    @property
    def is_full(self) -> bool:
        """Whether there are as many programs as there may be."""
        return len(self._all) >= self._most

    def cleared(self) -> list[Compiled]:
        """Forget all programs, and return them."""
        found, self._all, self._programs, self._landed = self._all, [], {}, {}
        return found

    def is_preferred(self, compiled: Compiled, calls: int) -> bool:
        """Whether a program that another one led to serves most of the recent calls, and should be tried first.

        Args:
            compiled: the program.
            calls: how many calls there were so far.
        """
        landed = [at for at in self._landed.get(id(compiled), ()) if at > calls - RECENT] + [calls]
        self._landed[id(compiled)] = landed
        if len(landed) <= RECENT // 2:
            return False
        self._landed.clear()
        return True

    def refusal(self, path: Path) -> DataDependentError:
        """Return why no more programs are made."""
        error = DataDependentError(
            f"Python looks at values that are computed, and saw more than {self._most} different things: keep the "
            "choice in tensors (torch.where, masks), or allow more programs by outcomes=..."
        )
        found = next(iter(self._all), None)
        looks = [] if found is None else _looks(found)
        if len(path) <= len(looks):
            error.where = str(looks[len(path) - 1].location)
        return error


def _looks(compiled: Compiled) -> list[Any]:
    return [b for b in compiled.program.computation.bound_symbols if b.args and isinstance(b.args[0], Look)]
