"""Guards of containers: how many items, which keys, which not."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch

from thunder_guards._guards.base import Aspect, Guard, shown
from thunder_guards._guards.values import is_looked_up, same_value
from thunder_guards.kinds import counts_natively, length_of
from thunder_guards.sources import Source
from thunder_ir import Context, literal


class LengthGuard(Guard):
    """A container has that many items.

    Args:
        source: of the container.
        container: the one at hand.
    """

    __slots__ = ("counts", "length")

    def __init__(self, source: Source, container: object) -> None:
        super().__init__(source)
        self.length = length_of(container)
        self.counts = counts_natively(type(container))

    def condition(self, context: Context) -> str:
        count = "len" if self.counts else context.object(length_of, "length_of")
        return f"{count}({self.source.expression(context)}) == {self.length}"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        if self.counts:
            yield "len({})", self.length

    def problem(self, value: object) -> str | None:
        found = length_of(value)
        return None if found == self.length else f"has {found} items, compiled for {self.length}"


class KeysGuard(Guard):
    """A dict has these keys, or a set these members, in this order.

    The order in which equal sets show their members depends on how each was made.
    """

    __slots__ = ("keys",)

    def __init__(self, source: Source, keys: tuple[Any, ...]) -> None:
        super().__init__(source)
        self.keys = keys

    def condition(self, context: Context) -> str:
        here, same = self.source.expression(context), context.object(same_keys, "same_keys")
        if not all(type(k) is str for k in self.keys):  # of 1, True and 1.0, a dict has one
            return f"{same}({here}, {context.object(self.keys, 'keys')})"
        keys, is_same = context.object(self.keys, "keys"), context.object(is_, "is_")
        identical = f"len({here}) == {len(self.keys)} and all(map({is_same}, {here}, {keys}))"
        return f"({identical} or {same}({here}, {keys}))"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        if is_looked_up(self.keys):
            yield "tuple({})", self.keys

    def problem(self, value: Any) -> str | None:
        if same_keys(value, self.keys):
            return None
        return f"has keys {shown(list(value))}, compiled for {shown(list(self.keys))}"


def same_keys(container: Collection[Any], keys: tuple[Any, ...]) -> bool:
    """Whether the keys or members of a container are ``keys``, in order, each of the same type."""
    return len(container) == len(keys) and all(map(_same_key, container, keys))


def _same_key(key: object, before: object) -> bool:
    return key is before or not isinstance(before, torch.nn.Module) and same_value(key, before)


def nth_key(container: Iterable[Any], index: int) -> Any:
    """Return a key of a dict, or a member of a set, by its place."""
    return next(itertools.islice(container, index, None))


@dataclass(frozen=True, slots=True)
class Has:
    """Says whether a key is in a dict or set.

    Args:
        key: the key.
    """

    key: Hashable

    def __call__(self, container: Any) -> bool:
        """Return whether it is in there."""
        return self.key in container


class MembershipGuard(Guard):
    """Keys are in a dict or set, or none of them is.

    Where the container is a mapping that the compiled function holds and the keys must be absent, ``absent_slots`` lets
    the prologue check them together with all others.
    """

    __slots__ = ("keys", "present")

    def __init__(self, source: Source, keys: tuple[Any, ...], present: bool) -> None:
        super().__init__(source)
        self.keys = keys
        self.present = present

    @property
    def absent_slots(self) -> list[tuple[Any, Any]]:
        if self.present or not self.source.is_held or not isinstance(self.source.held, Mapping):
            return []
        return [(self.source.held, key) for key in self.keys]

    def condition(self, context: Context) -> str:
        word, here = "in" if self.present else "not in", self.source.expression(context)
        return " and ".join([f"{literal(key, context)} {word} {here}" for key in self.keys])

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        return [(Has(key), self.present) for key in self.keys if is_looked_up(key)]

    def problem(self, value: Any) -> str | None:
        wrong = [key for key in self.keys if (key in value) != self.present]
        return f"{'lacks' if self.present else 'has'} the key {shown(wrong[0])} now" if wrong else None


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

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        yield "len({})", 0

    def problem(self, value: Any) -> str | None:
        return f"has {len(value)} items, compiled for none" if value else None
