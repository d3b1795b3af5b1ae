"""Finding the specialisation for a call without trying them in turn.

Where there is one specialisation, its guards are asked. Where there are more, a call is first sorted by how it is
written and by the types of its arguments, and then by what :mod:`thunder_guards._codegen.choice` asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_guards._codegen.choice import Node, added, candidates
from thunder_guards._codegen.specialise import Specialisation

Call = Callable[[tuple[Any, ...], dict[str, Any], Callable[..., Any]], Any]


class SignatureBucket:
    """The specialisations for calls that are written alike, with arguments of one combination of types."""

    __slots__ = ("_tree", "serve", "specialisations")

    def __init__(self) -> None:
        self.specialisations: list[Specialisation] = []
        """All of them, those that are tried first where nothing tells them apart last."""
        self._tree: Node | None = None
        self.serve: Call = self._find
        """Calls the specialisation for a call."""

    def add(self, specialisation: Specialisation) -> None:
        """Add a specialisation."""
        self._tree = added(self._tree, specialisation)
        self.specialisations.append(specialisation)
        self._settle()

    def drop(self, specialisation: Specialisation) -> None:
        """Take out a specialisation."""
        self._file([s for s in self.specialisations if s is not specialisation])

    def prefer(self, specialisation: Specialisation) -> None:
        """Let a specialisation be tried first where nothing tells it from others."""
        self._file([*[s for s in self.specialisations if s is not specialisation], specialisation])

    def proposed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, ...]:
        """Return the specialisations that may serve a call: one, unless nothing tells them apart."""
        return candidates(self._tree, args, kwargs)

    def _file(self, specialisations: list[Specialisation]) -> None:
        """Grow another tree. Others may be looking for one meanwhile: they find the one before or after."""
        tree: Node | None = None
        for specialisation in specialisations:
            tree = added(tree, specialisation)
        self._tree, self.specialisations = tree, specialisations
        self._settle()

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], miss: Callable[..., Any]) -> Any:
        for specialisation in candidates(self._tree, args, kwargs):
            result = specialisation.call(args, kwargs, missed)
            if result is not MISSED:
                return result
        return miss(args, kwargs)

    def _settle(self) -> None:
        those = self.specialisations
        self.serve = those[0].call if len(those) == 1 else self._find


class Dispatcher:
    """The specialisations of a compiled function.

    Args:
        miss: ``(args, kwargs) -> result``: compiles a specialisation, adds it, and calls it.
    """

    __slots__ = ("_buckets", "calls", "miss", "serve")

    def __init__(self, miss: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._buckets: dict[Any, SignatureBucket] = {}
        self.miss = miss
        self.serve: Call = self._find
        """Calls the specialisation for a call."""
        self.calls = 0

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the specialisation for these arguments; without one, compile it."""
        self.calls += 1
        return self.serve(args, kwargs, self.miss)

    @property
    def specialisations(self) -> list[Specialisation]:
        """All of them."""
        return [specialisation for bucket in self._buckets.values() for specialisation in bucket.specialisations]

    def proposed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, ...]:
        """Return the specialisations that may serve a call: one, unless nothing tells them apart."""
        bucket = self._buckets.get(_kind_of(args, kwargs))
        return () if bucket is None else bucket.proposed(args, kwargs)

    def add(self, specialisation: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a specialisation for calls like this one."""
        self._buckets.setdefault(_kind_of(args, kwargs), SignatureBucket()).add(specialisation)
        self._settle()

    def prefer(self, specialisation: Specialisation) -> None:
        """Let a specialisation be tried first where nothing tells it from others."""
        for bucket in list(self._buckets.values()):
            if specialisation in bucket.specialisations:
                bucket.prefer(specialisation)

    def drop(self, specialisation: Specialisation) -> None:
        """Take out a specialisation."""
        for kind, bucket in list(self._buckets.items()):
            if specialisation in bucket.specialisations:
                bucket.drop(specialisation)
                if not bucket.specialisations:
                    del self._buckets[kind]
        self._settle()

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], miss: Callable[..., Any]) -> Any:
        bucket = self._buckets.get(_kind_of(args, kwargs))
        return miss(args, kwargs) if bucket is None else bucket.serve(args, kwargs, miss)

    def _settle(self) -> None:
        buckets = list(self._buckets.values())
        self.serve = buckets[0].serve if len(buckets) == 1 else self._find


def _kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(map(type, args))
    return (types, tuple(kwargs), *map(type, kwargs.values())) if kwargs else types


MISSED = object()


def missed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Say that a specialisation does not serve a call."""
    return MISSED
