"""What a program reads of classes: where an attribute is found, and where it is not.

An attribute of an object is decided by the classes in its type's order of resolution: the first that has the name. What
a class says itself when it is asked for a function or a descriptor is that very object, wherever it is found, so that
one comparison guards it. For other values, and for names that no class has, a program relies on what the one that has
the name holds, on those before it not having it, and on the order. Classes that cannot be edited need no guard.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any

import torch

from thunder_frontend._external_state.class_facts import (
    ARITHMETIC,
    GIVEN_AS_THEY_ARE,
    SPECIAL_METHODS,
    class_of,
    is_mutable,
)
from thunder_frontend._external_state.finalisers import refuse_finaliser
from thunder_frontend._external_state.known import Known
from thunder_guards import MembershipGuard, PartGuard
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import held_by_class, is_of_library
from thunder_guards.mutations import MISSING
from thunder_guards.sources import Source, held
from thunder_tracing.tensors.traced_tensor import TracedTensor

DESCRIPTORS = ("__get__", "__set__", "__delete__")


class ClassReads:
    """Guards what is found, and not found, on classes.

    Args:
        external: takes the guards.
    """

    def __init__(self, external: Known) -> None:
        self._external = external
        self._found: dict[tuple[type, str], Any] = {}
        self._index: dict[type, dict[int, list[str]]] = {}
        self._entered: set[tuple[type, Any]] = set()
        self._of_descriptors: dict[tuple[type, Any], bool] = {}
        self._after: dict[tuple[type, type, str], Any] = {}
        self._ordered: set[type] = set()
        self._absent: dict[type, tuple[Source, set[str]]] = {}
        self._operands: set[Any] = set()
        self._plain: set[type] = set()
        self._own: set[type] = set()
        self._known: set[type] = set()
        self._of_dicts: dict[int, type] = {}

    def class_of_dict(self, container: object) -> type | None:
        """Return the class whose ``__dict__`` the program read as ``container``; ``None`` if it is no such thing."""
        return self._of_dicts.get(id(container))

    def shows_dict(self, cls: type, shown: object) -> None:
        """Guard that the program read the ``__dict__`` of a class."""
        self._external.know(shown, held(shown, f"{cls.__qualname__}.__dict__"))
        self._of_dicts[id(shown)] = cls

    def made(self, cls: type) -> None:
        """Note a class that the program made; those that it is derived from may have a say in that."""
        self._own.add(cls)
        self._in_turn(cls.__mro__[1:], "__init_subclass__")

    def is_outside(self, cls: type) -> bool:
        """Whether other code may edit a class."""
        return is_mutable(cls) and cls not in self._own

    def lookup(self, cls: type, name: str) -> Any:
        """Return what ``cls`` or its bases hold under ``name``, :data:`MISSING` if nothing, and guard that."""
        place = (cls, name)
        if place not in self._found:
            if cls not in self._known:
                self._known.add(cls)
                self._external.know_classes(filter(self.is_outside, cls.__mro__))
                self.metaclass(cls)
            self._found[place] = self._first(cls, name)
        return self._found[place]

    def wrote(self, cls: type, name: str) -> bool:
        """Whether what a class has under ``name``, itself or of a base, was put there by the program itself."""
        owner = next((owner for owner in cls.__mro__ if name in owner.__dict__), None)
        return owner is not None and bool(self._external.mutations.written_at(owner, "attribute", name))

    def metaclass(self, cls: type) -> None:
        """Guard the class of a class of the user's, which may be given another one if it is not ``type``."""
        if (
            type(cls) is not type
            and isinstance(cls, type)
            and self.is_outside(cls)
            and not is_of_library(cls.__module__)
        ):
            self._external.part(cls, cls.__qualname__, "type")

    def _first(self, cls: type, name: str) -> Any:
        order = cls.__mro__
        for index, owner in enumerate(order):
            if name in owner.__dict__:
                raw = owner.__dict__[name]
                if not any(map(self.is_outside, order[: index + 1])):
                    return raw
                if cls in self._own:
                    break
                if self._external.mutations.written_at(owner, "attribute", name):
                    break
                if type(raw) in GIVEN_AS_THEY_ARE and _asked(cls, name) is raw:
                    self._given_by(cls, name, raw)
                    return raw
                break
        if self.is_outside(cls):
            self._order(cls)
        return self._in_turn(order, name)

    def _given_by(self, cls: type, name: str, raw: object) -> None:
        """Guard a function or a descriptor that a class gives as it is when it is asked for ``name``."""
        source = Source(held(cls, cls.__qualname__), "attribute", name)
        self._external.guards.append(self._external.weakly_held.guard(source, raw))
        self._external.hold_from(source, raw)

    def after(self, start: type, cls: type, name: str) -> Any:
        """Return, and guard, what ``super(start, obj)`` finds under ``name`` for an ``obj`` of type ``cls``."""
        place = (start, cls, name)
        if place not in self._after:
            order = cls.__mro__
            self._order(cls)
            self._after[place] = self._in_turn(order[order.index(start) + 1 :], name)
        return self._after[place]

    def _order(self, cls: type) -> None:
        if cls not in self._ordered:
            self._ordered.add(cls)
            self._external.guards.append(PartGuard(held(cls, cls.__qualname__), cls, "__mro__"))

    def _in_turn(self, order: tuple[type, ...], name: str) -> Any:
        for owner in order:
            if name in owner.__dict__:
                raw = owner.__dict__[name]
                if not self.is_outside(owner) or self._external.mutations.written_at(owner, "attribute", name):
                    return raw
                source = held(owner, owner.__qualname__)  # a number may be dynamic
                return self._external.read(source, "attribute", name, raw, (owner.__dict__, name))
            if self.is_outside(owner):
                self._require_absent(owner, name)
        return MISSING

    def _require_absent(self, owner: type, name: str) -> None:
        known = self._absent.get(owner)
        if known is None:
            known = self._absent[owner] = (held(owner.__dict__, owner.__qualname__), set())
        source, names = known
        if name not in names:
            names.add(name)
            self._external.guards.append(MembershipGuard(source, (name,), False))

    def no_data_descriptor(self, cls: type, name: str) -> None:
        """Guard that a class lets its objects have an attribute of their own of that name."""
        raw = self.lookup(cls, name)
        if raw is not MISSING and self.is_outside(type(raw)):
            self.lookup(type(raw), "__set__")

    def finds_attributes(self, cls: type) -> None:
        """Guard how objects of a class find their attributes."""
        if cls not in self._plain:
            self._plain.add(cls)
            if is_mutable(cls):
                self.lookup(cls, "__getattribute__")

    def operands(self, function: object, args: Sequence[Any]) -> None:
        """Guard by which methods of the classes of its operands an operator that is not interpreted does its work.

        Args:
            function: of the module ``operator``, or a builtin such as ``len``.
            args: its operands.
        """
        if function is type.__call__:
            self._constructed(args[0])
            return
        place = (function, *map(class_of, args))
        if place in self._operands:
            return
        self._operands.add(place)
        with_tensors = any(isinstance(a, TracedTensor) for a in args)
        first = class_of(args[0])
        for value, names in zip(args, SPECIAL_METHODS.get(function, ()), strict=False):
            cls = class_of(value)
            if isinstance(value, type):
                self.metaclass(value)
            if not is_mutable(cls) or value is not args[0] and cls is first and function in ARITHMETIC:
                continue
            if with_tensors and not isinstance(value, TracedTensor):
                self.lookup(cls, "__torch_function__")
            for name in names:
                found = self.lookup(cls, name)
                if isinstance(value, TracedTensor) and cls is not torch.Tensor:
                    self._require_tensors_own(cls, name, found)

    def _constructed(self, cls: type) -> None:
        """Guard what a call of a class runs."""
        self.makes_object(cls)
        if "__abstractmethods__" in cls.__dict__:  # somebody may say that there are some, or none
            self._in_turn((cls,), "__abstractmethods__")
        if type(cls) is not type:
            self.metaclass(cls)
            self.lookup(type(cls), "__call__")
        if is_mutable(cls):
            self.lookup(cls, "__new__")
            self.lookup(cls, "__init__")

    def makes_object(self, cls: type) -> None:
        """Guard what will run when an object of a class dies; refuse it if it does something.

        Raises:
            AcquisitionError: it does.
        """
        refuse_finaliser(cls)
        for owner in cls.__mro__:
            if "__del__" in owner.__dict__:
                self.lookup(cls, "__del__")
                return
            if self.is_outside(owner) and not is_of_library(owner.__module__):
                self._require_absent(owner, "__del__")

    def checks(self, name: str, classes: object) -> None:
        """Guard how classes tell what is an instance, or a subclass, of them.

        Args:
            name: ``"__instancecheck__"`` or ``"__subclasscheck__"``.
            classes: a class, or a tuple of them.
        """
        for cls in classes if isinstance(classes, tuple) else (classes,):
            if isinstance(cls, tuple):
                self.checks(name, cls)
            elif type(cls) is not type:
                self.metaclass(cls)
                self.lookup(type(cls), name)

    def derives(self, cls: object) -> None:
        """Guard what a class is derived from."""
        if isinstance(cls, type) and self.is_outside(cls) and not issubclass(cls, torch.Tensor):
            self._external.know(cls, held(cls, cls.__qualname__))
            self._order(cls)

    def stored(self, cls: type, name: str) -> None:
        """Guard what setting an attribute of an object of a class runs."""
        if is_mutable(cls):
            self.lookup(cls, "__setattr__")
            self.lookup(cls, name)

    def _require_tensors_own(self, cls: type, name: str, found: object) -> None:
        if found is not self.lookup(torch.Tensor, name):
            raise AcquisitionError(
                f"{cls.__qualname__}, a subclass of torch.Tensor, has a {name} of its own, which a compiled program "
                "does not call for an operator: call it by name, or pass a plain tensor"
            )

    def entered(self, function: object, args: Sequence[Any]) -> None:
        """Guard how a function came to be called, which may have been as a special method or a descriptor.

        Args:
            function: about to run.
            args: its arguments: the first one's class, or the class itself, holds the function.
        """
        first = args[0]
        cls = type(first)
        if len(args) > 1 and self._is_of_descriptor(cls, function):
            self.lookup(cls, "__set__")
            owner = args[1] if args[1] is not None else args[2]
            for name in self._holding(owner, first):
                if not hasattr(cls, "__set__"):
                    self._external.not_shadowed(owner, name)
        if isinstance(first, type) or (cls, function) not in self._entered:
            self._entered.add((cls, function))
            self._holding(first, function)

    def _is_of_descriptor(self, cls: type, function: object) -> bool:
        known = self._of_descriptors.get((cls, function))
        if known is None:
            parts = [p for name in DESCRIPTORS for p in _parts(held_by_class(cls, name, MISSING))]
            known = self._of_descriptors[cls, function] = any(p is function for p in parts)
        return known

    def _holding(self, obj: object, sought: object) -> list[str]:
        """Guard and return each name under which the object's class, or the object if it is one, holds something."""
        found: list[str] = []
        for cls in (type(obj), obj) if isinstance(obj, type) else (type(obj),):
            if cls not in self._index:
                self._index[cls] = self._names_of_parts(cls)
            names = self._index[cls].get(id(sought), [])
            for name in names:
                self.lookup(cls, name)
            found += names
        return found

    def _names_of_parts(self, cls: type) -> dict[int, list[str]]:
        """Return under which names a class, and those that it is derived from, hold what they do."""
        index: dict[int, list[str]] = {}
        for owner in filter(self.is_outside, cls.__mro__):
            for name, raw in owner.__dict__.items():
                for part in _parts(raw):
                    index.setdefault(id(part), []).append(name)
        return index


def _asked(cls: type, name: str) -> Any:
    """Return what a class says itself when it is asked for an attribute; :data:`MISSING` if that may run any code."""
    meta: Any = type(cls)
    if meta.__getattribute__ is not type.__getattribute__ or any(
        name in m.__dict__ for m in filter(is_mutable, meta.__mro__)
    ):
        return MISSING
    return getattr(cls, name, MISSING)


def _parts(raw: object) -> tuple[Any, ...]:
    """Return what a class holds, and the functions that it runs."""
    kind = type(raw)
    if kind is types.FunctionType:
        return (raw,)
    if isinstance(raw, property):
        return raw, raw.fget, raw.fset, raw.fdel
    if isinstance(raw, (staticmethod, classmethod)):
        return raw, raw.__func__
    return (raw, raw.func) if isinstance(raw, functools.cached_property) else (raw,)
