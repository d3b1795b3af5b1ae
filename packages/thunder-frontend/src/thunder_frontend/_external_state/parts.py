"""What is no more than its parts: slices, tuples of numbers and partial functions, which calls may find others of."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import torch

from thunder_frontend._external_state.container_reads import ContainerReads
from thunder_frontend._external_state.known import Known
from thunder_guards import LengthGuard, PartGuard
from thunder_guards.sources import Place, Source
from thunder_guards.templates import External
from thunder_ir import NumberProxy
from thunder_tracing.tensors.run_texts import RunText
from thunder_tracing.tensors.sizes import as_size

Made = TypeVar("Made")


class Parts:
    """Guards parts, and makes what is like the original of those that the program shall see: of dynamic numbers.

    That is for what interpreted code loads. What goes to code in C is the original, whose parts are fixed.

    Args:
        external: takes the guards.
        containers: guards what arguments are held in.
    """

    def __init__(self, external: Known, containers: ContainerReads) -> None:
        self._external, self._containers = external, containers
        self._partials: dict[int, functools.partial[Any]] = {}

    def of_slice(self, value: slice, source: Source) -> slice:
        """Guard a slice; return what the program shall see."""
        self._external.guards.append(PartGuard(source, value, "type"))
        before = value.start, value.stop, value.step
        names = ("start", "stop", "step")
        seen = [self._external.read(source, "attribute", *pair) for pair in zip(names, before, strict=True)]
        return slice(*seen) if any([a is not b for a, b in zip(seen, before, strict=True)]) else value

    def of_tuple(self, value: tuple[Any, ...], source: Source) -> Any:
        """Guard a shape, or a tuple of numbers; return what the program shall see."""
        self._external.guards += [PartGuard(source, value, "type"), LengthGuard(source, value)]
        seen = [self._external.read(source, "item", *pair) for pair in enumerate(value)]
        if not any([isinstance(part, NumberProxy) for part in seen]):
            return value
        return self._standing_for(as_size(seen) if type(value) is torch.Size else tuple(seen), source)

    def _standing_for(self, made: Made, source: Source) -> Made:
        """Let the object that is found at ``source`` be where the program puts what it sees in its place."""
        self._external.templates[id(made)] = (External(source), made)
        return made

    def exchanged(self, source: Source, before: tuple[Any, ...], now: tuple[Any, ...]) -> dict[Place, type]:
        """Return the places, of a tuple found at ``source`` and in it, at which a program puts other numbers."""
        found: dict[Place, type] = {}
        for index, (old, new) in enumerate(zip(before, now, strict=True)):
            place = Source(source, "item", index).place
            if old is not new and place is not None:
                found[place] = type(old)
        return found | {source.place: type(before)} if source.place is not None and found else {}

    def of_partial(self, value: functools.partial[Any], source: Source) -> functools.partial[Any]:
        """Guard a partial function, which is found at ``source``; return what the program shall see."""
        if self._external.source_of(value) is source:
            for name in ("func", "args", "keywords"):
                self._external.read(source, "attribute", name, getattr(value, name))
        if not self._external.loads or type(value) is not functools.partial or value.__dict__:
            self._containers.contents(value.args)
            self._containers.contents(value.keywords)
            return value
        if id(value) not in self._partials:
            self._partials[id(value)] = self._of_partial(value, source)
        return self._partials[id(value)]

    def _of_partial(self, value: functools.partial[Any], source: Source) -> functools.partial[Any]:
        args, named = self._items(value.args), self._items(value.keywords)
        if not any([isinstance(part, (NumberProxy, RunText)) for part in (*args, *named)]):
            return value
        made = functools.partial(value.func, *args, **dict(zip(value.keywords, named, strict=True)))
        return self._standing_for(made, source)

    def _items(self, container: Any) -> list[Any]:
        """Guard the items of a tuple or a dict; return what the program shall see of them."""
        self._containers.structure(container)
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        seen = [self._containers.item(container, key, item) for key, item in pairs]
        for part in seen:
            self._containers.contents(part)
        return seen
