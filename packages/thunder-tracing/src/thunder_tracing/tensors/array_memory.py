"""How arrays of NumPy lie in memory: which of them tensors can share it with, and which share it with each other."""

from __future__ import annotations

from thunder_guards.kinds import is_array
from thunder_tracing.tensors.array_calls import Array, numpy


def can_be_shared(array: Array) -> bool:
    """Whether a tensor can share the memory of an array of numbers, without a warning."""
    return bool(array.flags.writeable and array.dtype.isnative and min(array.strides, default=0) >= 0)


def can_be_of_the_call(array: Array) -> bool:
    """Whether there may be programs that compute with the elements that an array has on each call."""
    if not is_array(array) or type(array) is not numpy().ndarray or array.dtype.kind not in "biufc":
        return False
    return bool(array.size and array.flags.forc) and can_be_shared(array)


def address_of(array: Array) -> int:
    """Return where the first element of an array is."""
    return int(array.__array_interface__["data"][0])


def is_plain(value: object) -> bool:
    """Whether a value is given again by each call, as the index of a slice is."""
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return value.__class__ in (int, bool, str, type(None), type(...)) or isinstance(value, (type, numpy().dtype))


def shares_memory(one: Array, other: Array) -> bool:
    """Whether two arrays have elements in one place, perhaps."""
    first, second = address_of(one), address_of(other)
    base_of_one = one if one.base is None else one.base
    base_of_other = other if other.base is None else other.base
    return first == second or base_of_one is base_of_other
