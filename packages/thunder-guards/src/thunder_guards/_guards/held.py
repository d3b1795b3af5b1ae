"""Guards of objects that the compiled function holds: their type, and what functions and classes are made of.

A program relies on the types of as many objects as it has modules, and on what these keep their attributes in, so that
the prologue checks these together, unless they are few; and the code of as many functions as it calls. What else
functions and classes are made of is few, and is read fastest where it is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, is_
from typing import Any

from thunder_guards._guards.base import Aspect, Guard, SeveralGuard, shown
from thunder_guards.kinds import is_array
from thunder_guards.sources import Source
from thunder_ir import Context

GETTERS: dict[str, Callable[[Any], Any]] = {
    "type": type,
    **{name: attrgetter(name) for name in ("__code__", "__globals__", "__defaults__", "__kwdefaults__")},
    **{name: attrgetter(name) for name in ("__mro__", "__dict__")},
    **{name: attrgetter(name) for name in ("default_factory", "func", "args", "keywords")},
}
"""What is looked at, by name."""


class PartGuard(Guard):
    """A part of an object is the very same one: its type, a function's code, a class' order of bases.

    Args:
        source: of the object.
        owner: the object.
        part: which of :data:`GETTERS`.
    """

    __slots__ = ("part", "value")

    def __init__(self, source: Source, owner: object, part: str) -> None:
        super().__init__(source)
        self.part = part
        self.value = GETTERS[part](owner)

    def expecting(self, value: object) -> PartGuard:
        """Return a guard of the same source's part that expects another object there."""
        if value is self.value:
            return self
        made = self.moved(self.source)
        made.value = value
        return made

    def condition(self, context: Context) -> str:
        here = self.source.expression(context)
        if self.part == "type":
            return f"type({here}) is {context.object(self.value, self.value.__name__)}"
        expected = "None" if self.value is None else context.object(self.value, self.part.strip("_"))
        return f"{here}.{self.part} is {expected}"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        if self.part == "type":
            yield "type({})", self.value
        else:
            yield f"id({{}}.{self.part})", id(self.value)

    def problem(self, value: object) -> str | None:
        now = GETTERS[self.part](value)
        if now is self.value:
            return None
        if self.part == "type":
            return f"is of type {now.__qualname__}, compiled for {self.value.__qualname__}"
        return f"has another {self.part}, {shown(now)}; compiled for {shown(self.value)}"


GATHERED = ("type", "__dict__", "__code__", "__mro__")
"""Parts that a program relies on of as many objects as it has modules, functions, or classes of modules."""
FEW = 12
"""How many checks are written out, which takes calls less time and compiling more."""


def gathered(guards: Sequence[PartGuard], context: Context) -> list[str]:
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


class SameObjectGuard(SeveralGuard):
    """Two ways lead to one object, as with tied parameters."""

    __slots__ = ()

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        return " is ".join(values)

    def difference(self, *values: Any) -> str | None:
        return None if values[0] is values[1] else f"{self.places} are two objects now, compiled for one"


class DistinctObjectsGuard(SeveralGuard):
    """Objects are different ones, as they were."""

    __slots__ = ()

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        if len(values) == 2:
            return " is not ".join(values)
        return f"len({{*map(id, [{', '.join(values)}])}}) == {len(values)}"  # alive together: some are made when asked

    def difference(self, *values: Any) -> str | None:
        if len(set(map(id, values))) == len(values):
            return None
        return f"two of {self.places} are one object now, compiled for different ones"


class NotHeldGuard(SeveralGuard):
    """Objects are none of those that the compiled function holds.

    Args:
        sources: of the objects, one or more.
        others: those that are held, which are not kept alive for this.
    """

    __slots__ = ("ids",)

    def __init__(self, sources: Sequence[Source], others: Iterable[object]) -> None:
        super().__init__(*sources)
        self.ids = frozenset(map(id, others))

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        ids = context.object(self.ids, "held_ids")
        if len(values) == 1:
            return f"id({values[0]}) not in {ids}"
        return f"{ids}.isdisjoint(map(id, [{', '.join(values)}]))"

    def difference(self, *values: Any) -> str | None:
        for source, found in zip(self.sources, values, strict=True):
            if id(found) in self.ids:
                return f"{source} is an object that the program reads elsewhere, {shown(found)}; compiled for another"
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
        return type(value), value.dtype, value.dtype.names, value.shape, items  # user code may set the names
    view = memoryview(value)
    return type(value), view.format, view.shape, view.tobytes()
