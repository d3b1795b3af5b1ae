"""Copies of what a call reaches: of its arguments, and of the variables and globals of the functions that it runs."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from thunder_guards.kinds import CONTAINERS, DICTS, is_of_library, is_value
from thunder_guards.mutations import MISSING, contents_of
from thunder_interpreter import names_of
from thunder_ir import reached

ATOMS = (type, types.ModuleType, types.BuiltinFunctionType)


class Copies:
    """Copies objects such that what is one object among them is one among the copies.

    What cannot be copied, such as a lock, stays what it is.
    """

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._originals: list[Any] = []  # whose ids are not to be given to others
        self._globals: dict[int, dict[str, Any]] = {}

    def of(self, value: object) -> Any:
        """Return the copy of an object."""
        for here in reached([value], self._inside):
            if id(here) not in self._memo and not isinstance(here, ATOMS):
                self._prepare(here)
        try:
            return copy.deepcopy(value, self._memo)
        except Exception:  # whatever makes it no object for copies
            return value

    def _prepare(self, value: Any) -> None:
        """Copy an object of which Python makes no copies, or other ones."""
        if type(value) is types.FunctionType:
            self._function(value)
        elif type(value) is types.MethodType:
            self._note(value, types.MethodType(self.of(value.__func__), self.of(value.__self__)))
        elif _is_uncopied(value):
            self._note(value, _copy_of_uncopied(value))
        elif not isinstance(value, CONTAINERS) and not hasattr(value, "__dict__"):
            if not is_value(value) and not _can_be_copied(value):
                self._note(value, value)

    def _note(self, value: object, made: object) -> None:
        self._memo[id(value)] = made
        self._originals.append(value)

    def _inside(self, value: Any) -> Iterable[Any]:
        """Return what an object holds that is to be copied with it."""
        if id(value) in self._memo or isinstance(value, ATOMS):
            return ()
        if isinstance(value, CONTAINERS):
            return value.values() if isinstance(value, DICTS) else value
        if isinstance(value, functools.partial):
            return (value.func, value.args, value.keywords)
        return vars(value).values() if hasattr(value, "__dict__") else ()

    def _function(self, function: types.FunctionType) -> None:
        if is_of_library(function.__module__):
            return
        cells = tuple([types.CellType() for _ in function.__closure__ or ()])
        scope = self._scope(function)
        made = types.FunctionType(function.__code__, scope, function.__name__, None, cells or None)
        self._note(function, made)
        made.__defaults__, made.__kwdefaults__ = self.of(function.__defaults__), self.of(function.__kwdefaults__)
        functools.update_wrapper(made, function)
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            contents = contents_of(original)
            if contents is not MISSING:
                cell.cell_contents = self.of(contents)
        for name in sorted(names_of_globals(function.__code__)):
            if name in function.__globals__:
                scope[name] = self.of(function.__globals__[name])

    def _scope(self, function: types.FunctionType) -> dict[str, Any]:
        own = function.__globals__
        if id(own) not in self._globals:
            self._globals[id(own)] = dict(own)
            self._originals.append(own)
        return self._globals[id(own)]

    def pairs(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield the objects that functions keep, with what to call them, as they are now, and their copies."""
        for original in list(self._originals):
            made: Any = self._memo.get(id(original))
            if type(original) is types.FunctionType and made is not original:
                for name, *cells in zip(
                    original.__code__.co_freevars, original.__closure__ or (), made.__closure__ or (), strict=True
                ):
                    yield f"the variable {name}", *map(contents_of, cells)
                for name in sorted(names_of_globals(original.__code__)):
                    if name in made.__globals__:
                        yield f"the global {name}", original.__globals__.get(name, MISSING), made.__globals__[name]


def _is_uncopied(value: object) -> bool:
    """Whether Python's own copies cannot be made of an object, though there may be copies of it."""
    return isinstance(value, torch.Generator) or isinstance(value, torch.Tensor) and not value.is_leaf


def _can_be_copied(value: object) -> bool:
    try:
        copy.deepcopy(value)
    except Exception:  # a lock, a file, or whatever else
        return False
    return True


def _copy_of_uncopied(value: Any) -> Any:
    if isinstance(value, torch.Generator):
        return value.clone_state()
    return value.detach().clone().requires_grad_(value.requires_grad).view_as(value)  # no leaf either


def names_of_globals(code: types.CodeType) -> frozenset[str]:
    """Return the names of the globals that code reads or writes, that of the functions within it included."""
    names = names_of(code)
    return names.globals | names.written_globals


def is_copied_whole(value: object) -> bool:
    """Whether the copy of an object has all of its attributes, and no others."""
    cls: Any = type(value)
    own = cls.__getstate__ is object.__getstate__ and cls.__reduce_ex__ is object.__reduce_ex__
    return own and not hasattr(cls, "__deepcopy__") and isinstance(getattr(value, "__dict__", None), dict)


def copied(function: Callable[..., Any], inputs: object) -> tuple[Copies, Any, Any]:
    """Return copies of a function and of its arguments, and what keeps both together."""
    copies = Copies()
    return copies, copies.of(function), copies.of(inputs)
