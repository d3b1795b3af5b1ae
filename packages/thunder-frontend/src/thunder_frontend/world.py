"""The outside world as a program sees it: what it reads becomes guards, what it writes is noted and undone.

The world knows, by identity, the objects that the program reached from its roots and how. Whatever is loaded from one of
them is outside too. Tensors are replaced by traced tensors at that moment; everything else is the real object.
"""

from __future__ import annotations

import builtins
import enum
import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend import module_calls
from thunder_frontend.guards import (
    AttributeAbsentGuard,
    EmptyGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MembershipGuard,
    SetGuard,
    TypeGuard,
    ValueGuard,
)
from thunder_frontend.journal import Journal
from thunder_frontend.sources import Source, held

SCALARS = (
    bool, int, float, complex, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size, enum.Enum, range, slice,
)  # fmt: skip
CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, type,
    types.ModuleType, types.MethodWrapperType, types.GetSetDescriptorType, property, classmethod, staticmethod,
)  # fmt: skip
LISTS = (list, tuple, deque)
DICTS = (dict, OrderedDict, defaultdict, types.MappingProxyType)
SETS = (set, frozenset)


class World:
    """Everything outside of the program.

    Args:
        tensor: makes a traced tensor of a real one that was read from a source.
        number: makes a number proxy of a number among the arguments; ``None`` where programs fix such numbers.
    """

    def __init__(
        self,
        tensor: Callable[[torch.Tensor, Source, tuple[Any, Any] | None], Any],
        number: Callable[[Any, Source], Any] | None = None,
    ) -> None:
        self._tensor = tensor
        self._number = number
        self._numbers: dict[Any, Any] = {}
        self._sources: dict[int, Source] = {}
        self._alive: list[Any] = []
        self._facts: set[Any] = set()
        self.guards: list[Guard] = []
        self.journal = Journal()

    # --- what is known -------------------------------------------------------------------------------------------

    def source_of(self, value: Any) -> Source | None:
        """Return how the program got at an outside object; ``None`` for its own objects and for scalars."""
        return self._sources.get(id(value))

    def know(self, value: Any, source: Source) -> None:
        """Note that ``value`` is an outside object, reached by ``source``."""
        if id(value) not in self._sources:
            self._sources[id(value)] = source
            self._alive.append(value)

    def hold(self, value: Any, name: str) -> None:
        """Note an object that the compiled function itself holds, such as the function's own or its module.

        What a bound method or a ``functools.partial`` is made of is held with it.
        """
        self.know(value, held(value, name))
        if isinstance(value, types.MethodType):
            self.hold(value.__self__, f"{name}.__self__")
            self.hold(value.__func__, name)
        elif isinstance(value, functools.partial):
            self.hold(value.func, name)
            for part, what in ((value.args, "args"), (value.keywords, "keywords")):
                self.know(part, held(part, f"{name}.{what}"))
                self.contents(part)

    def require(self, guard: Guard, *fact: Any) -> None:
        """Add a guard, unless the same fact is guarded already."""
        if fact not in self._facts:
            self._facts.add(fact)
            self.guards.append(guard)

    # --- reads ---------------------------------------------------------------------------------------------------

    def read(self, base: Source, kind: str, key: Any, value: Any, slot: tuple[Any, Any] | None = None) -> Any:
        """Take in ``value``, found at ``key`` of an outside object; return what the program shall see.

        Args:
            base: source of the object.
            kind: ``"attribute"``, ``"item"`` or ``"cell"``.
            key: name, key or index.
            value: what is there.
            slot: the container and key where it is kept, if the compiled function holds the container.
        """
        if isinstance(value, torch.Tensor):
            return self._tensor(value, Source(base, kind, key), slot)
        place = (id(slot[0]), slot[1]) if slot is not None else (id(base), kind, _hashable(key))
        if self._number is not None and slot is None and type(value) in (int, float):
            if place not in self._numbers:
                self._numbers[place] = self._number(value, Source(base, kind, key))
            return self._numbers[place]
        if place in self._facts:
            return value
        self._facts.add(place)
        self._take(Source(base, kind, key), value, slot)
        return value

    def _take(self, source: Source, value: Any, slot: tuple[Any, Any] | None) -> None:
        if isinstance(value, SCALARS):
            self.guards.append(ValueGuard(source, value, slot))
        elif isinstance(value, CODE) or slot is not None or isinstance(value, torch.nn.Module):
            self.guards.append(IdentityGuard(source, value, slot))
            self.know(value, Source(source.base, source.kind, source.key, value, True))
            if isinstance(value, functools.partial):
                self.hold(value, str(source))
        elif isinstance(value, types.MethodType):
            self.guards.append(TypeGuard(source, types.MethodType))
            self.read(source, "attribute", "__func__", value.__func__)
            self.read(source, "attribute", "__self__", value.__self__)
            self.know(value, source)
        else:
            self.guards.append(TypeGuard(source, type(value)))
            self.know(value, source)

    def argument(self, value: Any, source: Source) -> Any:
        """Take in an argument of the call; return what the program shall see."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, source, None)
        if self._number is not None and type(value) in (int, float):
            return self._number(value, source)
        self._take(source, value, None)
        return value

    def attribute(self, obj: Any, name: str, value: Any) -> Any:
        """Take in ``obj.name``, found without running Python code."""
        source = self._sources.get(id(obj))
        if source is None or self.journal.written_at(obj, "attribute", name):
            return value
        if isinstance(obj, type):
            return self._class_attribute(obj, name, value)
        if isinstance(obj, types.ModuleType):
            if name not in obj.__dict__:
                return self.read(source, "attribute", name, value)
            return self.read(source, "attribute", name, value, (obj.__dict__, name))
        own = getattr(obj, "__dict__", None)
        if name == "__dict__":
            self.know(value, held(value, f"{source}.__dict__") if source.is_held else Source(source, "attribute", name))
            return value
        if isinstance(own, dict) and name in own:
            slot = (own, name) if source.is_held else None
            return self.read(source, "attribute", name, value, slot)
        return self._found_on_class(obj, source, own, name, value)

    def _found_on_class(self, obj: Any, source: Source, own: Any, name: str, value: Any) -> Any:
        cls = type(obj)
        for owner in cls.__mro__:
            if name in owner.__dict__:
                break
        else:
            return value
        if isinstance(own, dict):
            self._not_shadowed(obj, source, own, name)
        raw = owner.__dict__[name]
        if isinstance(value, types.MethodType):
            self._class_slot(owner, name, raw)
            self.know(value, Source(source, "attribute", name))
        elif raw is value or isinstance(raw, CODE) and not isinstance(raw, types.GetSetDescriptorType):
            self._class_slot(owner, name, raw)
        else:  # a slot, or another descriptor written in C, which computed the value
            return self.read(source, "attribute", name, value)
        return value

    def _not_shadowed(self, obj: Any, source: Source, own: dict[str, Any], name: str) -> None:
        if source.is_held:
            mapping = held(own, f"{source}.__dict__")
            self.require(MembershipGuard(mapping, name, False), id(own), name, "absent")
        else:
            inside = Source(source, "attribute", "__dict__")
            self.require(MembershipGuard(inside, name, False), id(source), name, "absent")

    def _class_slot(self, owner: type, name: str, raw: Any) -> None:
        if owner.__module__.partition(".")[0] in LIBRARIES and not isinstance(raw, SCALARS):
            return
        self.read(held(owner, owner.__qualname__), "attribute", name, raw, (owner.__dict__, name))

    def _class_attribute(self, cls: type, name: str, value: Any) -> Any:
        for owner in cls.__mro__:
            if name in owner.__dict__:
                self._class_slot(owner, name, owner.__dict__[name])
                break
        return value

    def missing(self, obj: Any, name: str) -> None:
        """Take in that ``obj`` has no attribute ``name``."""
        source = self._sources.get(id(obj))
        if source is None or isinstance(obj, type) or self.journal.written_at(obj, "attribute", name):
            return
        own = getattr(obj, "__dict__", None)
        if isinstance(own, dict):
            self._not_shadowed(obj, source, own, name)
        elif isinstance(obj, types.ModuleType) or not hasattr(type(obj), "__getattr__"):
            self.require(AttributeAbsentGuard(source, name), id(source), name, "absent")

    def global_(self, scope: dict[str, Any], name: str, value: Any) -> Any:
        """Take in a global of an interpreted function."""
        if scope is BUILTINS or scope is OWN or self.journal.written_at(scope, "item", name):
            return value
        source = self._sources.get(id(scope))
        if source is None:
            source = held(scope, f"globals of {scope.get('__name__', '?')}")
            self.know(scope, source)
        if name not in scope:
            self.require(MembershipGuard(source, name, False), id(scope), name, "absent")
            return value
        return self.read(source, "item", name, value, (scope, name))

    def cell(self, function: Any, name: str, value: Any) -> Any:
        """Take in what a closure of an outside function holds."""
        if self._sources.get(id(function)) is None:
            return value
        index = function.__code__.co_freevars.index(name)
        cell = function.__closure__[index]
        if self.journal.written_at(cell, "cell", None):
            return value
        return self.read(held(cell, name), "cell", name, value)

    def item(self, container: Any, key: Any, value: Any) -> Any:
        """Take in ``container[key]``."""
        source = self._sources.get(id(container))
        if source is None or isinstance(container, (str, bytes, torch.Size, range)):
            return value
        if isinstance(key, slice):
            self.contents(container)
            return value
        if self._was_written(container, key):
            return value
        if isinstance(container, (list, tuple, deque)):
            if not isinstance(key, int):
                return value
            key = key + len(container) if key < 0 else key
            self.length(container)
        return self.read(source, "item", key, value, (container, key) if source.is_held else None)

    def _was_written(self, container: Any, key: Any) -> bool:
        return self.journal.wrote(container) or self.journal.written_at(container, "item", key)

    def length(self, container: Any) -> None:
        """Take in how many items an outside container has."""
        source = self._sources.get(id(container))
        if source is not None and not self.journal.wrote(container):
            self.require(LengthGuard(source, len(container)), id(source), "length")

    def keys(self, container: Any) -> None:
        """Take in the keys of an outside dict and their order."""
        source = self._sources.get(id(container))
        if source is None or self.journal.wrote(container):
            return
        if not container:
            self.empty(container)
        else:
            self.require(KeysGuard(source, tuple(container)), id(source), "keys")

    def empty(self, container: Any) -> None:
        """Take in that an outside container is empty."""
        source = self._sources.get(id(container))
        if source is not None and not self.journal.wrote(container):
            self.require(EmptyGuard(source), id(source), "empty")

    def membership(self, container: Any, key: Any, present: bool) -> None:
        """Take in whether ``key`` is in an outside dict or set."""
        source = self._sources.get(id(container))
        if source is not None and not self.journal.wrote(container):
            self.require(MembershipGuard(source, key, present), id(source), _hashable(key), "membership")

    def structure(self, container: Any) -> None:
        """Take in the length or the keys of an outside container that is iterated over."""
        if isinstance(container, DICTS):
            self.keys(container)
        elif isinstance(container, SETS):
            source = self._sources.get(id(container))
            if source is not None and not self.journal.wrote(container):
                self.require(SetGuard(source, frozenset(container)), id(source), "set")
        elif isinstance(container, LISTS):
            self.length(container)

    def contents(self, container: Any) -> None:
        """Take in all that an outside container holds, containers in it included: it goes to code that cannot be watched."""
        if self._sources.get(id(container)) is None or self.journal.wrote(container):
            return
        self.structure(container)
        if isinstance(container, DICTS):
            for key, value in list(container.items()):
                self.item(container, key, value)
                self.contents(value)
        elif isinstance(container, LISTS):
            for index, value in enumerate(list(container)):
                self.item(container, index, value)
                self.contents(value)


BUILTINS = builtins.__dict__
OWN = module_calls.__dict__
LIBRARIES = frozenset({"torch", "builtins", "collections", "typing", "abc", "functools", "enum"})
"""Packages whose classes are not expected to be edited while programs run; their methods carry no guard."""


def _hashable(key: Any) -> Any:
    try:
        hash(key)
    except TypeError:
        return id(key)
    return (type(key), key)
