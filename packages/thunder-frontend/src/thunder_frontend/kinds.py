"""Kinds of values that a program may read of the outside world: how each is compared, and which are refused."""

from __future__ import annotations

import datetime
import enum
import functools
import numbers
import pathlib
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

from thunder_frontend.errors import AcquisitionError
from thunder_frontend.sources import Source


class _OfNumPy(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return _is_numpy_scalar(type(value))


class NumPyScalar(metaclass=_OfNumPy):
    """Stands for the types of NumPy's scalars that cannot change, where ``isinstance`` is asked."""


@functools.cache
def _is_numpy_scalar(cls: type) -> bool:
    names = [base.__name__ for base in cls.__mro__ if base.__module__ == "numpy"]
    return "generic" in names and "void" not in names


SCALARS = (
    bool, int, float, complex, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size, enum.Enum, range, slice,
)  # fmt: skip
VALUES = (*SCALARS, numbers.Number, datetime.date, datetime.time, datetime.timedelta, pathlib.PurePath, NumPyScalar)
"""What is compared by value: what cannot change, and says by ``==`` whether it is the same."""
CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, type,
    types.ModuleType, types.MethodWrapperType, types.GetSetDescriptorType, property, classmethod, staticmethod,
)  # fmt: skip
MAY_DIE = (torch.nn.Module, types.FunctionType)
"""What is guarded to be the very same, but not kept alive, where it is an argument."""
LISTS = (list, tuple, deque)
DICTS = (dict, OrderedDict, defaultdict, types.MappingProxyType)
SETS = (set, frozenset)
CONTAINERS = (*LISTS, *DICTS, *SETS)
NOTHING_INSIDE = frozenset({bool, int, float, str, bytes, type(None), torch.dtype, torch.device, torch.Size, slice})
IMMUTABLE = (tuple, frozenset, types.MethodType, types.CodeType, functools.partial)
VIEWS = frozenset(type(view) for d in ({}, OrderedDict()) for view in (d.keys(), d.values(), d.items()))
LARGEST_BUFFER = 1 << 20


def is_buffer(value: Any) -> bool:
    """Whether something is memory that is read natively: an array of NumPy or of Python, a ``bytearray``."""
    cls = type(value)
    return cls.__name__ in ("ndarray", "bytearray", "array", "memoryview") and cls.__module__ in (
        "numpy",
        "builtins",
        "array",
    )


def refuse_large(source: Source, value: Any) -> None:
    """Refuse a buffer that is too large to be compared on every call."""
    if memoryview(value).nbytes > LARGEST_BUFFER:
        raise AcquisitionError(
            f"the program reads {source}, {memoryview(value).nbytes} bytes which would have to be compared on "
            "every call; make a tensor of it before, and pass that"
        )


def refuse_iterators(source: Source, value: Any) -> None:
    """Refuse what cannot be read again by the next call, or not be watched: iterators, views of dicts, weak proxies."""
    cls = type(value)
    if cls in VIEWS:
        raise AcquisitionError(
            f"the program reads {source}, a view of a dict; pass the dict, or a list of what it shows"
        )
    if cls in weakref.ProxyTypes:
        raise AcquisitionError(
            f"the program reads {source}, a weakref.proxy, through which nothing can be watched; pass the object "
            "itself, or a weakref.ref"
        )
    if cls.__module__ in ("builtins", "itertools") and hasattr(cls, "__next__"):
        raise AcquisitionError(
            f"the program reads {source}, a {cls.__name__} that was begun outside of it: how far it is advanced "
            "cannot be checked, nor undone; pass a list, or the next item itself"
        )


def _native(container: Any) -> Any:
    return next((kind for kind in CONTAINERS if isinstance(container, kind)), type(container))


def counts_natively(kind: type) -> bool:
    """Whether ``len()`` of containers of a class runs no method of the user's."""
    return any([kind.__len__ is known.__len__ for known in CONTAINERS])  # type: ignore[attr-defined]


def length_of(container: Any) -> int:
    """Return how many items there are in a container, whatever its class says."""
    return _native(container).__len__(container)  # type: ignore[no-any-return]


def items_of(container: Any) -> list[Any]:
    """Return what there is in a container, whatever its class says."""
    return list(_native(container).__iter__(container))
