"""Arguments as dictionary keys, equal only where a program cannot tell them apart."""

from __future__ import annotations

from enum import Enum
from typing import Any

from thunder_ir.devices import Device
from thunder_ir.dtypes import DType
from thunder_ir.proxies import Proxy

_EXACT = frozenset({bool, str, bytes, type(...), DType, Device})


def key_of(value: Any) -> Any:
    """Return something hashable that two values share only if they are the same argument.

    ``1``, ``1.0`` and ``True`` differ, as do ``0.0`` and ``-0.0``; a proxy is its name.

    Example:
        >>> from thunder_ir.keys import key_of
        >>> key_of((1, 0.0)) == key_of((True, -0.0)), key_of([1, None]) == key_of([1, None])
        (False, True)
    """
    if isinstance(value, Proxy):
        return value.name  # the commonest keys are the plainest; those of everything else begin with a class
    cls = value.__class__
    if cls is int or value is None:
        return value
    if cls is tuple:
        return tuple([key_of(item) for item in value])
    if cls in _EXACT:
        return (cls, value)
    if cls is float or cls is complex:
        return (cls, repr(value))
    if cls is list:
        return _of_items(cls, value)
    if cls is dict:
        return (dict, _of_items(list, value), _of_items(list, value.values()))
    if cls is slice:
        return _of_items(slice, (value.start, value.stop, value.step))
    if isinstance(value, Enum):
        return (cls, value.name)
    if isinstance(value, tuple):
        return _of_items(cls, value)
    return (cls, _Same(value))


def _of_items(cls: Any, items: Any) -> Any:
    return (cls, tuple([key_of(item) for item in items]))


class _Same:
    """An object of which nothing is known: equal to itself only, and kept alive by the key."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value) >> 4
