"""Dataclasses that are defined in a fifth of the time: programs are made of them, and each import defines many.

The standard library writes, compiles and runs a function's text for each method of each class. Here one text is
compiled for each class, that of its constructor; what the other methods do is the same for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: Any = None, /, **options: bool) -> Any:
        """As :func:`dataclasses.dataclass`, which it is for what is more than its own fields, and to type checkers.

        Example:
            >>> from thunder_ir import dataclass
            >>> @dataclass(frozen=True, slots=True)
            ... class Point:
            ...     x: int
            ...     y: int = 0
            >>> Point(1)
            Point(x=1, y=0)
            >>> Point(1).x = 2
            Traceback (most recent call last):
            dataclasses.FrozenInstanceError: cannot assign to field 'x'
        """
        if cls is None:
            return partial(dataclass, **options)
        return _defined(cls, **options) if _is_plain(cls, options) else dataclasses.dataclass(cls, **options)


_NOT_GIVEN = type("_NotGiven", (), {"__repr__": lambda self: "<factory>"})()


def _is_plain(cls: Any, options: dict[str, bool]) -> bool:
    """Whether a class has no fields but its own, and does nothing of what is written here itself."""
    own = cls.__dict__
    written = {"__post_init__", "__setattr__", "__delattr__", "__init__", "__slots__"}
    by_keyword = any([isinstance(value, dataclasses.Field) and value.kw_only is True for value in own.values()])
    plain = cls.__bases__ == (object,) and written.isdisjoint(own) and not by_keyword
    return plain and options.keys() <= {"frozen", "slots", "eq"}


def _defined(cls: Any, frozen: bool = False, slots: bool = False, eq: bool = True) -> Any:
    own = cls.__dict__
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # the standard library writes the signature
    cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
    parameters = cls.__dataclass_params__
    parameters.init, parameters.repr, parameters.eq, parameters.frozen = True, True, eq, frozen
    fields = dataclasses.fields(cls)
    cls.__init__ = _constructor(cls, fields, frozen, slots)
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if eq and "__eq__" not in own:
        cls.__eq__ = _equality(_values([f.name for f in fields if f.compare]))
    if eq and own.get("__hash__") is None:
        hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        cls.__hash__ = _hashing(_values(hashed)) if frozen else None
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusing(cls, frozenset([f.name for f in fields]))
        if slots and "__getstate__" not in own:
            cls.__getstate__, cls.__setstate__ = _state, _restore
    return cls


def _constructor(cls: Any, fields: tuple[dataclasses.Field[Any], ...], frozen: bool, slots: bool) -> Any:
    """Compile the constructor; what is frozen is written to past its ``__setattr__``, in a slot by what is its own."""
    scope: dict[str, Any] = {"__name__": cls.__module__, "NOT_GIVEN": _NOT_GIVEN, "put": object.__setattr__}
    parameters, lines = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        if field.default_factory is not dataclasses.MISSING:
            scope[f"make_{name}"], scope[f"default_{name}"] = field.default_factory, _NOT_GIVEN
            value = f"make_{name}() if {name} is NOT_GIVEN else {name}" if field.init else f"make_{name}()"
        elif field.default is not dataclasses.MISSING:
            scope[f"default_{name}"] = field.default
            value = name if field.init else f"default_{name}"
        elif not field.init:
            continue
        if field.init:
            parameters.append(f"{name}=default_{name}" if f"default_{name}" in scope else name)
        if frozen and slots:
            scope[f"put_{name}"] = cls.__dict__[name].__set__
        write = f"put_{name}(self, {value})" if slots else f"put(self, {name!r}, {value})"
        lines.append(write if frozen else f"self.{name} = {value}")
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n    {body}", scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the tuple of some attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _equality(values: Callable[[Any], Any]) -> Callable[[Any, object], Any]:
    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashing(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _refusing(cls: Any, names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _state(self: Any) -> list[Any]:
    """What is pickled of an instance that is frozen, with slots."""
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


__all__ = ["dataclass"]
