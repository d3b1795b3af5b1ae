"""What a program gets at through weak references: it may die as soon as nothing else needs it, so it is not kept.

Guards keep what they compare alive, lest another object comes in its place. An object that a weak reference led to, and
that is guarded in some other way as well, is not to live on for that: the program is acquired again, with weak guards.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from thunder_guards import Guard, IdentityGuard, SameAsBeforeGuard
from thunder_guards.sources import Source, held

ALWAYS_KEPT = (type, types.ModuleType, torch.Tensor)
"""Classes and modules are kept by much else, and tensors are taken by the places where they are found."""


class KeptAlive(Exception):
    """A program keeps objects alive that it is not to keep.

    Args:
        values: all that it is not to keep.
    """

    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.values = values


class WeaklyHeld:
    """Tells which objects are not to be kept alive.

    Args:
        values: those of which that is known from an earlier acquisition.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._known = {id(value): value for value in values}
        self._answered: dict[int, Any] = {}

    def __contains__(self, value: object) -> bool:
        return id(value) in self._known

    def values(self) -> list[Any]:
        """Return the objects of which that is known."""
        return list(self._known.values())

    def answered(self, question: object, value: object) -> None:
        """Note what the program was told, which may be by a weak reference."""
        asks_weakly = isinstance(question, weakref.ref) or isinstance(getattr(question, "__self__", None), weakref.ref)
        if asks_weakly and value is not None and value not in self and not isinstance(value, ALWAYS_KEPT):
            self._answered[id(value)] = value

    def guard(self, source: Source, value: object, slot: tuple[Any, Any] | None = None) -> Guard:
        """Return a guard that the very same object is found there."""
        if value not in self:
            return IdentityGuard(source, value, slot)
        place = source if slot is None else Source(held(slot[0], str(source.base)), "item", slot[1])
        return SameAsBeforeGuard(place, value)

    def found(self, source: Source, value: object) -> Source:
        """Return the source of an object that is guarded to be the very same one."""
        is_weak = value in self
        return Source(source.base, source.kind, source.key, weakref.ref(value) if is_weak else value, True, is_weak)

    def check(self, guards: Iterable[Guard], sources: Mapping[int, Source]) -> None:
        """Raise :class:`KeptAlive` if the program keeps alive what weak references led to."""
        if not self._answered:
            return
        compared = {id(guard.value) for guard in guards if isinstance(guard, IdentityGuard)}
        compared.update([place for place, source in sources.items() if source.is_held and not source.is_weak])
        kept = [value for place, value in self._answered.items() if place in compared]
        if kept:
            raise KeptAlive([*self._known.values(), *kept])

    def let_go(self) -> None:
        """Keep nothing alive any more."""
        self._known.clear()
        self._answered.clear()
