"""The state outside of a function that is traced on example inputs: these, and the tensors that it holds itself."""

from __future__ import annotations

from typing import Any

import torch

from thunder_guards import Guard, ValueGuard
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import held_by_class, is_value
from thunder_guards.mutations import MISSING, MutationLog, Write
from thunder_guards.sources import Source


class Arguments:
    """Answers a tracer of a function that CPython runs, so that nothing else of external state can be watched."""

    def __init__(self) -> None:
        self._facts: set[Any] = set()
        self.guards: list[Guard] = []
        self.mutations = MutationLog()
        self.templates: dict[int, tuple[Any, Any]] = {}

    def source_of(self, value: object) -> Source | None:
        """Return ``None``: objects that are no tensors are parts of the program, as they are."""
        return None

    def stays(self, value: object) -> bool:
        """Return ``False``: nothing is external."""
        return False

    def require(self, guard: Guard, *fact: Any) -> None:
        """Add a guard, unless the same fact is guarded already."""
        if fact not in self._facts:
            self._facts.add(fact)
            self.guards.append(guard)

    def read(self, base: Source, kind: str, key: object, value: object) -> Any:
        """Guard an attribute of an input; return what the program shall see."""
        source = Source(base, kind, key)
        if isinstance(value, torch.Tensor):
            raise AcquisitionError(f"the function reads {source}, a tensor; pass it as an argument")
        if is_value(value):
            self.require(ValueGuard(source, value), str(source))
        return value

    def is_put_back(self, write: Write, now: object) -> bool:
        """Return whether a place holds in the end what it held before, on every call: none is known to."""
        return False

    def contents(self, container: object) -> None:
        """Leave a container as it is."""

    def keys(self, container: object) -> None:
        """Leave a dict as it is."""

    def item(self, container: object, key: object, value: object) -> Any:
        """Return what a container has."""
        return value

    def deleted(self, write: Write) -> None:
        """Leave a place as it is."""

    def lookup(self, cls: type, name: str) -> Any:
        """Return what a class or its bases hold under a name."""
        return held_by_class(cls, name, MISSING)

    def result_of(self, function: object, args: tuple[Any, ...], result: object) -> Any:
        """Return what a question was answered."""
        return result
