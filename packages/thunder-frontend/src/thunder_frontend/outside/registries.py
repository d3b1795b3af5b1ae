"""What a process has registered: codecs, handlers of what these cannot encode, and the lines of source files."""

from __future__ import annotations

import codecs
import linecache
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thunder_frontend.guards import IdentityGuard
from thunder_frontend.sources import Source, held

if TYPE_CHECKING:
    from thunder_frontend.outside.world import World

CODERS = frozenset({"encode", "decode"})
TEXTS = (str, bytes, bytearray)
BUILT_IN = frozenset({"utf-8", "utf8", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1", "utf-16", "utf-32"})
"""Codecs that code in C knows by name, without asking what is registered."""
READ_LINES = frozenset({"getline", "getlines", "updatecache"})


def cached_lines(filename: str) -> str:
    """Return the text of a source file that was read before."""
    return "".join(linecache.getlines(filename))


def current_lines(filename: str) -> str:
    """Return the text of a source file, which is read again if it has changed."""
    linecache.checkcache(filename)
    return cached_lines(filename)


class Registries:
    """Guards what is registered.

    Args:
        world: takes the guards.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._checked: set[str] = set()

    def called(self, fn: Any, owner: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Take in what a call finds registered that is about to be made.

        Args:
            fn: what is called.
            owner: the object that it is a method of, if it is one.
            args, kwargs: its arguments.
        """
        name, module = getattr(fn, "__name__", ""), getattr(fn, "__module__", None)
        if name in CODERS and (isinstance(owner, TEXTS) or module == "_codecs"):
            self._codec([*(args if isinstance(owner, TEXTS) else args[1:])], kwargs)
        elif isinstance(fn, type) and fn in TEXTS:
            self._codec([*args[1:]], kwargs)
        elif module == "linecache":
            self._lines(name, args)

    def _codec(self, rest: list[Any], kwargs: Mapping[str, Any]) -> None:
        encoding, errors = (*rest, None, None)[:2]
        encoding, errors = kwargs.get("encoding", encoding), kwargs.get("errors", errors)
        if isinstance(encoding, str) and encoding.lower().replace("_", "-") not in BUILT_IN:
            self._found(codecs.lookup, encoding)
        if isinstance(errors, str) and errors != "strict":
            self._found(codecs.lookup_error, errors)

    def _found(self, lookup: Callable[[str], Any], name: str) -> None:
        """Guard what is registered under a name, or that nothing is."""
        try:
            found = lookup(name)
        except LookupError:
            self._world.answers.asked(lookup, (name,), {})
        else:
            source = Source(held(lookup, lookup.__name__), "call", (name,))
            self._world.require(IdentityGuard(source, found), lookup, name)

    def _lines(self, name: str, args: Sequence[Any]) -> None:
        if name == "checkcache" and args:
            self._checked.add(args[0])
        elif name in READ_LINES:
            linecache.getlines(args[0], *args[2 if name == "getline" else 1 :])
            lines = current_lines if args[0] in self._checked else cached_lines
            self._world.answers.result_of(lines, (args[0],), lines(args[0]))


__all__ = ["Registries"]
