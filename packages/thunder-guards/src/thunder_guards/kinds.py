"""Kinds of values that a program may read of external state: how each is compared, and which are refused."""

from __future__ import annotations

import _io
import datetime
import enum
import functools
import gc
import numbers
import operator
import pathlib
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.own_code import package_of
from thunder_torch.torch_versions import OpOverload, OpOverloadPacket


def _told_by_class(compute: Callable[[type], bool]) -> Callable[[object], bool]:
    """Return a function of objects that says what ``compute`` does of their classes, once for each; it keeps none."""
    answers: dict[int, bool] = {}
    references: dict[int, weakref.ref[type]] = {}

    @functools.wraps(compute)
    def answer(value: object) -> bool:
        cls = type(value)
        place = id(cls)
        try:
            return answers[place]
        except KeyError:
            pass

        def forget(reference: weakref.ref[type]) -> None:
            del answers[place], references[place]

        references[place] = weakref.ref(cls, forget)
        answers[place] = compute(cls)
        return answers[place]

    return answer


class _OfNumPy(type):
    def __instancecheck__(cls, value: object) -> bool:
        return _is_numpy_scalar(value)


class NumPyScalar(metaclass=_OfNumPy):
    """Stands for the types of NumPy's scalars that cannot change, where ``isinstance`` is asked."""


class _OfNumbers(type):
    def __instancecheck__(cls, value: object) -> bool:
        return issubclass(type(value), numbers.Number)


class Number(metaclass=_OfNumbers):
    """Stands for ``numbers.Number`` where ``isinstance`` is asked: it asks no value for its ``__class__``."""


def _of_numpy_scalars(cls: type) -> bool:
    names = [base.__name__ for base in cls.__mro__ if base.__module__ == "numpy"]
    return "generic" in names and "void" not in names


_is_numpy_scalar = _told_by_class(_of_numpy_scalars)

NUMPY_NUMBERS = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"})
"""Names of the types of NumPy's scalars that are numbers and that tensors have as elements."""


@_told_by_class
def is_numpy_number(cls: type) -> bool:
    """Whether something is a scalar of NumPy's of one of :data:`NUMPY_NUMBERS`."""
    return cls.__module__ == "numpy" and cls.__name__ in NUMPY_NUMBERS


SCALARS = (
    bool, int, float, complex, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size, enum.Enum, range, slice,
)  # fmt: skip
VALUES = (
    *SCALARS, Number, datetime.date, datetime.time, datetime.timedelta, pathlib.PurePath, NumPyScalar,
    operator.itemgetter, operator.attrgetter, operator.methodcaller,
)  # fmt: skip
"""What is compared by value: what cannot change, and says by ``==`` whether it is the same."""
CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, type,
    types.ModuleType, types.MethodWrapperType, types.GetSetDescriptorType, types.ClassMethodDescriptorType, property,
    classmethod, staticmethod, OpOverload, OpOverloadPacket,
)  # fmt: skip
MAY_DIE = (torch.nn.Module, types.FunctionType)
"""What is guarded to be the very same, but not kept alive, where it is an argument."""
LISTS = (list, tuple, deque)
DICTS = (dict, OrderedDict, defaultdict, types.MappingProxyType)
SETS = (set, frozenset)
CONTAINERS = (*LISTS, *DICTS, *SETS)
EXACT_CONTAINERS = frozenset(CONTAINERS)
NOTHING_INSIDE = frozenset({bool, int, float, str, bytes, type(None), torch.dtype, torch.device, torch.Size, slice})
IMMUTABLE = (tuple, frozenset, types.MethodType, types.CodeType, functools.partial)
_SAMPLES: tuple[Any, ...] = ({}, OrderedDict())
VALUES_VIEW: type = type({}.values())
ITEMS_VIEW: type = type({}.items())
VIEWS = frozenset(type(view) for d in _SAMPLES for view in (d.keys(), d.values(), d.items()))
_ITERATED: tuple[Any, ...] = ([], (), set(), *[c for d in _SAMPLES for c in (d, d.values(), d.items())])
ITERATORS = frozenset([*[type(iter(c)) for c in _ITERATED], type(reversed([])), reversed])
"""Iterators over containers."""
LARGEST_BUFFER = 1 << 20
HEAP_TYPE = 1 << 9
"""Flag of classes that Python code makes."""


BUFFERS = frozenset({
    ("builtins", "bytearray"), ("builtins", "memoryview"), ("array", "array"), ("mmap", "mmap"), ("numpy", "ndarray"),
    ("_ctypes", "Array"), ("_ctypes", "Structure"), ("_ctypes", "Union"), ("_ctypes", "_SimpleCData"),
})  # fmt: skip
"""Classes, by module and name, of memory that code in C reads, and that may be read as a whole."""


@_told_by_class
def is_value(cls: type) -> bool:
    """Whether something is of a kind in :data:`VALUES`."""
    kinds = [kind for kind in VALUES if kind not in (NumPyScalar, Number)]
    return _of_numpy_scalars(cls) or issubclass(cls, (numbers.Number, *kinds))


