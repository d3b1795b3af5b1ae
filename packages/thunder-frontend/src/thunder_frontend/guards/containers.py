"""Guards of containers: how many items, which keys, which not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from thunder_frontend.guards.base import Guard, shown
from thunder_frontend.guards.values import same_value
from thunder_frontend.kinds import counts_natively, length_of
from thunder_frontend.sources import Source
from thunder_ir import Context, literal


class LengthGuard(Guard):
    """A container has that many items.

    Args:
        source: of the container.
        container: the one at hand.
    """

    __slots__ = ("counts", "length")

    def __init__(self, source: Source, container: Any) -> None:
        super().__init__(source)
        self.length = length_of(container)
        self.counts = counts_natively(type(container))

    def condition(self, context: Context) -> str:
        count = "len" if self.counts else context.object(length_of, "length_of")
        return f"{count}({self.source.expression(context)}) == {self.length}"

    def facts(self) -> Iterable[tuple[str, Any]]:
        if self.counts:
            yield "len({})", self.length

    def problem(self, value: Any) -> str | None:
        found = length_of(value)
        return None if found == self.length else f"has {found} items, compiled for {self.length}"


class KeysGuard(Guard):
    """A dict has these keys in this order."""

    __slots__ = ("keys",)

    def __init__(self, source: Source, keys: tuple[Any, ...]) -> None:
        super().__init__(source)
        self.keys = keys

    def condition(self, context: Context) -> str:
        here = self.source.expression(context)
        if all(type(k) is str for k in self.keys):  # of 1, True and 1.0, a dict has one
            return f"tuple({here}) == {literal(self.keys, context)}"
        return f"{context.object(same_keys, 'same_keys')}({here}, {context.object(self.keys, 'keys')})"

    def facts(self) -> Iterable[tuple[str, Any]]:
        if all(type(k) is str for k in self.keys):
            yield "tuple({})", self.keys

    def problem(self, value: Any) -> str | None:
        return (
            None
            if same_keys(value, self.keys)
            else f"has keys {shown(list(value))}, compiled for {shown(list(self.keys))}"
        )


def same_keys(mapping: Any, keys: tuple[Any, ...]) -> bool:
    """Whether the keys of ``mapping`` are ``keys``, in order, each of the same type."""
    return len(mapping) == len(keys) and all(map(same_value, mapping, keys))


def same_members(members: Any, before: frozenset[Any]) -> bool:
    """Whether a set has the members that it had, each of the same type."""
    return bool(members == before) and set(map(_typed, members)) == set(map(_typed, before))


def _typed(member: Any) -> tuple[Any, ...]:
    """Return what tells a member from others that are equal to it."""
    cls = type(member)
    if cls is tuple or cls is frozenset:
        return cls, cls(map(_typed, member))
    return (cls, member, math.copysign(1.0, member)) if cls is float else (cls, member)


class MembershipGuard(Guard):
    """A key is in a dict or set, or is not.

    Where the container is held by the compiled function and the key must be absent, ``absent_slot`` lets the prologue
    check it together with all others.
    """

    __slots__ = ("key", "present")

    def __init__(self, source: Source, key: Any, present: bool) -> None:
        super().__init__(source)
        self.key = key
        self.present = present

    @property
    def absent_slot(self) -> tuple[Any, Any] | None:
        if self.present or not self.source.is_held:
            return None
        return self.source.held, self.key

    def condition(self, context: Context) -> str:
        word = "in" if self.present else "not in"
        return f"{literal(self.key, context)} {word} {self.source.expression(context)}"

    def problem(self, value: Any) -> str | None:
        if (self.key in value) == self.present:
            return None
        return f"{'lacks' if self.present else 'has'} the key {shown(self.key)} now"


class EmptyGuard(Guard):
    """A container is empty, as a module's dict of hooks is most of the time.

    Where it is kept in a dict that the compiled function holds, ``slotted`` says in which, and at which key, so that
    the prologue can check it together with all others.
    """

    __slots__ = ()

    @property
    def slotted(self) -> tuple[Any, Any] | None:
        base = self.source.base
        if self.source.is_held or self.source.kind != "item" or base is None or not base.is_held:
            return None
        return base.held, self.source.key

    def condition(self, context: Context) -> str:
        return f"not {self.source.expression(context)}"

    def problem(self, value: Any) -> str | None:
        return f"has {len(value)} items, compiled for none" if value else None


class SetGuard(Guard):
    """A set has the same members."""

    __slots__ = ("members",)

    def __init__(self, source: Source, members: frozenset[Any]) -> None:
        super().__init__(source)
        self.members = members

    def condition(self, context: Context) -> str:
        same, members = context.object(same_members, "same_members"), context.object(self.members, "members")
        return f"{same}({self.source.expression(context)}, {members})"

    def problem(self, value: Any) -> str | None:
        return (
            None if same_members(value, self.members) else f"is {shown(value)}, compiled for {shown(set(self.members))}"
        )
