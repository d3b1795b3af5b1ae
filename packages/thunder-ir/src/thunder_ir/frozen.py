"""Frozen dataclasses that are made by the ten thousand."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")

_become = object.__dict__["__class__"].__set__


def quickly_made(cls: type[T]) -> type[T]:
    """Let a frozen dataclass with slots be made as fast as one that is not frozen.

    The constructor that ``dataclasses`` writes for it calls ``object.__setattr__`` for each field, which takes some ten
    times as long as an assignment. This one assigns, while the instance is one of a class with the same slots that is
    not frozen.

    Args:
        cls: a frozen dataclass with slots, without base classes, ``__post_init__`` or default factories.

    Example:
        >>> from dataclasses import dataclass
        >>> from thunder_ir import quickly_made
        >>> @quickly_made
        ... @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1)
        Point(x=1, y=0)
        >>> Point(1).x = 2
        Traceback (most recent call last):
        dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    plain = all([f.default_factory is dataclasses.MISSING and not f.kw_only for f in fields])
    slots = cls.__dict__.get("__slots__")
    if not plain or slots is None or cls.__bases__ != (object,) or hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__qualname__} cannot be made quickly: it is more than its fields, each in a slot")
    scope: dict[str, Any] = {f"default_of_{f.name}": f.default for f in fields}
    scope |= {"become": _become, "open": type("Open", (), {"__slots__": slots})}
    parameters, lines = ["self"], ["frozen = self.__class__", "become(self, open)"]
    for f in fields:
        default = "" if f.default is dataclasses.MISSING else f"default_of_{f.name}"
        if f.init:
            parameters.append(f"{f.name}={default}" if default else f.name)
        lines.append(f"self.{f.name} = {f.name if f.init else default}")
    lines.append("self.__class__ = frozen")
    body = "\n    ".join(lines)
    exec(f"def __init__({', '.join(parameters)}):\n    {body}", scope)
    made = scope["__init__"]
    made.__qualname__, made.__annotations__ = f"{cls.__qualname__}.__init__", cls.__init__.__annotations__
    cls.__init__ = made  # type: ignore[method-assign]
    return cls


__all__ = ["quickly_made"]
