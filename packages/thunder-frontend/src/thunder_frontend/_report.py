"""What of a compiled callable runs in Python, where and why."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass

from thunder_frontend._tracebacks import users_stacklevel
from thunder_ir import ThunderError


class FallbackWarning(UserWarning):
    """A part of a compiled callable runs in Python, as no program can be made of it."""


@dataclass(frozen=True, slots=True)
class SplitOff:
    """A callable that runs in Python.

    Args:
        what: its name.
        where: the place in the user's code that no program can hold; ``None`` if that is not known.
        why: what is the matter there, and the way out.
    """

    what: str
    where: str | None
    why: str

    def __str__(self) -> str:
        return f"{self.what} runs in Python: {self.why}" + (f"\n  at {self.where}" if self.where else "")


class Report:
    """Remembers what runs in Python, and warns of each place once.

    A callable is named by what is innermost: those that call it are told of the same place before.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, str], SplitOff] = {}
        self._told: set[tuple[str | None, str]] = set()
        self._lock = threading.Lock()

    def note(self, name: str, error: Exception) -> None:
        """Note why there is no program."""
        found = SplitOff(name, getattr(error, "where", None), _reason(error))
        with self._lock:
            self._found[found.where, found.why] = found

    def asked_for(self, name: str, why: str) -> None:
        """Note what its author does not want compiled: no warning is given."""
        with self._lock:
            self._found[None, name] = SplitOff(name, None, why)
            self._told.add((None, name))

    def split_off(self) -> list[SplitOff]:
        """Return all that runs in Python."""
        with self._lock:
            return list(self._found.values())

    def tell(self, way: str) -> None:
        """Warn of what no warning was given of."""
        with self._lock:
            new = [found for key, found in self._found.items() if key not in self._told]
            self._told.update(self._found)
        for found in new:
            warnings.warn(f"{found}\n  {way}", FallbackWarning, stacklevel=users_stacklevel())


def _reason(error: Exception) -> str:
    """Return what an error says, without the place, which is told on its own."""
    text = Exception.__str__(error) if isinstance(error, ThunderError) else f"{type(error).__name__}: {error}"
    operation = getattr(error, "operation", None)
    return f"{text} (operation: {operation})" if operation else text
