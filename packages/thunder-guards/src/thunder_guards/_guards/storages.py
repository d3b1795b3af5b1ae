"""Guards of memory that several inputs share, for programs that write to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from thunder_guards._guards.base import Aspect, Guard, PairGuard
from thunder_guards.memory import place_in_storage
from thunder_guards.sources import Source
from thunder_ir import Context
from thunder_torch.specs import storage_key


class PlaceInStorageGuard(Guard):
    """A tensor lies where it lay in its storage."""

    __slots__ = ("place",)

    def __init__(self, source: Source, place: tuple[int, int]) -> None:
        super().__init__(source)
        self.place = place

    def condition(self, context: Context) -> str:
        return (
            f"{context.object(place_in_storage, 'place_in_storage')}({self.source.expression(context)}) == {self.place}"
        )

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        yield place_in_storage, self.place

    def problem(self, value: Any) -> str | None:
        now = place_in_storage(value)
        return None if now == self.place else f"lies at {now} (offset, storage bytes), compiled for {self.place}"


class SharedStorageGuard(PairGuard):
    """Two tensors share a storage, as they did."""

    __slots__ = ()
    OTHERWISE = "{} and {} no longer share memory"

    def condition(self, context: Context) -> str:
        key = context.object(storage_key, "storage_key")
        return f"{key}({self.source.expression(context)}) == {key}({self.other.expression(context)})"

    def holds(self, first: Any, second: Any) -> bool:
        return storage_key(first) == storage_key(second)
