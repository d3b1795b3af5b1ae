"""What a program reads of containers: items, lengths, keys and membership, or all that is in them."""

from __future__ import annotations

import gc
import operator
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch

from thunder_frontend._outside.class_reads import ClassReads
from thunder_frontend._outside.known import Known
from thunder_frontend._outside.stand_ins import StandIns
from thunder_guards import EmptyGuard, KeysGuard, LengthGuard, MembershipGuard, SetGuard, nth_key
from thunder_guards.journal import MISSING, Write
from thunder_guards.kinds import (
    CODE,
    DICTS,
    LISTS,
    NOTHING_INSIDE,
    SETS,
    as_fact,
    has_attributes,
    has_own_subscription,
    is_buffer,
    is_value,
    items_of,
    length_of,
    pairs_of,
)
from thunder_guards.sources import Source, held

KEY = held(nth_key, "key")


class ContainerReads:
    """Guards what outside containers hold.

    Args:
        world: takes the guards.
        classes: tells which dicts are those of classes.
        stand_ins: stand for tensors.
    """

    def __init__(self, world: Known, classes: ClassReads, stand_ins: StandIns) -> None:
        self._world, self._classes, self._stand_ins = world, classes, stand_ins

    def item(self, container: object, key: Any, value: object) -> Any:
        """Take in ``container[key]``."""
        source = self._world.source_of(container)
        if source is None or isinstance(container, (str, bytes, torch.Size, range)):
            return self._stand_ins.of(value)
        if is_buffer(container):
            self._world.unwatched.escapes(container)
            return value
        if isinstance(key, slice):
            self.contents(container)
            return value
        if self._was_written(container, key):
            return self._stand_ins.of(value)
        self._world.told_apart(key)
        if isinstance(container, (list, tuple, deque)):
            if not isinstance(key, int):
                self._world.unwatched.looked_into(key)
                key = operator.index(key)
            key = key + length_of(container) if key < 0 else key
            self.length(container)
        if has_own_subscription(container):
            return self._world.read(source, "kept item", key, value)
        return self._world.read(source, "item", key, value, (container, key) if source.is_held else None)

    def _was_written(self, container: object, key: object) -> bool:
        cls = self._classes.class_of_dict(container)
        if cls is not None:
            return self._world.journal.written_at(cls, "attribute", key)
        return self._wrote(container) or self._world.journal.written_at(container, "item", key)

    def _wrote(self, container: Any) -> bool:
        """Whether the program changed a container that it is about to read, and so knows what it holds."""
        appended = self._world.journal.take_end(container)
        if appended is not None:
            self.contents(container)
            self._world.journal.note_container(container)
            container.extend(appended)
        return self._world.journal.wrote(container)

    def length(self, container: object) -> None:
        """Take in how many items an outside container has."""
        source = self._world.source_of(container)
        if source is None or self._wrote(container) or source.is_held and type(container) is tuple:
            return
        self._world.require(LengthGuard(source, container), id(source), "length")

    def grows(self, container: Any) -> None:
        """Take in that an outside list is appended to, of which the program need not see what it holds."""
        journal = self._world.journal
        if journal.wrote_items(container):  # which are counted from the end, perhaps
            self.contents(container)
            journal.note_container(container)
        else:
            journal.note("end", container, None, len(container))

    def keys(self, container: Any) -> None:
        """Take in the keys of an outside dict and their order."""
        source = self._world.source_of(container)
        if source is None or self._wrote(container):
            return
        keys = self._world.journal.keys_not_added(container)
        if not keys:
            self.empty(container)
        else:
            self._world.require(KeysGuard(source, keys), id(source), "keys")
            self._keys_themselves(source, keys)

    def _keys_themselves(self, source: Source, keys: Sequence[Any]) -> None:
        """Note the keys of a dict, or the members of a set, of which there is more to read than what they are."""
        for index, key in enumerate(keys):
            if type(key) in NOTHING_INSIDE or isinstance(key, torch.Tensor) or self._world.source_of(key) is not None:
                continue
            if isinstance(key, (*CODE, torch.nn.Module)):
                self._world.read(KEY, "call", (source, index), key)
            elif not is_value(key) or has_attributes(key):
                self._world.know(key, Source(KEY, "call", (source, index)))

    def empty(self, container: object) -> None:
        """Take in that an outside container is empty."""
        source = self._world.source_of(container)
        if source is not None and not self._world.journal.wrote(container):
            self._world.require(EmptyGuard(source), id(source), "empty")

    def membership(self, container: object, key: object, present: bool) -> None:
        """Take in whether ``key`` is in an outside dict or set."""
        source = self._world.source_of(container)
        if source is not None and not self._was_written(container, key):
            self._world.told_apart(key)
            self._world.require(MembershipGuard(source, key, present), id(source), as_fact(key), "membership")

    def structure(self, container: object) -> None:
        """Take in the length or the keys of an outside container that is iterated over."""
        if isinstance(container, DICTS):
            self.keys(container)
        elif isinstance(container, SETS):
            source = self._world.source_of(container)
            if source is not None and not self._world.journal.wrote(container):
                members = tuple(items_of(container))
                self._world.require(SetGuard(source, members), id(source), "set")
                self._keys_themselves(source, members)
        elif isinstance(container, LISTS):
            self.length(container)

    def contents(self, container: object) -> None:
        """Take in all that an outside container holds, nested ones included: it goes to code that cannot be watched."""
        source = self._world.source_of(container)
        if source is None or self._wrote(container):
            return
        if is_buffer(container):
            self._world.unwatched.escapes(container)
        self.structure(container)
        if isinstance(container, deque):  # what is added may push others out
            self._world.read(source, "attribute", "maxlen", container.maxlen)
        if isinstance(container, DICTS):
            for key, value in pairs_of(container):
                self.item(container, key, value)
                self.contents(value)
        elif isinstance(container, LISTS):
            for index, value in enumerate(items_of(container)):
                self.item(container, index, value)
                self.contents(value)

    def rest(self, iterator: object) -> None:
        """Take in what an iterator has still to come to: it goes to code that takes these items unseen."""
        for container in gc.get_referents(iterator):
            self.contents(container)

    def table(self, module: torch.nn.Module, name: str) -> Any:
        """Take in one of the dicts in which an outside module keeps its parts."""
        source, own = self._world.source_of(module), module.__dict__
        assert source is not None
        self._world.own_dict(module, source)
        return self._world.read(source, "attribute", name, own[name], (own, name))

    def empty_at(self, base: Source, container: dict[str, Any], key: str) -> None:
        """Take in that what a dict which the compiled function holds has at ``key`` is an empty container."""
        there = container[key]
        if self._world.journal.wrote(there) or self._world.journal.written_at(container, "item", key):
            self._world.know(there, held(there, f"{base}[{key!r}]"))
        else:
            self._world.require_empty(base, container, key)

    def deleted(self, write: Write) -> None:
        """Take in whether something was there that the program deleted in the end."""
        container = write.target if write.kind == "item" else getattr(write.target, "__dict__", None)
        source = self._world.source_of(write.target)
        if isinstance(container, dict) and source is not None:
            inside = source if container is write.target else Source(source, "attribute", "__dict__")
            present = write.before is not MISSING
            self._world.require(MembershipGuard(inside, write.key, present), str(inside), write.key, "deleted")
