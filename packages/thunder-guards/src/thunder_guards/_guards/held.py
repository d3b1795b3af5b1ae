"""Guards of objects that the compiled function holds: their type, and what functions and classes are made of.

A program relies on the types of as many objects as it has modules, and on what these keep their attributes in, so that
the prologue checks these together, unless they are few. What functions and classes are made of is few, and is read
fastest where it is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any

from thunder_guards._guards.base import GONE, Aspect, Guard, PairGuard, shown
from thunder_guards.kinds import is_array
from thunder_guards.sources import Source, held
from thunder_ir import Context

GETTERS: dict[str, Callable[[Any], Any]] = {
    "type": type,
    **{name: attrgetter(name) for name in ("__code__", "__globals__", "__defaults__", "__kwdefaults__")},
    **{name: attrgetter(name) for name in ("__mro__", "__dict__")},
    **{name: attrgetter(name) for name in ("default_factory", "func", "args", "keywords")},
}
"""What is looked at, by name."""


class HeldPartGuard(Guard):
    """A part of an object is the very same one: its type, a function's code, a class' order of bases.

    Args:
        value: the object.
        name: for messages.
        part: which of :data:`GETTERS`.
        source: how to get at the object, if it is not to be kept alive.
    """

    __slots__ = ("part", "value")

    def __init__(self, value: object, name: str, part: str, source: Source | None = None) -> None:
        super().__init__(held(value, name) if source is None else source)
        self.part = part
        self.value = GETTERS[part](value)

    def expecting(self, value: object) -> HeldPartGuard:
        """Return a guard of the same source's part that expects another object there."""
        if value is self.value:
            return self
        made = self.moved(self.source)
        made.value = value
        return made

    def condition(self, context: Context) -> str:
        here = self.source.expression(context)
        now = f"type({here})" if self.part == "type" else f"{here}.{self.part}"
        expected = "None" if self.value is None else context.object(self.value, self.part.strip("_"))
        return f"{now} is {expected}"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        if self.part == "type":
            yield "type({})", self.value
        else:
            yield f"id({{}}.{self.part})", id(self.value)

    def problem(self, value: object) -> str | None:
        now = GETTERS[self.part](value)
        return None if now is self.value else f"has another {self.part}, {shown(now)}; compiled for {shown(self.value)}"


GATHERED = ("type", "__dict__")
"""Parts that a program relies on of as many objects as it has modules."""
FEW = 12
"""How many checks are written out, which takes calls less time and compiling more."""


def gathered(guards: Sequence[HeldPartGuard], context: Context) -> list[str]:
    """Return conditions that check these guards: one for each of :data:`GATHERED` that many of them are about."""
    same, conditions = context.object(is_, "is_"), []
    for part in GATHERED:
        those = [g for g in guards if g.part == part]
        if len(those) <= FEW:
            conditions += [g.condition(context) for g in those]
        else:
            name = part.strip("_")
            getter = "type" if part == "type" else context.object(GETTERS[part], f"{name}_of")
            objects = context.object([g.source.held for g in those], f"with_{name}")
            expected = context.object([g.value for g in those], f"each_{name}")
            conditions.append(f"all(map({same}, map({getter}, {objects}), {expected}))")
    return conditions


class SameObjectGuard(PairGuard):
    """Two ways lead to one object."""

    __slots__ = ()
    OTHERWISE = "{} and {} are two objects now, compiled for one"

    def condition(self, context: Context) -> str:
        return f"{self.source.expression(context)} is {self.other.expression(context)}"

    def holds(self, first: object, second: object) -> bool:
        return first is second


class DistinctObjectsGuard(Guard):
    """Objects are different ones, as they were.

    Args:
        sources: two or more.
    """

    __slots__ = ("sources",)

    def __init__(self, sources: tuple[Source, ...]) -> None:
        super().__init__(sources[0])
        self.sources = sources

    def condition(self, context: Context) -> str:
        if len(self.sources) == 2:
            a, b = (s.expression(context) for s in self.sources)
            return f"{a} is not {b}"
        those = ", ".join([s.expression(context) for s in self.sources])  # alive together: some are made by being asked
        return f"len({{*map(id, [{those}])}}) == {len(self.sources)}"

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        try:
            found = [s.evaluate(dict(roots)) for s in self.sources]
        except GONE as error:
            return f"one of {', '.join(map(str, self.sources))} is gone ({error})"
        if len(set(map(id, found))) == len(found):
            return None
        return f"two of {', '.join(map(str, self.sources))} are one object now, compiled for different ones"

    def problem(self, value: object) -> str | None:
        return None


class NotHeldGuard(Guard):
    """Objects are none of those that the compiled function holds.

    Args:
        sources: of the objects, one or more.
        others: those that are held, which are not kept alive for this.
    """

    __slots__ = ("ids", "sources")

    def __init__(self, sources: tuple[Source, ...], others: Iterable[object]) -> None:
        super().__init__(sources[0])
        self.sources = sources
        self.ids = frozenset(map(id, others))

    def condition(self, context: Context) -> str:
        ids = context.object(self.ids, "held_ids")
        if len(self.sources) == 1:
            return f"id({self.source.expression(context)}) not in {ids}"
        those = ", ".join([s.expression(context) for s in self.sources])
        return f"{ids}.isdisjoint(map(id, [{those}]))"

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        for source in self.sources:
            try:
                found = source.evaluate(dict(roots))
            except GONE as error:
                return f"{source} is gone ({error})"
            if id(found) in self.ids:
                return f"{source} is an object that the program reads elsewhere, {shown(found)}; compiled for another"
        return None

    def problem(self, value: object) -> str | None:
        return None


class SnapshotGuard(Guard):
    """A buffer (an array, a ``bytearray``) holds what it held.

    Args:
        source: what it is about.
        value: the buffer.
    """

    __slots__ = ("snapshot",)

    def __init__(self, source: Source, value: object) -> None:
        super().__init__(source)
        self.snapshot = snapshot(value)

    def condition(self, context: Context) -> str:
        take = context.object(snapshot, "snapshot")
        return f"{take}({self.source.expression(context)}) == {context.object(self.snapshot, 'contents')}"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        if isinstance(self.snapshot[-1], bytes):
            yield snapshot, self.snapshot

    def problem(self, value: object) -> str | None:
        return None if snapshot(value) == self.snapshot else "holds other values than it was compiled for"


def snapshot(value: Any) -> tuple[Any, ...]:
    """Return the contents of a buffer, with all that says how to read them."""
    if is_array(value):
        items = [(type(v), v) for v in value.flat] if value.dtype.hasobject else value.tobytes()
        return (
            type(value),
            value.dtype,
            value.dtype.names,
            value.shape,
            items,
        )  # of a dtype, user code may set the names
    view = memoryview(value)
    return type(value), view.format, view.shape, view.tobytes()
