"""What a program reads of classes: where an attribute is found, and where it is not.

An attribute of an object is decided by the classes in its type's order of resolution: the first that has the name. A
program relies on what that one holds, on those before it not having the name, and on the order itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from thunder_frontend.guards import HeldPartGuard, MembershipGuard
from thunder_frontend.journal import MISSING
from thunder_frontend.sources import held

if TYPE_CHECKING:
    from thunder_frontend.world import World

LIBRARIES = frozenset({"torch", "builtins", "collections", "typing", "abc", "functools", "enum", "thunder_frontend"})
"""Packages whose classes are not expected to be edited while programs run; what they hold carries no guard."""


def is_settled(made: Any) -> bool:
    """Whether a class or a function is not expected to be edited."""
    return (made.__module__ or "").partition(".")[0] in LIBRARIES


class ClassReads:
    """Guards what is found, and not found, on classes.

    Args:
        world: takes the guards.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._found: dict[tuple[type, str], Any] = {}
        self._strangers: set[tuple[type, Any]] = set()

    def lookup(self, cls: type, name: str) -> Any:
        """Return what ``cls`` or its bases hold under ``name``, :data:`MISSING` if nothing, and guard that."""
        place = (cls, name)
        if place not in self._found:
            self._found[place] = self._lookup(cls.__mro__, name)
            if not is_settled(cls):
                self._world.require(HeldPartGuard(cls, cls.__qualname__, "__mro__"), id(cls), "mro")
        return self._found[place]

    def after(self, start: type, cls: type, name: str) -> Any:
        """Return what ``super(start, obj)`` finds under ``name`` for an ``obj`` of type ``cls``, and guard that."""
        order = cls.__mro__
        self._world.require(HeldPartGuard(cls, cls.__qualname__, "__mro__"), id(cls), "mro")
        return self._lookup(order[order.index(start) + 1 :], name)

    def _lookup(self, order: tuple[type, ...], name: str) -> Any:
        for owner in order:
            if name in owner.__dict__:
                raw = owner.__dict__[name]
                self._world.class_slot(owner, name, raw)
                return raw
            if not is_settled(owner):
                self._world.require(
                    MembershipGuard(held(owner.__dict__, owner.__qualname__), name, False), id(owner), name, "absent"
                )
        return MISSING

    def entered(self, function: Any, args: Sequence[Any]) -> None:
        """Take in how a function that was not loaded by name came to be called: as a special method or a descriptor.

        Args:
            function: about to run.
            args: its arguments: the first one's class, or the class itself, holds the function.
        """
        first = args[0]
        if function.__name__ in ("__get__", "__set__", "__delete__") and len(args) > 1:
            owner = args[1] if args[1] is not None else args[2]
            for name in self._search(owner, ("descriptor", id(first)), lambda raw: raw is first):
                if not hasattr(type(first), "__set__"):
                    self._world.not_shadowed(owner, name)
        self._search(first, ("code", id(function.__code__)), lambda raw: _runs(raw, function))

    def _search(self, obj: Any, what: Any, matches: Callable[[Any], bool]) -> list[str]:
        """Guard and return each name under which the object's class, or the object if it is one, holds what matches."""
        found = []
        for cls in (type(obj), obj) if isinstance(obj, type) else (type(obj),):
            if (cls, what) in self._strangers or is_settled(cls):
                continue
            names = [
                n for owner in cls.__mro__ if not is_settled(owner) for n, raw in owner.__dict__.items() if matches(raw)
            ]
            if not names:
                self._strangers.add((cls, what))
            for name in names:
                self.lookup(cls, name)
            found += names
        return found


def _runs(raw: Any, function: Any) -> bool:
    """Whether what a class holds runs ``function``."""
    if raw is function:
        return True
    if isinstance(raw, property):
        return function in (raw.fget, raw.fset, raw.fdel)
    if isinstance(raw, (staticmethod, classmethod)):
        return raw.__func__ is function
    return isinstance(raw, functools.cached_property) and raw.func is function
