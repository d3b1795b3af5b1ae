"""What a program reads of containers: items, lengths, keys and membership, or all that is in them."""

from __future__ import annotations

import gc
import operator
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from thunder_frontend._external_state.class_reads import ClassReads
from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.stand_ins import StandIns
from thunder_guards import EmptyGuard, KeysGuard, LengthGuard, MembershipGuard, nth_key
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
from thunder_guards.mutations import MISSING, Write
from thunder_guards.sources import Source, held

KEY = held(nth_key, "key")
LONG = 16
"""As many numbers are a schedule, of which each call may want another."""


class ContainerReads:
    """Guards what external containers hold.

    Args:
        external: takes the guards.
        classes: tells which dicts are those of classes.
        stand_ins: stand for tensors.
    """

    def __init__(self, external: Known, classes: ClassReads, stand_ins: StandIns) -> None:
        self._external, self._classes, self._stand_ins = external, classes, stand_ins
        self._iterated: dict[int, Any] = {}

    def item(self, container: object, key: Any, value: object) -> Any:
        """Guard ``container[key]``."""
        source = self._external.source_of(container)
        if source is None or isinstance(container, (str, bytes, torch.Size, range)):
            return self._stand_ins.of(value)
        if is_buffer(container):
            self._external.unwatched.escapes(container)
            return value
        if isinstance(key, slice):  # what comes out is a new container of items that stay what they are
            with self._not_loading():
                self.elements(container)
            return value
        if self._was_written(container, key):
            return self._stand_ins.of(value)
        self._external.fix_hash(key)
        if isinstance(container, (list, tuple, deque)):
            if not isinstance(key, int):
                self._external.unwatched.looked_into(key)
                key = operator.index(key)
            key = key + length_of(container) if key < 0 else key
            self.length(container)
        if has_own_subscription(container):
            return self._external.read(source, "kept item", key, value)
        return self._external.read(source, "item", key, value, (container, key) if source.is_held else None)

    def _was_written(self, container: object, key: object) -> bool:
        cls = self._classes.class_of_dict(container)
        if cls is not None:
            return self._external.mutations.written_at(cls, "attribute", key)
        return self._wrote(container) or self._external.mutations.written_at(container, "item", key)

    def _wrote(self, container: Any) -> bool:
        """Whether the program changed a container that it is about to read, and so knows what it holds."""
        appended = self._external.mutations.take_end(container)
        if appended is not None:
            self.contents(container)
            self._external.mutations.note_container(container)
            container.extend(appended)
        return self._external.mutations.wrote(container)

    def may_look_up(self, sequence: Sequence[Any]) -> bool:
        """Whether a program may look up floating-point numbers in a list when it runs, which is guarded to be this one.

        It may not where the list is one of each call's own, or where the program writes to it. Of a short list, each
        item has a program of its own: that computes with a number that it knows.
        """
        source = self._external.source_of(sequence)
        if source is None or source.is_of_the_call() or self._external.mutations.changed(sequence):
            return False
        if len(sequence) < LONG or not all([type(item) is float for item in sequence]):
            return False
        self._external.fix_identity(sequence)
        return True

    def length(self, container: object) -> None:
        """Guard how many items an external container has."""
        source = self._external.source_of(container)
        if source is None or self._wrote(container) or source.is_held and type(container) is tuple:
            return
        self._external.require(LengthGuard(source, container), id(source), "length")

    def iterated(self, container: object) -> None:
        """Guard the length or the keys of an external container over which an iteration starts."""
        self._iterated[id(container)] = container
        self.structure(container)

    def grows(self, container: Any) -> None:
        """Guard that an external list is appended to, of which the program need not see what it holds."""
        mutations = self._external.mutations
        # single items may be counted from the end, and an iteration come to what is appended
        if mutations.wrote_items(container) or id(container) in self._iterated:
            self.contents(container)
            mutations.note_container(container)
        else:
            mutations.note("end", container, None, len(container))

    def keys(self, container: Any) -> None:
        """Guard the keys of an external dict, or the members of a set, and their order."""
        source = self._external.source_of(container)
        if source is None or self._wrote(container):
            return
        keys = self._external.mutations.keys_not_added(container)
        if not keys:
            self.empty(container)
        else:
            self._external.require(KeysGuard(source, keys), id(source), "keys")
            self._keys_themselves(source, keys)

    def _keys_themselves(self, source: Source, keys: Sequence[Any]) -> None:
        """Note the keys of a dict, or the members of a set, of which there is more to read than what they are."""
        for index, key in enumerate(keys):
            if type(key) in NOTHING_INSIDE or isinstance(key, torch.Tensor):
                continue
            known = self._external.source_of(key)
            if known is not None:
                if not known.is_held:  # an argument, for example, that has to be this one
                    self._external.fix_hash(key)
                continue
            if isinstance(key, (*CODE, torch.nn.Module)):
                self._external.read(KEY, "call", (source, index), key)
            elif not is_value(key) or has_attributes(key):
                self._external.know(key, Source(KEY, "call", (source, index)))

    def empty(self, container: object) -> None:
        """Guard that an external container is empty."""
        source = self._external.source_of(container)
        if source is not None and not self._external.mutations.wrote(container):
            self._external.require(EmptyGuard(source), id(source), "empty")

    def membership(self, container: object, key: object, present: bool) -> None:
        """Guard whether ``key`` is in an external dict or set."""
        source = self._external.source_of(container)
        if source is not None and not self._was_written(container, key):
            self._external.fix_hash(key)
            self._external.require(MembershipGuard(source, (key,), present), id(source), as_fact(key), "membership")

    def structure(self, container: object) -> None:
        """Guard the length or the keys of an external container that is iterated over."""
        if isinstance(container, (*DICTS, *SETS)):
            self.keys(container)
        elif isinstance(container, LISTS):
            self.length(container)

    def elements(self, container: object) -> None:
        """Guard what iteration takes out of an external container: what is in that is guarded when it is looked at."""
        self.structure(container)
        if isinstance(container, LISTS):
            self.items(container)

    def items(self, container: object) -> list[Any]:
        """Guard what a container has at all of its keys, or indices; return it."""
        pairs = pairs_of(container) if isinstance(container, DICTS) else [*enumerate(items_of(container))]
        for key, value in pairs:
            self.item(container, key, value)
        return [value for _, value in pairs]

    def contents(self, container: object) -> None:
        """Guard all that an external container holds, nested ones included: it goes to code that cannot be watched."""
        source = self._external.source_of(container)
        if source is None or self._wrote(container):
            return
        if is_buffer(container):
            self._external.unwatched.escapes(container)
        with self._not_loading():
            self.structure(container)
            if isinstance(container, deque):  # what is added may push others out
                self._external.read(source, "attribute", "maxlen", container.maxlen)
            if isinstance(container, (*DICTS, *LISTS)):
                for value in self.items(container):
                    self.contents(value)

    @contextmanager
    def _not_loading(self) -> Iterator[None]:
        """Let what is in a container stay the numbers that it is: interpreted code does not load it."""
        loads, self._external.loads = self._external.loads, False
        try:
            yield
        finally:
            self._external.loads = loads

    def rest(self, iterator: object) -> None:
        """Guard what an iterator has still to come to: it goes to code that takes these items unseen."""
        for container in gc.get_referents(iterator):
            self.contents(container)

    def table(self, module: torch.nn.Module, name: str) -> Any:
        """Guard one of the dicts in which an external module keeps its parts."""
        source, own = self._external.source_of(module), module.__dict__
        assert source is not None
        self._external.own_dict(module, source)
        return self._external.read(source, "attribute", name, own[name], (own, name))

    def empty_at(self, base: Source, container: dict[str, Any], key: str) -> None:
        """Guard that what a dict which the compiled function holds has at ``key`` is an empty container."""
        there = container[key]
        if self._external.mutations.wrote(there) or self._external.mutations.written_at(container, "item", key):
            self._external.know(there, held(there, f"{base}[{key!r}]"))
        else:
            self._external.require_empty(base, container, key)

    def deleted(self, write: Write) -> None:
        """Guard whether something was there that the program deleted in the end."""
        container = write.target if write.kind == "item" else getattr(write.target, "__dict__", None)
        source = self._external.source_of(write.target)
        if isinstance(container, dict) and source is not None:
            inside = source if container is write.target else Source(source, "attribute", "__dict__")
            present = write.before is not MISSING
            self._external.require(MembershipGuard(inside, (write.key,), present), id(container), write.key, "deleted")
