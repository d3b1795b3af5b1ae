"""What is known of the objects outside of a program: how the program got at them, and what it relies on of them."""

from __future__ import annotations

import types
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from thunder_frontend._external_state.weakly_held import WeaklyHeld
from thunder_guards import EmptyGuard, Guard, MembershipGuard, PartGuard, SameAsBeforeGuard
from thunder_guards.kinds import NOTHING_INSIDE, is_value
from thunder_guards.mutations import MutationLog
from thunder_guards.sources import Source, held


class Unseen(Protocol):
    """Guards what goes to code that cannot be watched."""

    def escapes(self, value: object, watched: bool = True) -> None:
        """Guard an object that goes to code that cannot be watched."""

    def looked_into(self, value: object, methods: Sequence[str] = (), depth: int = 2) -> None:
        """Guard an object, and those in a container, at which code in C looks."""


class Known(ABC):
    """Sources of objects, guards, and the log of both.

    Args:
        weakly_held: objects that the program is not to keep alive.
    """

    unwatched: Unseen
    """What containers hold goes there where arrays are among it, and it leads to containers again."""

    def __init__(self, weakly_held: Iterable[Any] = ()) -> None:
        self._sources: dict[int, Source] = {}
        self._alive: list[Any] = []
        self._facts: set[Any] = set()
        self.weakly_held = WeaklyHeld(weakly_held)
        self.guards: list[Guard] = []
        self.log: list[tuple[Any, ...]] = []
        self.mutations = MutationLog()
        self.templates: dict[int, tuple[Any, Any]] = {}
        """How each call finds or builds objects of the program, by their identity."""
        self.loads = False
        """Whether interpreted code loads the number that is being read, which may become dynamic then."""

    @abstractmethod
    def read(self, base: Source, kind: str, key: object, value: Any, slot: tuple[Any, Any] | None = None) -> Any:
        """Guard ``value``, found at ``key`` of an external object; return what the program shall see.

        Args:
            base: source of the object.
            kind: of the step to it, such as ``"attribute"``; see :data:`thunder_guards.places.STEPS`.
            key: name, key or index.
            value: what is there.
            slot: the container and key where it is kept, if the compiled function holds the container.
        """

    @abstractmethod
    def loaded(self, read: Callable[..., Any], *where: Any) -> Any:
        """Guard what interpreted code loads: only there does a number, or a text, become dynamic.

        Args:
            read: guards what is found.
            where: its arguments, the value last.
        """

    @abstractmethod
    def hold_from(self, source: Source, value: Any) -> None:
        """Note that a guard makes sure that the very same object is found there."""

    def source_of(self, value: object) -> Source | None:
        """Return how the program got at an external object; ``None`` for its own objects and for scalars."""
        return self._sources.get(id(value))

    def is_held(self, value: object) -> bool:
        """Whether an object is guarded to be the very same on every call."""
        source = self._sources.get(id(value))
        return source is not None and source.is_held

    def know(self, value: object, source: Source) -> None:
        """Note that ``value`` is an external object, reached by ``source``."""
        self.log.append(("know", value, source))
        if id(value) not in self._sources:
            self._sources[id(value)] = source
            self._alive.append(value)

    def keeps_none_alive(self) -> None:
        """Check that guards keep nothing alive that weak references led to. Raises :class:`KeptAlive` if they do."""
        self.weakly_held.check(self.guards, self._sources)

    def depends_on_identity(self, value: object) -> None:
        """Note that the program depends on which object this is: by its ``id``, its hash, or as a key."""
        if type(value) is tuple:
            for part in value:
                self.depends_on_identity(part)
        elif isinstance(value, weakref.ref):
            self.depends_on_identity(value())
        elif type(value) not in NOTHING_INSIDE:
            self.log.append(("touch", value))

    def stays(self, value: object) -> bool:
        """Whether an object is external; it is guarded to be the very same one on every call then."""
        if isinstance(value, types.MethodType):  # each time that it is read it is another one
            return self.stays(value.__self__)
        self.fix_identity(value)
        return self.source_of(value) is not None

    def fix_hash(self, value: object) -> None:
        """Guard that an object whose hash tells which one it is, or such a part of a tuple, is the very same.

        The program depends on which one it is.
        """
        if type(value) is tuple:
            for part in value:
                self.fix_hash(part)
            return
        self.depends_on_identity(value)
        if type(value).__hash__ is object.__hash__:
            self.fix_identity(value)

    def fix_identity(self, value: object, slot: tuple[Any, Any] | None = None, source: Source | None = None) -> None:
        """Guard that an external object is the very same, without keeping alive what is an argument.

        Args:
            value: the object.
            slot: the container and key where it is kept, if the compiled function holds the container.
            source: how the program got at it, if that is not known by the object.
        """
        found = self._sources.get(id(value)) if source is None else source
        if found is None or source is None and (found.is_held or is_value(value)):
            return
        guard: Guard = self.weakly_held.guard(found, value, slot)
        if slot is None and found.is_of_the_call() and type(value).__weakrefoffset__:
            guard = SameAsBeforeGuard(found, value)
        self.require(guard, id(value), "identity")

    def let_go(self) -> None:
        """Keep no object alive any more: what nothing else needs dies now, and not when the collector comes by."""
        self.log.clear()
        self.guards.clear()
        self.weakly_held.let_go()
        self._alive.clear()
        self._sources.clear()

    def know_classes(self, classes: Iterable[type]) -> None:
        """Note classes as external objects: the types of what is guarded, and what these are derived from."""
        for cls in classes:
            self.know(cls, held(cls, cls.__qualname__))

    def is_fixed(self, kind: str, target: object, key: object) -> bool:
        """Whether what is found at a place of an object that is held is guarded to be the very same on every call."""
        container = getattr(target, "__dict__", None) if kind == "attribute" else target
        return (id(container), key) in self._facts

    def part(self, value: object, name: str, part: str) -> None:
        """Guard that a part of an object that the compiled function holds stays the very same."""
        if (id(value), part) not in self._facts:
            source = self._sources.get(id(value))
            known = source if source is not None and source.is_held else held(value, name)
            self.require(PartGuard(known, value, part), id(value), part)

    def own_dict(self, obj: object, source: Source) -> None:
        """Guard that what a held object keeps its attributes in stays the very same dict."""
        if (id(obj), "__dict__") not in self._facts:
            self.part(obj, str(source), "__dict__")

    def require(self, guard: Guard, *fact: Any) -> None:
        """Add a guard, unless the same fact is guarded already."""
        self.log.append(("guard", guard, fact))
        if fact not in self._facts:
            self._facts.add(fact)
            self.guards.append(guard)

    def require_absent(self, source: Source, own: dict[str, Any], names: Iterable[str]) -> None:
        """Guard that what a held object, which ``source`` leads to, keeps its attributes in has none of these names."""
        self.log.append(("lacks", source, own, names))
        new = [name for name in names if (id(own), name, "absent") not in self._facts]
        if new:
            self._facts.update([(id(own), name, "absent") for name in new])
            self.guards.append(MembershipGuard(Source(source, "attribute", "__dict__", own, True), tuple(new), False))

    def lacks(self, obj: object, source: Source, own: dict[str, Any], name: str) -> None:
        """Guard that what an object, which ``source`` leads to, keeps its attributes in has none of that name."""
        if source.is_held:
            self.own_dict(obj, source)
            self.require_absent(source, own, (name,))
        else:
            inside = Source(source, "attribute", "__dict__")
            self.require(MembershipGuard(inside, (name,), False), id(source), name, "absent")

    def not_shadowed(self, obj: object, name: str) -> None:
        """Guard that an external object has no attribute of its own of that name."""
        source, own = self.source_of(obj), getattr(obj, "__dict__", None)
        if source is not None and isinstance(own, dict) and name not in own and not isinstance(obj, type):
            self.lacks(obj, source, own, name)

    def require_empty(self, source: Source, own: dict[str, Any], key: str) -> None:
        """Guard that what a dict which the compiled function holds has at a key is an empty container."""
        self.log.append(("empty", source, own, key))
        there = own[key]
        if id(there) not in self._sources:
            self._sources[id(there)] = Source(source, "item", key, there, True)
            self._alive.append(there)
        if (id(own), key, "empty") not in self._facts:
            self._facts.add((id(own), key, "empty"))
            self.guards.append(EmptyGuard(Source(source, "item", key)))
