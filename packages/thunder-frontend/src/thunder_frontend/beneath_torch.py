"""What functions of PyTorch, written in Python, call by name: ``F.layer_norm`` the ``layer_norm`` of ``torch``.

Such a function is called as it is, and recorded as a whole. That stands for what it does as long as nobody replaces
what it calls, which is guarded; where somebody did, the function is interpreted like any other.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any

from thunder_frontend.kinds import is_of_library
from thunder_frontend.own_code import package_of

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
CONTINUES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
PROTOCOL = "torch_function"
"""Part of the names of what asks for overrides, which acquisition itself answers."""


@functools.lru_cache(maxsize=1024)
def _ways_named(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Return the globals that code names, each with the attributes that it asks for on the way from there."""
    ways: dict[tuple[str, ...], None] = {}
    way: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            way = (instruction.argval,)
        elif way and instruction.opname in CONTINUES:
            way = (*way, instruction.argval)
        elif way and instruction.opname not in ("CACHE", "PUSH_NULL"):
            ways[way] = None
            way = ()
    return tuple(ways)


def called_by_name(function: types.FunctionType) -> Iterator[tuple[Any, str, Any]]:
    """Give the functions of PyTorch that one of its functions calls by name, itself or by others beside it.

    Returns:
        for each: the globals or the module that have it, its name, and what is there now.
    """
    scope, seen, ahead = function.__globals__, set(), [function]
    while ahead:
        here = ahead.pop()
        if here.__code__ in seen:
            continue
        seen.add(here.__code__)
        for way in _ways_named(here.__code__):
            for place, name, value in _along(scope, way):
                yield place, name, value
                if type(value) is types.FunctionType and value.__globals__ is scope:
                    ahead.append(value)


def _along(scope: dict[str, Any], way: tuple[str, ...]) -> Iterator[tuple[Any, str, Any]]:
    place: Any = scope
    for name in way:
        value = scope.get(name) if place is scope else getattr(place, name, None)
        of_torch = package_of(scope["__name__"] if place is scope else place.__name__) == "torch"
        if of_torch and PROTOCOL not in name and callable(value) and not isinstance(value, type):
            yield place, name, value
        if not isinstance(value, types.ModuleType):
            return
        place = value


def calls_what_was_replaced(function: types.FunctionType) -> bool:
    """Whether a function of PyTorch calls something by name that is not PyTorch's own of that name any more."""
    return any([not _is_own(value, name) for _, name, value in called_by_name(function)])


def _is_own(value: Any, name: str) -> bool:
    if not isinstance(value, FUNCTIONS):
        return is_of_library(type(value).__module__)
    if type(value) is types.FunctionType and not is_of_library(value.__globals__.get("__name__") or ""):
        return False
    return name.replace("_", "") in value.__name__.replace("_", "")


__all__ = ["called_by_name", "calls_what_was_replaced"]
