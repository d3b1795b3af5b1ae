"""Names of the values in a trace."""

from __future__ import annotations

import keyword
from collections.abc import Iterable


def is_name(text: str) -> bool:
    """Whether a text can be the name of a value: an identifier, in ASCII, of which Python has no second spelling."""
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


class Names:
    """Hands out names that are not taken: ``t0``, ``t1``, … for each prefix.

    Args:
        taken: names that must not be handed out.
    """

    __slots__ = ("_next", "_taken")

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, prefix: str = "t") -> str:
        """Return ``prefix`` with the next free number, and take it."""
        number = self._next.get(prefix, 0)
        taken = self._taken
        name = f"{prefix}{number}"
        while name in taken:
            number += 1
            name = f"{prefix}{number}"
        self._next[prefix] = number + 1
        taken.add(name)
        return name

    def take(self, wanted: str) -> str:
        """Return ``wanted`` made into an identifier, with a number behind it if it is taken, and take it."""
        name = wanted
        if not (name.isidentifier() and name.isascii()):
            name = "".join([c if c.isalnum() and c.isascii() else "_" for c in wanted]) or "_"
        if name[0].isdigit() or keyword.iskeyword(name):
            name = f"_{name}"
        if name in self._taken:
            return self.fresh(f"{name}_")
        self._taken.add(name)
        return name

    def reserve(self, names: Iterable[str]) -> None:
        """Take all of ``names``."""
        self._taken.update(names)

    def copy(self) -> Names:
        """Return an allocator that goes on from here on its own."""
        other = Names(self._taken)
        other._next = dict(self._next)
        return other

    def __contains__(self, name: str) -> bool:
        return name in self._taken
