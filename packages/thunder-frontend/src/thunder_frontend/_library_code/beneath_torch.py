"""What functions of PyTorch, written in Python, call by name: ``F.layer_norm`` the ``layer_norm`` of ``torch``.

Such a function is called as it is, and recorded as a whole. That stands for what it does as long as user code does
not replace what it calls, which is guarded; where it did, the function is interpreted like any other.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

import torch

from thunder_guards.kinds import is_of_library
from thunder_guards.own_code import name_in, package_of
from thunder_interpreter import paths_named

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
PROTOCOL = "torch_function"
"""Part of the names of what asks for overrides, which acquisition itself answers."""


def called_by_name(function: types.FunctionType) -> Iterator[tuple[Any, str, Any]]:
    """Give the functions of PyTorch that one of its functions calls by name, itself or by others beside it.

    Returns:
        for each: the globals or the module that have it, its name, and what is there now.
    """
    return (found for found in looked_up(function) if _is_called(*found))


def _is_called(place: object, name: str, value: object) -> bool:
    if PROTOCOL in name or not callable(value) or isinstance(value, type):
        return False
    return package_of(name_in(place if place.__class__ is dict else vars(place))) == "torch"


def looked_up(function: types.FunctionType) -> Iterator[tuple[Any, str, Any]]:
    """Give all that a function and others beside it ask for by name: the globals or the module, the name, the value."""
    scope, seen, ahead = function.__globals__, set(), [function]
    while ahead:
        here = ahead.pop()
        if here.__code__ in seen:
            continue
        seen.add(here.__code__)
        for way in paths_named(here.__code__):
            for place, name, value in _along(scope, way):
                yield place, name, value
                if type(value) is types.FunctionType and value.__globals__ is scope and _is_called(place, name, value):
                    ahead.append(value)


def _along(scope: dict[str, Any], way: tuple[str, ...]) -> Iterator[tuple[Any, str, Any]]:
    place: Any = scope
    for name in way:
        value = scope.get(name) if place is scope else getattr(place, name, None)
        yield place, name, value
        if not isinstance(value, types.ModuleType):
            return
        place = value


class _Found:
    """All that a function of PyTorch looks up, found to be PyTorch's own; whether it still is, is soon asked.

    Args:
        function: of PyTorch's.
    """

    __slots__ = ("_codes", "_keys", "_tables", "_values", "scope")

    def __init__(self, function: types.FunctionType) -> None:
        found = list(looked_up(function))
        self.scope = function.__globals__
        self._tables = [place if place.__class__ is dict else place.__dict__ for place, _, _ in found]
        self._keys = [name for _, name, _ in found]
        self._values = [value for _, _, value in found]
        functions = [v for v in self._values if type(v) is types.FunctionType]
        self._codes = [(f, f.__code__) for f in functions if f.__globals__ is self.scope]

    def holds(self) -> bool:
        """Whether each place has what it had, and each function the code that it had."""
        now = map(dict.get, self._tables, self._keys)
        return all(map(is_, now, self._values)) and all([f.__code__ is code for f, code in self._codes])


MOST = 4096
"""Functions of which it is known what they look up."""

_KNOWN: dict[types.CodeType, _Found] = {}
"""What functions of PyTorch look up, by their code, for all programs: each asks whether that still holds."""


class Beneath:
    """Tells which functions of PyTorch call something that user code replaced, while one program is acquired.

    Args:
        version: returns another number than before if the program may have written anything since.
    """

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._asked: dict[_Found, int] = {}

    def was_replaced(self, function: types.FunctionType) -> bool:
        """Whether a function of PyTorch calls something by name that is not PyTorch's own of that name any more."""
        version, found = self._version(), _KNOWN.get(function.__code__)
        if found is None or found.scope is not function.__globals__ or not self._holds(found, version):
            if any([not _is_own(value, name) for _, name, value in called_by_name(function)]):
                return True
            if len(_KNOWN) >= MOST:
                _KNOWN.clear()
            found = _KNOWN[function.__code__] = _Found(function)
        self._asked[found] = version
        return False

    def _holds(self, found: _Found, version: int) -> bool:
        return self._asked.get(found) == version or found.holds()


def is_replaced(function: object) -> bool:
    """Whether user code put something else where a function or method of PyTorch's, written in C, is found.

    Called with tensors that override functions, it hands over what is found there, and not itself.
    """
    if type(function) is types.BuiltinFunctionType:
        place: Any = function.__self__
        if type(place) is not types.ModuleType or not place.__name__.startswith("torch._C."):
            return False
    elif type(function) is types.MethodDescriptorType and function.__objclass__ is torch._C.TensorBase:
        place = torch.Tensor
    else:
        return False
    found = getattr(place, function.__name__, function)
    return found is not function and not _is_own(found, function.__name__)


def _is_own(value: object, name: str) -> bool:
    if not isinstance(value, FUNCTIONS):
        return is_of_library(type(value).__module__)
    if type(value) is types.FunctionType and not is_of_library(name_in(value.__globals__)):
        return False
    return name.replace("_", "") in value.__name__.replace("_", "")
