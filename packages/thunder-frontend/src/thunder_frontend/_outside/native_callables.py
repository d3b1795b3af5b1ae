"""Callables in C that code in C may call: all that these are made of, and may look at, is taken in.

The factory of a ``defaultdict``, a special method of a class, or what turns objects into JSON may be a
``functools.partial`` of ``getattr``, or a method of a dict. Nobody sees what it reads when it is called.
"""

from __future__ import annotations

import functools
import gc
import operator
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from thunder_guards.own_code import package_of
from thunder_ir import reached

if TYPE_CHECKING:
    from thunder_frontend._outside.world import World

GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
MADE_OF_OTHERS = (functools.partial, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, *GETTERS)


class NativeCallables:
    """Guards what such callables may read.

    Args:
        world: takes the guards.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._followed: set[int] = set()

    def found(self, found: Sequence[tuple[type | None, str, Any]], given: Sequence[Any] | None) -> list[str]:
        """Take in what callables may read that code in C may call.

        Args:
            found: the class that holds one as a special method, or as the getter of a property, if one does, the name
                under which it does, and the callable.
            given: what the code in C gets; ``None`` if each call is seen.

        Returns:
            names of what it may call whose answer is another one each time.
        """
        callables = [raw for _, _, raw in found if id(raw) not in self._followed and not _is_of_torch(raw)]
        for cls, name, _ in found:
            if cls is not None:
                self._world.classes.lookup(cls, name)
        if given is None or not callables:
            return []
        parts = list(_parts(callables))
        for value in (*parts, *given):
            if not isinstance(value, MADE_OF_OTHERS):
                self._world.unwatched.escapes(value, watched=False)
        now = {id(part) for part in parts} - self._followed
        self._followed |= now
        try:
            return self._world.native_frames.called(parts, given, frozenset(_names(parts)))
        finally:
            self._followed -= now


def is_made_of_others(value: object) -> bool:
    """Whether a callable in C does what it does by means of what it is made of."""
    if type(value) is types.BuiltinFunctionType:
        return value.__self__ is not None and not isinstance(value.__self__, (type, types.ModuleType))
    if type(value) is types.MethodType and type(value.__func__) is types.FunctionType:
        return False  # what it names is taken in
    return isinstance(value, MADE_OF_OTHERS)


def _is_of_torch(raw: object) -> bool:
    return type(raw) is types.BuiltinFunctionType and package_of(raw.__module__) == "torch"


def _parts(callables: Sequence[Any]) -> Iterator[Any]:
    """Give callables, what they are made of, and what such of these are made of."""
    return reached(callables, _parts_of)


def _parts_of(value: object) -> Iterable[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MADE_OF_OTHERS):
        return [part for part in gc.get_referents(value) if not isinstance(part, (type, types.ModuleType))]
    return value if type(value) is tuple else ()


def _names(parts: Sequence[Any]) -> Iterator[str]:
    """Give the names of attributes that callables may ask for."""
    for part in parts:
        if type(part) is str:
            yield from part.split(".")
        elif isinstance(part, GETTERS):
            yield from _names(part.__reduce__()[1])
