"""The state outside of a function that is traced on example inputs: these, and the tensors that it holds itself."""

from __future__ import annotations

from typing import Any

import torch

from thunder_guards import Guard, ValueGuard
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import is_value
from thunder_guards.mutations import MutationLog
from thunder_guards.sources import Source
from thunder_tracing.external_state import ExternalState


class Arguments(ExternalState):
    """Answers a tracer of a function that CPython runs, so that nothing else of external state can be watched."""

    def __init__(self) -> None:
        self._facts: set[Any] = set()
        self.guards: list[Guard] = []
        self.mutations = MutationLog()
        self.templates: dict[int, tuple[Any, Any]] = {}

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
