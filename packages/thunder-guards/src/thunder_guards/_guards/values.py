"""Guards of single values: equal, identical, of a type."""

from __future__ import annotations

import datetime
import enum
import math
import pathlib
import weakref
from collections.abc import Iterable
from typing import Any

import torch

from thunder_guards._guards.base import Aspect, Guard, shown
from thunder_guards.kinds import NumPyScalar, is_value
from thunder_guards.sources import Source
from thunder_ir import Context, literal


def same_value(a: Any, b: Any) -> bool:
    """Whether two scalars are the same for a program: of one type, equal, zeros of one sign, NaN like NaN.

    What ``==`` takes for the same although it can be told apart, such as times of two zones or ``range(0, 3, 2)`` and
    ``range(0, 4, 2)``, is compared by what copies are made of.
    """
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b) or isinstance(a, enum.Enum):  # of these there is one each
        return False
    if cls in _TOLD_APART_BY_EQ:
        return bool(a == b)
    if isinstance(a, float):
        return (a == b or a != a and b != b) and math.copysign(1.0, a) == math.copysign(1.0, b)
    if isinstance(a, complex):
        return same_value(a.real, b.real) and same_value(a.imag, b.imag)
    bases: tuple[Any, ...] = (int, str, bytes)
    for base in bases:
        if isinstance(a, base):
            return bool(base.__eq__(a, b))  # whatever a derived class says
    return _same_part(a.__reduce_ex__(4), b.__reduce_ex__(4))


def _same_part(a: Any, b: Any) -> bool:
    """Whether two parts of what copies are made of are the same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(_same_part, a, b))
    if type(a) is dict:
        return len(a) == len(b) and all(map(_same_part, a.items(), b.items()))
    if isinstance(a, (torch.Tensor, torch.nn.Module)):  # which say nothing of themselves by ==
        return False
    return same_value(a, b) if is_value(a) else bool(a == b)


_TOLD_APART_BY_EQ = frozenset({
    int, str, bytes, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, datetime.timedelta,
})  # fmt: skip


_LOOKED_UP = frozenset({
    bool, int, float, complex, str, bytes, type(None), type(...), range, torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size, datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
    type(pathlib.Path()), type(pathlib.PurePath()),
})  # fmt: skip


def is_looked_up(value: Any) -> bool:
    """Whether a dict finds a value, or a tuple of such, by any other one that is the same: NaN it does not."""
    if type(value) is tuple:
        return all(map(is_looked_up, value))
    return (type(value) in _LOOKED_UP or isinstance(value, NumPyScalar)) and bool(value == value)


def parts_of_slice(value: slice) -> tuple[Any, ...]:
    """Return what a slice is made of, which a dict finds, as it does not find slices."""
    return value.start, value.stop, value.step


class ValueGuard(Guard):
    """A number, string, ``None`` or another scalar is what it was."""

    __slots__ = ("value",)

    def __init__(self, source: Source, value: object, slot: tuple[Any, Any] | None = None) -> None:
        super().__init__(source, slot)
        self.value = value

    def condition(self, context: Context) -> str:
        here = self.source.expression(context)
        value = self.value
        if value is None or value is True or value is False or value is ...:
            return f"{here} is {value if value is not ... else '...'}"
        if type(value) in (int, str, bytes) and self.source.kind != "call":  # which is asked once
            return f"{here}.__class__ is {type(value).__name__} and {here} == {literal(value, context)}"
        return f"{context.object(same_value, 'same_value')}({here}, {context.object(value, type(value).__name__)})"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        value = self.value
        yield "type({})", type(value)
        if isinstance(value, enum.Enum):
            yield "id({})", id(value)
        elif isinstance(value, slice):
            if is_looked_up(parts_of_slice(value)):
                yield parts_of_slice, parts_of_slice(value)
        elif is_looked_up(value):
            yield "{}", value

    def problem(self, value: object) -> str | None:
        if same_value(value, self.value):
            return None
        return f"is {shown(value)}, compiled for {shown(self.value)}"


class BoundsGuard(Guard):
    """A number lies between two others.

    Args:
        source: of the number.
        least, most: what it may be at least and at most; infinities where there is no bound.
    """

    __slots__ = ("least", "most")

    def __init__(self, source: Source, least: float = -math.inf, most: float = math.inf) -> None:
        super().__init__(source)
        self.least, self.most = least, most

    def condition(self, context: Context) -> str:
        return f"{literal(self.least, context)} <= {self.source.expression(context)} <= {literal(self.most, context)}"

    def problem(self, value: Any) -> str | None:
        return None if self.least <= value <= self.most else f"is {value}, not in [{self.least}, {self.most}]"


class IdentityGuard(Guard):
    """An object is the very same one."""

    __slots__ = ("value",)

    def __init__(self, source: Source, value: object, slot: tuple[Any, Any] | None = None) -> None:
        super().__init__(source, slot)
        self.value = value

    def condition(self, context: Context) -> str:
        return f"{self.source.expression(context)} is {context.object(self.value, type(self.value).__name__)}"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        yield "type({})", type(self.value)
        yield "id({})", id(self.value)

    def problem(self, value: object) -> str | None:
        if value is self.value:
            return None
        return f"is another object, {shown(value)}; compiled for {shown(self.value)}"


IS_MUTABLE = 1 << 9
"""Of a class' ``__flags__``: that Python made it."""


def given_by_class(guard: IdentityGuard) -> bool:
    """Whether a guard is just of what a class, or a base of it, has under a name.

    What a class answers may be another thing than that: its metaclass may have a say, or what it has there. Neither
    does now; and if both are written in C, neither will.
    """
    base, name = guard.source.base, guard.source.key
    if guard.source.kind != "attribute" or base is None or not base.is_held or base.is_weak or guard.slot is not None:
        return False
    cls, value = base.held, guard.value
    if not isinstance(cls, type) or type(name) is not str:
        return False
    kinds: tuple[type, type] = (type(cls), type(value))
    if any([kind.__flags__ & IS_MUTABLE for kind in kinds]) or hasattr(type(getattr(kinds[0], name, None)), "__set__"):
        return False
    owner = next((c for c in cls.__mro__ if name in c.__dict__), None)
    return owner is not None and owner.__dict__[name] is value is getattr(cls, name)


class SameAsBeforeGuard(Guard):
    """An object that is not kept alive is the very same one."""

    __slots__ = ("reference",)

    def __init__(self, source: Source, value: object) -> None:
        super().__init__(source)
        self.reference = weakref.ref(value)

    def condition(self, context: Context) -> str:
        return f"{context.object(self.reference, 'alive')}() is {self.source.expression(context)} is not None"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        value = self.reference()
        yield "type({})", type(value)
        yield "id({})", id(value)

    def problem(self, value: object) -> str | None:
        before = self.reference()
        if before is None:
            return f"is {shown(value)}, compiled for an object that is gone"
        return None if value is before else f"is another object, {shown(value)}; compiled for {shown(before)}"


class AttributeAbsentGuard(Guard):
    """An object has no attribute of that name."""

    __slots__ = ("name",)

    def __init__(self, source: Source, name: str) -> None:
        super().__init__(source)
        self.name = name

    def condition(self, context: Context) -> str:
        return f"not hasattr({self.source.expression(context)}, {self.name!r})"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        yield f"hasattr({{}}, {self.name!r})", False

    def problem(self, value: object) -> str | None:
        return f"has an attribute {self.name!r} now" if hasattr(value, self.name) else None
