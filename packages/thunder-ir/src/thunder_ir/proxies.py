"""Proxies: the stand-ins for values while a program is recorded."""

from __future__ import annotations

from functools import cache
from typing import Any, Self


class Proxy:
    """A value of the program that is known only when it runs.

    Args:
        name: its name in the trace; the builder gives one when the proxy is recorded as an output.
    """

    __slots__ = ("name",)
    prefix = "t"
    name: str

    def __init__(self, name: str = "") -> None:
        self.name = name

    @property
    def type_string(self) -> str:
        """What a trace says of it in a comment."""
        return type(self).__name__.removesuffix("Proxy").lower()

    def renamed(self, name: str) -> Self:
        """Return the same proxy under another name."""
        cls: Any = type(self)
        other: Self = cls.__new__(cls)
        for slot in _slots(cls):
            if hasattr(self, slot):
                object.__setattr__(other, slot, getattr(self, slot))
        other.name = name
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or '?'}: {self.type_string}>"


@cache
def _slots(cls: Any) -> tuple[str, ...]:
    return tuple([slot for base in cls.__mro__ for slot in getattr(base, "__slots__", ())])


class AnyProxy(Proxy):
    """Stands for a value of which nothing is known but where it came from."""

    __slots__ = ()
    prefix = "obj"


class CollectionProxy(Proxy):
    """Stands for a tuple, list or dict that the program unpacks.

    Args:
        collection: an example of it, of the same structure.
    """

    __slots__ = ("collection",)
    prefix = "C"

    def __init__(self, collection: Any, name: str = "") -> None:
        self.name = name
        self.collection = collection

    @property
    def type_string(self) -> str:
        return type(self.collection).__name__


class StringProxy(Proxy):
    """Stands for a string.

    Args:
        value: an example of it.
    """

    __slots__ = ("value",)
    prefix = "s"

    def __init__(self, value: str, name: str = "") -> None:
        self.name = name
        self.value = value

    @property
    def type_string(self) -> str:
        return "str"
