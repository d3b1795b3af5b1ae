"""Callables in C that call, or look into, what they are made of: a tracer is told of those that C code may call.

``functools.partial(getattr, a, "v")`` reads ``a.v`` and runs no Python function. Where interpreted code calls it, that
is seen; where C code does, as of the factory of a dict or the ``__len__`` of a class, it is not.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
)
from typing import Any

from thunder_interpreter._machine import Found, Machine
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._types import DICT, HEAP_TYPE, MRO, raw_attribute

keep_builtins(globals())

KINDS = frozenset({
    functools.partial, BuiltinFunctionType, MethodType, MethodWrapperType, operator.attrgetter, operator.itemgetter,
    operator.methodcaller,
})  # fmt: skip
"""Types of such callables."""
LOOKED_INTO = (list, tuple, dict, set, frozenset)
"""Containers that C code looks into, whatever methods their classes have."""
NOTHING_FOUND: tuple[list[Found], bool] = ([], False)
ATOMS = frozenset({bool, int, float, complex, str, bytes, NoneType})


def callables_in(machine: Machine, value: Any, parts_of: Callable[[Any], Sequence[Any]], depth: int) -> Sequence[Found]:
    """Such callables by means of which an object does what C code may ask of it.

    Args:
        machine: keeps what is known of classes.
        value: any object.
        parts_of: returns what an object holds.
        depth: how many objects within others are looked into.
    """
    kind = type(value)
    if kind in KINDS:
        runs_python = kind is MethodType and type(value.__func__) is FunctionType  # which is reported itself
        return () if runs_python else [(None, "", value)]
    if kind is FunctionType or kind is GeneratorType:
        return ()
    found, in_python = on_class(machine, kind) if kind.__flags__ & HEAP_TYPE else NOTHING_FOUND
    if isinstance(value, type):
        return found + on_class(machine, value)[0]
    if in_python and not isinstance(value, LOOKED_INTO):  # what its objects hold is their own concern
        if not found:
            machine.run.quiet.add(kind)
        return found
    if depth:
        for part in parts_of(value):
            if type(part) not in ATOMS and part is not kind and not is_of_module(part):
                found = [*found, *callables_in(machine, part, parts_of, depth - 1)]
    return found


def on_class(machine: Machine, cls: type) -> tuple[list[Found], bool]:
    """The special methods of a class that are such callables, and whether it has functions in Python."""
    known = machine.run.native_callables
    if cls not in known:
        held = [item for base in MRO(cls) or () if base.__flags__ & HEAP_TYPE for item in DICT(base).items()]
        found: list[Found] = [(cls, name, raw) for name, raw in held if type(raw) in KINDS and is_special(name, raw)]
        known[cls] = found, any([type(raw) is FunctionType for _, raw in held])
    return known[cls]


def is_special(name: str, raw: object) -> bool:
    """Whether a callable of a class is a special method, and made of something."""
    return name[:2] == "__" == name[-2:] and not is_of_module(raw)


def is_of_module(raw: object) -> bool:
    """Whether a callable is a function of a module, or a class in C makes its objects by it."""
    return type(raw) is BuiltinFunctionType and isinstance(raw.__self__, (type, ModuleType, NoneType))


def tell_of_special(machine: Machine, obj: object, name: str, given: Sequence[Any] | None = None) -> None:
    """Tell a tracer of a special method that is such a callable, about to be called for an object.

    Args:
        machine: calls it, or leaves that to C code.
        obj: an object.
        name: of the method.
        given: what C code gets that calls it; ``None`` if the interpreter does.
    """
    raw = raw_attribute(type(obj), name)
    if type(raw) in KINDS:
        tell_of_held(machine, type(obj), name, raw, given)


def tell_of_held(machine: Machine, cls: type, name: str, raw: object, given: Sequence[Any] | None = None) -> None:
    """Tell a tracer of what a class holds that is, or gets its value by, such a callable, about to be called."""
    if machine.native_callables is not None:
        machine.native_callables([(cls, name, raw)], given)
