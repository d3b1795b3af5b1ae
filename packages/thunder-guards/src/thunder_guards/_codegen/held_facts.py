"""All that a program relies on of the objects that the compiled function holds, asked at once.

The conditions are Python, one pass for each kind of fact. A module of a hundred layers has thousands of facts, and most
of what a call of its program costs is to ask them: so native code may tell, where there is any, that all of them hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from thunder_guards._codegen.shared import Row

OFTEN = 3
"""Calls after which native code is asked for, and twice as many each time that there is none yet."""
LEAST = 2
"""How many facts make native code for them worth while, if there is any."""
MANY = 64
"""How many facts are so many that native code is asked for later, if there is none."""
MOST_MISSES = 8
"""How often it may tell nothing while the conditions hold: some things change at each call, and are equal."""


@dataclass(frozen=True, slots=True)
class HeldFacts:
    """What is so of objects that a compiled function holds. Most are rows, in pairs or threes of one length.

    Args:
        modes: how many modes functions are dispatched to. Nobody else sees operations: no mode that these are
            dispatched to, no transform of functorch, no tracing.
        tensors: class and dispatch keys of each tensor of a call that is looked at, too. Nested tensors of PyTorch's
            old kind, which are of no class of their own, have other keys than all others.
        containers, keys, expected: what containers have at keys. Python puts there what it found equal.
        without, names: containers that lack names.
        holders, empty: containers, and keys at which these have an empty container.
        typed, types: objects, and their types.
        owners, dicts: objects, and their ``__dict__``.
        functions, codes: functions, and their ``__code__``.
        ordered, orders: classes, and their ``__mro__``.
        classes, attributes, given: classes, names, and what those find there, in themselves or in a base.
    """

    modes: int
    tensors: tuple[tuple[type, int], ...]
    containers: Row
    keys: Row
    expected: list[Any]
    without: Row
    names: Row
    holders: Row
    empty: Row
    typed: Row
    types: Row
    owners: Row
    dicts: Row
    functions: Row
    codes: Row
    ordered: Row
    orders: Row
    classes: Row
    attributes: Row
    given: Row

    def __len__(self) -> int:
        rows = self.keys, self.names, self.empty, self.types, self.dicts, self.codes, self.orders, self.given
        return sum(map(len, rows))


Maker: TypeAlias = "Callable[[HeldFacts], Callable[..., bool] | None]"

_MAKERS: list[tuple[Callable[[], bool], Maker]] = []


def tells_facts(ready: Callable[[], bool]) -> Callable[[Maker], Maker]:
    """Let the decorated function make what tells quickly that facts hold.

    It takes facts that hold. What it returns takes the tensors of a call that are looked at, and returns whether it
    knows that all facts hold: where that is false, they are asked one by one. It may return ``None``.

    Args:
        ready: whether it can make anything.
    """

    def decorate(maker: Maker) -> Maker:
        _MAKERS.append((ready, maker))
        return maker

    return decorate


def are_told(number: int) -> bool:
    """Whether native code is to tell that so many facts hold."""
    return number >= MANY or (number >= LEAST and any([ready() for ready, _ in _MAKERS]))


def _unknown(*tensors: Any) -> bool:
    return False


class FactsCheck:
    """Asks whether facts hold, as native code tells; the conditions themselves stand in the prologue.

    Args:
        facts: of them.
    """

    __slots__ = ("__weakref__", "_calls", "_due", "facts", "hold")

    def __init__(self, facts: HeldFacts) -> None:
        self.facts = facts
        self.hold: Callable[..., bool] = _unknown
        """Whether it is known that all facts hold."""
        self._calls, self._due = 0, OFTEN

    def found(self) -> bool:
        """Note that the conditions held where :attr:`hold` did not tell; return ``True``."""
        self._calls += 1
        if self._calls == self._due:
            if self.hold is _unknown:
                made = next((found for _, maker in _MAKERS if (found := maker(self.facts)) is not None), None)
                self._calls, self._due = (0, MOST_MISSES) if made is not None else (0, 2 * self._due)
                self.hold = _unknown if made is None else made
            else:
                self.hold, self._due = _unknown, -1
        return True


_CHECKS: WeakValueDictionary[tuple[Any, ...], FactsCheck] = WeakValueDictionary()
"""By the rows of their facts, for as long as a program asks them: native code is made once for all of them."""


def shared_check(facts: HeldFacts) -> FactsCheck:
    """Return the check of facts, one for those of the same rows."""
    rows = [id(value) for f in fields(facts) if isinstance(value := getattr(facts, f.name), list)]
    return _CHECKS.setdefault((*rows, facts.modes, facts.tensors), FactsCheck(facts))


__all__ = ["FactsCheck", "HeldFacts", "are_told", "shared_check", "tells_facts"]
