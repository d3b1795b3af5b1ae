"""Callables in C that code in C may call: all that these are made of, and what they may ask for.

The factory of a ``defaultdict``, a special method of a class, or what turns objects into JSON may be a
``functools.partial`` of ``getattr``, or a method of a dict. What it reads is not seen when it is called.
"""

from __future__ import annotations

import functools
import gc
import operator
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from thunder_guards.own_code import package_of
from thunder_ir import reached

GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
MADE_OF_OTHERS = (functools.partial, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, *GETTERS)


def is_made_of_others(value: object) -> bool:
    """Whether a callable in C does what it does by means of what it is made of."""
    if type(value) is types.BuiltinFunctionType:
        return value.__self__ is not None and not isinstance(value.__self__, (type, types.ModuleType))
    if type(value) is types.MethodType and type(value.__func__) is types.FunctionType:
        return False  # what it names is guarded
    return isinstance(value, MADE_OF_OTHERS)


def is_native_of_torch(raw: object) -> bool:
    """Whether a callable is one of PyTorch's, written in C."""
    return type(raw) is types.BuiltinFunctionType and package_of(raw.__module__) == "torch"


def parts_of_all(callables: Sequence[Any]) -> Iterator[Any]:
    """Give callables, what they are made of, and what such of these are made of."""
    return reached(callables, _parts_of)


def _parts_of(value: object) -> Iterable[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MADE_OF_OTHERS):
        return [part for part in gc.get_referents(value) if not isinstance(part, (type, types.ModuleType))]
    return value if type(value) is tuple else ()


def names_asked_for(parts: Sequence[Any]) -> Iterator[str]:
    """Give the names of attributes that callables may ask for."""
    for part in parts:
        if type(part) is str:
            yield from part.split(".")
        elif isinstance(part, GETTERS):
            yield from names_asked_for(part.__reduce__()[1])