def has_attributes(value: object) -> bool:
    """Whether something that is compared by value has attributes, too, which user code may set.

    A path keeps in slots what it computed of what it is.
    """
    return hasattr(value, "__dict__") or _has_slots(value)


@_told_by_class
def _has_slots(cls: type) -> bool:
    return any([owner.__flags__ & HEAP_TYPE and owner.__dict__.get("__slots__") for owner in cls.__mro__])


def is_container(value: object) -> bool:
    """Whether something is a list, tuple, deque, dict or set, or of a class derived from one."""
    return type(value) in EXACT_CONTAINERS or isinstance(value, CONTAINERS) and not isinstance(value, torch.Size)


@_told_by_class
def is_buffer(cls: type) -> bool:
    """Whether something is memory that is read natively: an array of NumPy, of ctypes or of Python, a ``bytearray``."""
    return any([(base.__module__, base.__name__) in BUFFERS for base in cls.__mro__])


def is_of_library(module: object) -> bool:
    """Whether a module, by its name, belongs to Python, PyTorch or NumPy, which give their own classes no others."""
    top = package_of(module)
    return top in LIBRARIES or top in sys.stdlib_module_names and top != "__main__"


LIBRARIES = frozenset({"torch", "numpy", "functorch"})


@_told_by_class
def is_array(cls: type) -> bool:
    """Whether something is an array of NumPy, which shows not all of its dtypes as others can read them."""
    return any([(base.__module__, base.__name__) == ("numpy", "ndarray") for base in cls.__mro__])


def holds_of_numpy(value: object) -> bool:
    """Whether something is an array or a scalar of NumPy's, or a list, a tuple or a dict that holds some."""
    if isinstance(value, (list, tuple, dict)):
        return any(map(holds_of_numpy, value.values() if isinstance(value, dict) else value))
    return is_array(value) or isinstance(value, NumPyScalar)


def size_of(buffer: Any) -> int:
    """Return how many bytes there are in a buffer."""
    return int(buffer.nbytes) if is_array(buffer) else memoryview(buffer).nbytes


def refuse_large(source: object, value: object) -> None:
    """Refuse a buffer that is too large to be compared on every call."""
    if size_of(value) > LARGEST_BUFFER:
        raise AcquisitionError(
            f"the program reads {source}, {size_of(value)} bytes which would have to be compared on "
            "every call; make a tensor of it before, and pass that"
        )


def refuse_objects(source: object, value: Any) -> None:
    """Refuse an array of Python objects that may change unseen."""
    if is_array(value) and value.dtype.hasobject and not all([is_value(item) for item in value.flat]):
        raise AcquisitionError(f"the program reads {source}, an array of objects which may change; make a list of it")


def dict_of(view: object) -> Any:
    """Return the dict whose values or items a view shows."""
    (found,) = gc.get_referents(view)
    return found


def refuse_iterators(source: object, value: object) -> None:
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
    if not isinstance(value, _io._IOBase) and isinstance(getattr(cls, "__next__", None), types.WrapperDescriptorType):
        raise AcquisitionError(
            f"the program reads {source}, a {cls.__name__} that was begun outside of it: how far it is advanced "
            "cannot be checked, nor undone; pass a list, or the next item itself"
        )


def held_by_class(cls: type, name: str, default: object = None) -> Any:
    """Return what a class or its bases hold under a name, whatever its metaclass says."""
    return next((owner.__dict__[name] for owner in cls.__mro__ if name in owner.__dict__), default)


def _native(container: object) -> Any:
    return next((kind for kind in CONTAINERS if isinstance(container, kind)), type(container))


def counts_natively(kind: type) -> bool:
    """Whether ``len()`` of containers of a class runs no method of the user's."""
    return any([kind.__len__ is known.__len__ for known in CONTAINERS])  # type: ignore[attr-defined]


def length_of(container: object) -> int:
    """Return how many items there are in a container, whatever its class says."""
    return _native(container).__len__(container)  # type: ignore[no-any-return]


def items_of(container: object) -> list[Any]:
    """Return what there is in a container, whatever its class says."""
    return list(_native(container).__iter__(container))


def pairs_of(container: object) -> list[tuple[Any, Any]]:
    """Return the keys and values of a dict, whatever its class says."""
    return list(_native(container).items(container))


def item_of(container: object, key: object) -> Any:
    """Return what a container keeps at a key, whatever its class says."""
    return _native(container).__getitem__(container, key)


def has_own_subscription(container: Any) -> bool:
    """Whether something is a container whose class has a ``__getitem__`` written in Python."""
    if type(container) in EXACT_CONTAINERS or not is_container(container):
        return False
    return not isinstance(type(container).__getitem__, (types.MethodDescriptorType, types.WrapperDescriptorType))


def as_fact(key: object) -> Any:
    """Return what tells a key from all others, those equal to it and of another class included."""
    try:
        hash(key)
    except TypeError:
        return id(key)
    return (type(key), key)
