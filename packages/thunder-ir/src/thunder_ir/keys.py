"""Arguments as dictionary keys, equal only where a program cannot tell them apart."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

from thunder_ir.devices import Device
from thunder_ir.dtypes import DType
from thunder_ir.proxies import Proxy


def key_of(value: Any) -> str:
    """Return a text that two values share only if they are the same argument; valid while the values live.

    ``1``, ``1.0`` and ``True`` differ, as do ``0.0`` and ``-0.0``, and NaNs of two signs; a proxy is its name. An
    object of which nothing is known is equal to itself only. Texts, not tuples: millions of them are nothing to
    Python's garbage collector.

    Example:
        >>> from thunder_ir.keys import key_of
        >>> key_of((1, 0.0)) == key_of((True, -0.0)), key_of([1, None]) == key_of([1, None])
        (False, True)
    """
    if isinstance(value, Proxy):
        return value.name
    cls = value.__class__
    if cls is tuple:
        return f"({','.join([v.name if isinstance(v, Proxy) else key_of(v) for v in value])})"
    if cls in _SHOWN:
        return repr(value)
    prefix = _PREFIXED.get(cls)
    if prefix is not None:
        return f"{prefix}:{value!r}"
    if cls is float:
        sign = "-" if value != value and math.copysign(1.0, value) < 0 else ""  # which repr does not tell of NaN
        return f"float:{sign}{value!r}"
    if cls is complex:
        return f"complex:{key_of(value.real)},{key_of(value.imag)}"
    if cls is list:
        return f"[{','.join([key_of(v) for v in value])}]"
    if cls is dict:
        return f"{{{','.join([f'{key_of(k)}:{key_of(v)}' for k, v in value.items()])}}}"
    if cls is slice:
        return f"slice({key_of(value.start)},{key_of(value.stop)},{key_of(value.step)})"
    if isinstance(value, Enum):
        return f"{id(cls)}.{value.name}"
    if isinstance(value, tuple):
        return f"{id(cls)}({','.join([key_of(v) for v in value])})"
    return f"object:{id(value)}"


_SHOWN = frozenset({bool, str, bytes, type(None)})
_PREFIXED = {int: "int", type(...): "ellipsis", DType: "dtype", Device: "device"}
