"""What a tracer asks of whoever knows the state outside of a program: where objects come from, what is guarded."""

from __future__ import annotations

from typing import Any, Protocol

from thunder_guards import Guard
from thunder_guards.kinds import held_by_class
from thunder_guards.mutations import MISSING, MutationLog, Write
from thunder_guards.sources import Source


class ExternalState(Protocol):
    """The state outside of a program, as far as tensors lead there.

    Where a function is traced on example inputs, these are all there is, and what is answered here holds of all else.
    An interpreter has more to say.
    """

    mutations: MutationLog
    templates: dict[int, tuple[Any, Any]]

    def source_of(self, value: object) -> Source | None:
        """Return how the program got at an external object; ``None`` for its own objects and for scalars."""
        return None

    def stays(self, value: object) -> bool:
        """Whether an object is external; it is guarded to be the very same one on every call then."""
        return False

    def require(self, guard: Guard, *fact: Any) -> None:
        """Add a guard, unless the same fact is guarded already."""

    def read(self, base: Source, kind: str, key: object, value: object) -> Any:
        """Guard ``value``, found at ``key`` of an external object; return what the program shall see."""

    def is_put_back(self, write: Write, now: object) -> bool:
        """Whether a place that holds ``now`` in the end holds what it held before, on every call."""
        return False

    def contents(self, container: object) -> None:
        """Guard all that an external container holds."""
        return

    def keys(self, container: object) -> None:
        """Guard the keys of an external dict and their order."""
        return

    def item(self, container: object, key: object, value: object) -> Any:
        """Guard ``container[key]``; return what the program shall see."""
        return value

    def deleted(self, write: Write) -> None:
        """Guard whether something was there that the program deleted in the end."""
        return

    def lookup(self, cls: type, name: str) -> Any:
        """Guard and return what a class or its bases hold under a name."""
        return held_by_class(cls, name, MISSING)

    def result_of(self, function: object, args: tuple[Any, ...], result: object) -> Any:
        """Guard what a question without effects was answered; return what the program shall see."""
        return result
