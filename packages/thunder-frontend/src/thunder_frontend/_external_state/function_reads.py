"""What a program reads of functions: code, what parameters are by default, their globals and their closures."""

from __future__ import annotations

import builtins
import inspect
import typing
from types import FunctionType
from typing import Any

from thunder_frontend._external_state.class_facts import is_ours
from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.reads import Reads
from thunder_frontend._library_code import module_calls
from thunder_frontend._library_code.beneath_torch import called_by_name
from thunder_frontend._library_code.native_code import is_of_torch, runs_natively
from thunder_guards import EmptyGuard, IdentityGuard, MembershipGuard, PartGuard, SameObjectGuard
from thunder_guards.mutations import is_empty
from thunder_guards.sources import Source, held
from thunder_interpreter import is_comprehension

BUILTINS = builtins.__dict__
NESTED = 0x10
"""The flag of code that was written within that of a function."""
OWN = module_calls.__dict__


class FunctionReads:
    """Guards what functions are made of.

    Args:
        external: takes the guards.
        reads: guard what is read of values.
    """

    def __init__(self, external: Known, reads: Reads) -> None:
        self._external, self._reads = external, reads
        self._cells: set[int] = set()  # of external functions: functions that the program makes may read them, too
        self._codes: dict[int, Any] = {}
        self._native: set[Any] = set()

    def given(self, function: FunctionType, source: Source) -> None:
        """Guard what a function is that a call was given: one that was made of the same code does as well.

        Args:
            function: see :func:`is_made_anew`.
            source: how the program got at it.
        """
        external = self._external
        external.guards += [PartGuard(source, function, part) for part in ("type", *PARTS) if part != "__defaults__"]
        self._defaults_given(function, source)
        external.guards.append(EmptyGuard(Source(source, "attribute", "__dict__")))
        external.know(function, source)
        closure = Source(source, "attribute", "__closure__")
        for index, cell in enumerate(function.__closure__ or ()):
            here, known = Source(closure, "item", index), external.source_of(cell)
            if known is None:
                external.know(cell, here)
            else:
                external.guards.append(IdentityGuard(here, cell) if known.is_held else SameObjectGuard(here, known))

    def _defaults_given(self, function: FunctionType, source: Source) -> None:
        """Guard how many defaults there are; which, where the program takes them: each call may give others."""
        external, defaults = self._external, function.__defaults__
        if defaults is None or external.source_of(defaults) is not None:  # it is a constant of the code
            external.guards.append(PartGuard(source, function, "__defaults__"))
            return
        here = Source(source, "attribute", "__defaults__")
        external.guards.append(PartGuard(here, defaults, "type"))
        external.know(defaults, here)
        self._reads.containers.length(defaults)

    def runs_unseen(self, function: FunctionType) -> None:
        """Guard what the defaults of a function are that was given, and that the interpreter does not call."""
        if function.__defaults__ is not None and self._external.source_of(function) is not None:
            self._reads.containers.contents(function.__defaults__)

    def entered(self, function: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Guard what a function that is about to run is made of; pass it the tensors among its defaults."""
        code = function.__code__
        if id(code) not in self._codes:
            self._codes[id(code)] = code
            self._unshadowed_builtins(function)
        if args and not is_comprehension(code):
            self._reads.classes.entered(function, args)
        if self._external.source_of(function) is None:
            return
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._cells.add(id(cell))
            self._way_to(function, name, cell)
        if not is_ours(function):
            self.made_of(function, len(args) + len(kwargs) < code.co_argcount + code.co_kwonlyargcount)
            if function.__defaults__ is not None or function.__kwdefaults__ is not None:
                self._defaults(function, args, kwargs)

    def made_of(self, function: FunctionType, needs_defaults: bool = False) -> None:
        """Guard the code of a function, and what its parameters are by default; that nothing is, if they need it."""
        if self._external.source_of(function) is not None and not self._external.is_held(function):
            return  # it was given, and all of this is guarded
        self._external.part(function, function.__qualname__, "__code__")
        if needs_defaults or function.__defaults__ is not None or function.__kwdefaults__ is not None:
            self._external.part(function, function.__qualname__, "__defaults__")
            self._external.part(function, function.__qualname__, "__kwdefaults__")

    def called_as_it_is(self, function: FunctionType) -> None:
        """Guard what a function is made of that is not interpreted; of PyTorch's, what they call by name, too."""
        self.made_of(function)
        self.runs_unseen(function)
        if function.__code__ in self._native or not is_of_torch(function) or not runs_natively(function):
            return
        self._native.add(function.__code__)
        for place, name, value in called_by_name(function):
            if place is function.__globals__:
                self.global_(place, name, value)
            elif name in place.__dict__:
                self._reads.attributes.found(place, name, value)
            else:
                self._external.know(place, held(place, place.__name__))
                self._external.not_shadowed(place, name)

    def cell(self, function: FunctionType, name: str, value: object) -> Any:
        """Guard what a closure of an external function holds."""
        cell = _cell(function, name)
        if not self._is_read(function, cell):
            return value
        return self._external.read(self._way_to(function, name, cell), "cell", name, value)

    def _way_to(self, function: FunctionType, name: str, cell: Any) -> Source:
        """Return how the program gets at a cell: by the function, unless it knows it by another one."""
        known = self._external.source_of(cell)
        if known is None:
            known = held(cell, name)
            self._external.know(cell, known)
        elif not known.is_held and self._external.is_held(function):
            self._external.hold_from(known, cell)
            known = self._external.source_of(cell) or known
        return known

    def missing(self, function: FunctionType, name: str) -> None:
        """Guard that a variable of a closure of an external function has no value."""
        cell = _cell(function, name)
        if self._is_read(function, cell):
            self._way_to(function, name, cell)
            self._reads.answers.result_of(is_empty, (cell,), True)

    def is_outside(self, cell: object) -> bool:
        """Whether a cell is in the closure of an external function."""
        return id(cell) in self._cells

    def global_(self, scope: dict[str, Any], name: str, value: object) -> Any:
        """Guard a global of an interpreted function."""
        if scope is OWN or self._external.mutations.written_at(scope, "item", name):
            return value
        if scope is BUILTINS:
            return self._external.read(held(BUILTINS, "builtins"), "item", name, value, (BUILTINS, name))
        source = self._external.source_of(scope)
        if source is None:
            source = held(scope, f"globals of {scope.get('__name__', '?')}")
            self._external.know(scope, source)
        if name not in scope:
            self._external.require(MembershipGuard(source, (name,), False), id(scope), name, "absent")
            return value
        return self._external.read(source, "item", name, value, (scope, name))

    def missing_global(self, scope: dict[str, Any], name: str) -> None:
        """Guard that neither the globals of an interpreted function nor the builtins have a name."""
        for names, what in ((scope, f"globals of {scope.get('__name__', '?')}"), (BUILTINS, "builtins")):
            if names is not OWN and not self._external.mutations.written_at(names, "item", name):
                self._external.require(MembershipGuard(held(names, what), (name,), False), id(names), name, "absent")

    def _is_read(self, function: FunctionType, cell: object) -> bool:
        """Whether a cell is outside, and not what the program wrote to it."""
        outside = self._external.source_of(function) is not None or self.is_outside(cell)
        return outside and not self._external.mutations.written_at(cell, "cell", None)

    def _unshadowed_builtins(self, function: FunctionType) -> None:
        scope = function.__globals__
        if scope is OWN or is_ours(function):
            return
        source = held(scope, f"globals of {scope.get('__name__', '?')}")
        for name in function.__code__.co_names:
            if name in BUILTINS and name not in scope:
                self._external.require(MembershipGuard(source, (name,), False), id(scope), name, "absent")

    def _defaults(self, function: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> None:
        external = self._external
        code, defaults, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
        if len(args) > code.co_argcount and not code.co_flags & inspect.CO_VARARGS:
            return  # which raises, and counts what the caller gave
        external.know(defaults, held(defaults, f"{function.__qualname__}.__defaults__"))
        external.know(named, held(named, f"{function.__qualname__}.__kwdefaults__"))
        first = code.co_argcount - len(defaults)
        for index in range(max(len(args), first), code.co_argcount):
            name = code.co_varnames[index]
            if name in kwargs and index >= code.co_posonlyargcount:
                continue
            place = index - first
            value = external.loaded(self._reads.containers.item, defaults, place, defaults[place])
            if index < code.co_posonlyargcount:
                args.append(value)
            else:
                kwargs[name] = value
        for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
            if name in named and name not in kwargs:
                kwargs[name] = self._reads.containers.item(named, name, named[name])


PARTS = ("__code__", "__globals__", "__defaults__", "__kwdefaults__")
"""What a function is made of besides its closure."""


def is_made_anew(value: object) -> typing.TypeGuard[FunctionType]:
    """Whether a value is a function as each run of the code around it makes one: of code, variables and defaults."""
    if type(value) is not FunctionType:
        return False
    code = value.__code__
    if not code.co_flags & NESTED and code.co_name != "<lambda>":
        return False
    return value.__kwdefaults__ is None and not value.__dict__


def _cell(function: FunctionType, name: str) -> Any:
    return (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
