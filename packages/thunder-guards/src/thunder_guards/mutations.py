"""Writes to external state: made while a program is acquired, undone after it, and made again by each call."""

from __future__ import annotations

import operator
import types
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from thunder_guards.buffers import copy_of, holds
from thunder_guards.places import MISSING, WRITTEN, builtin_kind, contents_of, is_empty, is_slot, kept_as

Place: TypeAlias = tuple[int, str, Any]
"""The ``id`` of an object that is written to, the kind of write, and the name or key."""


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """One external place that a program writes to.

    Args:
        kind: of place, by its name in :data:`~thunder_guards.places.WRITTEN`.
        target: the object written to.
        key: name or key; ``None`` for a cell, a context variable, an end or a whole container.
        before: what was there, :data:`MISSING` if nothing; of a container, a copy; of an end, the length of the list.
    """

    kind: str
    target: Any
    key: Any
    before: Any


class MutationLog:
    """Keeps what external objects were before the program wrote to them.

    ``version`` counts the writes, ``consulted`` how often it was found that a place asked about was written.
    """

    def __init__(self) -> None:
        self._writes: dict[Place, Write] = {}
        self._places: dict[int, dict[Place, None]] = {}
        self._dicts: dict[int, Any] = {}
        self._containers: set[int] = set()
        self._earlier: list[Write] = []
        self._expected: dict[Place, Write] = {}
        self._buffers: dict[int, tuple[Any, Any]] = {}
        self.version = 0
        self.consulted = 0

    def note(self, kind: str, target: object, key: object, before: object) -> None:
        """Remember what is at a place that is about to be written, the first time."""
        self.version += 1
        apart = kind == "attribute" and builtin_kind(target) is not None  # of what is a container, too
        if apart or id(target) not in self._containers:
            self._keep(Write(kind, target, key, before))
            own = getattr(target, "__dict__", None) if kind == "attribute" else None
            if own.__class__ is dict:
                self._dicts[id(own)] = target

    def take_back(self, kind: str, target: object, key: object) -> None:
        """Forget a write if the program has put back what was there."""
        place = (id(target), kind, key)
        write = self._writes.get(place)
        if write is not None and self.now(write) is write.before:
            self.version += 1
            self._drop(place)

    def note_container(self, container: Any, before: Any = None) -> None:
        """Remember the contents of a container that is about to be changed; ``before``, if it was changed already.

        A buffer is none: what it held is remembered since it was read; see :meth:`watch_buffer`.
        """
        self.version += 1
        if id(container) not in self._containers and builtin_kind(container) is not None:
            self._containers.add(id(container))
            self._unwrite_items(container)
            copy = _copy(container) if before is None else before
            if (id(container), "end", None) in self._writes:
                copy = copy[: self._drop((id(container), "end", None)).before]
            self._keep(Write("container", container, None, copy))

    def take_end(self, container: list[Any]) -> list[Any] | None:
        """Take back what the program appended to a list of which it saw nothing else; ``None`` if it did not."""
        if (id(container), "end", None) not in self._writes:
            return None
        start = self._drop((id(container), "end", None)).before
        appended = container[start:]
        del container[start:]
        return appended

    def watch_buffer(self, buffer: object) -> None:
        """Remember the contents of a buffer to which code that is not watched may write from now on."""
        if id(buffer) not in self._buffers:
            self._buffers[id(buffer)] = buffer, copy_of(buffer)

    def is_unchanged(self, buffer: object) -> bool:
        """Whether a buffer holds what it held when it was first seen."""
        return id(buffer) not in self._buffers or holds(buffer, self._buffers[id(buffer)][1])

    def _settle_buffers(self) -> None:
        for buffer, before in self._buffers.values():
            if not holds(buffer, before):
                self._keep(Write("buffer", buffer, None, before))

    def expect(self, kind: str, target: object, key: object, before: object) -> None:
        """Remember what is at a place that code that is not watched may write; see :meth:`settle`."""
        place = (id(target), kind, key)
        if place not in self._expected:
            self._expected[place] = Write(kind, target, key, _copy(target) if kind == "container" else before)

    def settle(self, is_over: bool = True) -> None:
        """Note the places that were indeed written, of those where that was expected.

        Args:
            is_over: whether the code that is not watched has ended.
        """
        expected = list(self._expected.values())
        if is_over:
            self._expected = {}
        for write in expected:
            if write.kind == "container":
                if not _same_contents(write.target, write.before):
                    self.note_container(write.target, write.before)
                continue
            if write.kind == "cell":
                now = contents_of(write.target)
            else:
                now = (write.target.__dict__ if write.kind == "attribute" else write.target).get(write.key, MISSING)
            if now is not write.before:
                self.note(write.kind, write.target, write.key, write.before)

    def wrote_items(self, container: object) -> list[Place]:
        """Return the single items of a container that the program wrote."""
        return [p for p in self._places.get(id(container), ()) if p[1] == "item"]

    def _unwrite_items(self, container: object) -> None:
        """Fold writes to single items into the write of the whole container, whose copy is of before them."""
        for place in self.wrote_items(container):
            self._earlier.append(self._drop(place))

    def _keep(self, write: Write) -> None:
        place = (id(write.target), write.kind, write.key)
        if place not in self._writes:
            self._writes[place] = write
            self._places.setdefault(place[0], {})[place] = None

    def _drop(self, place: Place) -> Write:
        del self._places[place[0]][place]
        return self._writes.pop(place)

    def wrote(self, container: object) -> bool:
        """Whether the program changed this container as a whole."""
        found = id(container) in self._containers
        self.consulted += found
        return found

    def changed(self, container: object) -> bool:
        """Whether the program changed anything in this container."""
        found = id(container) in self._containers or bool(self._places.get(id(container)))
        self.consulted += found
        return found

    def written_at(self, target: object, kind: str, key: object) -> bool:
        """Whether the program wrote to this place."""
        found = (id(target), kind, key) in self._writes or self._written_otherwise(target, kind, key)
        self.consulted += found
        return found

    def _written_otherwise(self, target: object, kind: str, key: object) -> bool:
        """Whether the program wrote to a place in another way.

        An attribute may be written as an item of the object's ``__dict__``, or the other way round; what a cell holds,
        as a variable.
        """
        if kind == "item":
            owner = self._dicts.get(id(target))
            return owner is not None and (id(owner), "attribute", key) in self._writes and not is_slot(owner, key)
        if isinstance(target, types.CellType):
            return (id(target), "cell", None) in self._writes
        if kind != "attribute" or is_slot(target, key):
            return False
        own = getattr(target, "__dict__", None)
        return own.__class__ is dict and ((id(own), "item", key) in self._writes or id(own) in self._containers)

    def touches(self, target: object) -> bool:
        """Whether the program wrote anything to an object."""
        return bool(self._places.get(id(target)))

    def added(self, container: object, key: object) -> bool:
        """Whether the program added a key to a dict, be it as an attribute of the object whose ``__dict__`` it is."""
        write = self._writes.get((id(container), "item", key))
        if write is not None and write.before is MISSING:
            return True
        owner = self._dicts.get(id(container), container)
        write = self._writes.get((id(owner), "attribute", key))
        return write is not None and write.before is MISSING and not is_slot(owner, key)

    def keys_not_added(self, container: Iterable[Any]) -> tuple[Any, ...]:
        """Return the keys of a dict but for those that the program added, in their order."""
        if not self.touches(container) and not self.touches(self._dicts.get(id(container), container)):
            return tuple(container)
        return tuple([key for key in container if not self.added(container, key)])

    def writes(self) -> list[Write]:
        """Return the places written to, in the order of their first write."""
        self._settle_buffers()
        return list(self._writes.values())

    def now(self, write: Write) -> Any:
        """Return what is at the place now; :data:`MISSING` if nothing is."""
        return WRITTEN[write.kind].now(write.target, write.key)

    def undo(self) -> None:
        """Put everything back, last write first."""
        self.settle()
        self._settle_buffers()
        for write in reversed(self._writes.values()):
            WRITTEN[write.kind].restore(write.target, write.key, write.before)
        for write in reversed(self._earlier):
            WRITTEN[write.kind].restore(write.target, write.key, write.before)


def _copy(container: Any) -> Any:
    kind = builtin_kind(container)
    if kind is OrderedDict or kind is dict:
        return kind(kind.items(container))
    if kind is list or kind is set:
        return kind.copy(container)
    return deque(deque.__iter__(container), container.maxlen)


def _same_contents(container: Any, before: Any) -> bool:
    """Whether a container holds the very same objects as its copy, in the same order."""
    now, then = ([*c, *c.values()] if isinstance(c, dict) else [*c] for c in (container, before))
    return len(now) == len(then) and all(map(operator.is_, now, then))


__all__ = ["MISSING", "MutationLog", "Write", "contents_of", "is_empty", "is_slot", "kept_as"]
