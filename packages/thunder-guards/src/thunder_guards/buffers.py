"""Memory that code in C reads and writes: arrays of NumPy, of ctypes and of Python, ``bytearray``."""

from __future__ import annotations

import array
from typing import Any

from thunder_guards.kinds import is_array


def copy_of(buffer: Any) -> Any:
    """Return the contents of a buffer, for :func:`write_back`."""
    if is_array(buffer):
        return buffer.copy(order="K")
    return buffer[:] if isinstance(buffer, (bytearray, array.array)) else memoryview(buffer).tobytes()


def write_back(buffer: Any, contents: Any) -> None:
    """Give a buffer other contents."""
    if is_array(buffer):
        buffer[...] = contents
    elif isinstance(buffer, (bytearray, array.array)):
        buffer[:] = contents
    else:
        memoryview(buffer).cast("B")[:] = contents


def holds(buffer: object, contents: Any) -> bool:
    """Whether a buffer holds what :func:`copy_of` returned, bit by bit."""
    now = copy_of(buffer)
    if not is_array(buffer):
        return bool(now == contents)
    if now.dtype.hasobject:
        return bool(now.shape == contents.shape) and all(a is b for a, b in zip(now.flat, contents.flat, strict=True))
    return bool(now.shape == contents.shape and now.tobytes() == contents.tobytes())


__all__ = ["copy_of", "holds", "write_back"]
