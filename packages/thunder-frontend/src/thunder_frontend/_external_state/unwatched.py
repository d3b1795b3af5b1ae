"""External objects that go to code which cannot be watched: all that it may read of them is guarded."""

from __future__ import annotations

import copyreg
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_frontend._external_state.class_facts import is_mutable
from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.reads import Reads
from thunder_guards import SnapshotGuard
from thunder_guards.kinds import (
    CODE,
    CONTAINERS,
    DICTS,
    ITEMS_VIEW,
    NOTHING_INSIDE,
    VALUES,
    VALUES_VIEW,
    dict_of,
    is_buffer,
    items_of,
    length_of,
    pairs_of,
    refuse_large,
    refuse_objects,
)
from thunder_guards.sources import Source

SHOWN_BY_C = (types.SimpleNamespace, BaseException)
"""Objects with attributes whose own methods in C look at these."""
KEPT_BY_C = (types.MemberDescriptorType, types.GetSetDescriptorType)


WRITTEN_BY_C = (types.WrapperDescriptorType, types.MethodDescriptorType)


class Unwatched:
    """Guards what code that cannot be watched may read.

    Args:
        external: takes the guards.
        reads: guard what is read of values.
        fixes: told of a buffer, and how the program got at it, whose contents it is about to be compiled for.
    """

    def __init__(self, external: Known, reads: Reads, fixes: Callable[[Any, Source], None]) -> None:
        self._external, self._reads, self._fixes = external, reads, fixes
        self._taken: dict[int, Any] = {}

    def escapes(self, value: object, watched: bool = True) -> None:
        """Guard an object that goes to code that cannot be watched.

        Args:
            value: an argument of a call of such code, or what its method belongs to.
            watched: whether what that code does with objects of the user's classes is seen all the same, since it can
                only call their methods.
        """
        source = self._external.source_of(value)
        if source is None:
            if type(value) is list or type(value) is tuple:
                for item in value:
                    self.shown(item)
                    self._reads.containers.contents(item)
                    if type(item) is list or type(item) is tuple or is_buffer(item):
                        self.escapes(item)
        elif isinstance(value, CONTAINERS):
            self._reads.containers.contents(value)
        elif is_buffer(value):
            self._external.log.append(("touch", value))
            if id(value) not in self._taken:
                self._fixes(value, source)
                self._taken[id(value)] = value
                refuse_large(source, value)
                refuse_objects(source, value)
                self._external.require(SnapshotGuard(source, value), id(value), "snapshot")
                self._external.mutations.watch_buffer(value)
                for name, item in getattr(value, "__dict__", {}).items():  # the mask of a masked array
                    self.escapes(self._reads.attributes.found(value, name, item))
        elif isinstance(value, types.MethodType):  # which is another one each time that it is read
            self.escapes(value.__self__, watched)
        elif not isinstance(value, (*CODE, torch.nn.Module)):
            self._object(value, watched)

    def shown(self, value: object) -> None:
        """Guard what a dict holds, one of whose views goes to code in C."""
        if type(value) is VALUES_VIEW or type(value) is ITEMS_VIEW:
            self._reads.containers.items(dict_of(value))

    def looked_into(self, value: object, methods: Sequence[str] = (), depth: int = 2) -> None:
        """Guard an object, and those in a container, at which code in C looks.

        Args:
            value: what that code gets.
            methods: special methods that it calls, of such objects as well whose classes do not have them.
            depth: how many containers within others are looked into.
        """
        if type(value) in NOTHING_INSIDE:
            return
        self.shown(value)
        if isinstance(value, CONTAINERS):
            if depth and length_of(value):
                self._reads.containers.contents(value)
                for part in itertools.chain(*pairs_of(value)) if isinstance(value, DICTS) else items_of(value):
                    self.looked_into(part, methods, depth - 1)
            return
        if is_buffer(value):
            self.escapes(value)
        if "__repr__" in methods and _is_written_by_c(value):
            self._reads.answers.result_of(repr, (value,), repr(value))
        if isinstance(value, (torch.Tensor, *VALUES, *CODE)):
            return
        if "__eq__" in methods:
            self._external.depends_on_identity(value)
        if is_mutable(type(value)):
            for name in methods:
                self._reads.classes.lookup(type(value), name)
        if self._external.source_of(value) is not None and isinstance(value, SHOWN_BY_C):
            self._kept_by_c(value, methods, depth)
            self.copied(value)
            self.looked_into(value.__dict__, methods, depth)

    def _kept_by_c(self, value: object, methods: Sequence[str], depth: int) -> None:
        """Guard what an object keeps where code in C finds it, such as the arguments of an exception."""
        for cls in value.__class__.__mro__:
            for name, raw in () if is_mutable(cls) else cls.__dict__.items():
                if isinstance(raw, KEPT_BY_C) and not name.startswith("__") and hasattr(value, name):
                    kept = self._reads.attributes.found(value, name, getattr(value, name))
                    self._reads.containers.contents(kept)
                    if depth:
                        self.looked_into(kept, methods, depth - 1)

    def copied(self, value: object) -> None:
        """Guard the attributes of an object of which a copy is made."""
        source = self._external.source_of(value)
        if source is None or isinstance(value, (torch.Tensor, *VALUES, *CODE)):
            return
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):
            self._reads.attributes.found(value, "__dict__", own)
            self._reads.containers.keys(own)
        for name in copyreg._slotnames(type(value)):  # type: ignore[attr-defined]
            if hasattr(value, name):
                self._reads.attributes.found(value, name, getattr(value, name))
            else:
                self._reads.attributes.missing(value, name)

    def _object(self, value: object, watched: bool) -> None:
        self._external.log.append(("touch", value))
        own = getattr(value, "__dict__", None)
        if own is not None and watched or id(value) in self._taken:
            return
        self._taken[id(value)] = value
        self._external.fix_identity(value)
        for name, item in list((own or {}).items()):
            self._reads.attributes.found(value, name, item)
            self._reads.containers.contents(item)


def _is_written_by_c(value: object) -> bool:
    """Whether code in C makes the text of an object of what it is called, or of what it keeps otherwise."""
    if isinstance(value, (torch.Tensor, *VALUES, *SHOWN_BY_C)) or is_buffer(value):
        return False  # of these is guarded what they keep
    return isinstance(type(value).__repr__, WRITTEN_BY_C)
