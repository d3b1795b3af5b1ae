"""Objects that a program makes, and returns or keeps: of which parts each of them is built anew by every call."""

from __future__ import annotations

import _io
import contextvars
import copy
import dataclasses
import functools
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import CODE, HEAP_TYPE, is_buffer
from thunder_tracing.tensors.sizes import SymbolicSize
from thunder_tracing.tensors.traced_tensor import TracedTensor

Parts = tuple[Callable[..., Any], tuple[Any, ...]]
BASES = (object, list, tuple, dict, OrderedDict, defaultdict, set, frozenset, types.SimpleNamespace)
"""Classes written in C all of whose state is attributes and items."""


def parts_of(value: object) -> Parts | None:
    """Return what makes an object like ``value``, and of which parts; ``None`` if one object serves all calls.

    Raises:
        AcquisitionError: it cannot be made again.
    """
    cls = value.__class__
    known = PARTS.get(cls)
    if known is not None:
        return known(value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return cls, tuple(value)
    if isinstance(value, tuple) and cls.__module__ == "torch.return_types":
        return cls, (tuple(value),)
    if is_buffer(value) and cls is not memoryview:
        return Like(copy.deepcopy, value, f"copy_of_{cls.__name__}"), ()
    if isinstance(value, CODE):
        return _code(value)
    if hasattr(cls, "__next__") and not cls.__flags__ & HEAP_TYPE and not isinstance(value, _io._IOBase):
        raise AcquisitionError(
            f"the program returns or keeps a {cls.__name__}, which its first call would use up; make a list of it"
        )
    if cls in RUN_ONCE:
        raise AcquisitionError(
            f"the program returns a {cls.__name__}, whose code would run outside of it; make a function of that instead"
        )
    if cls is contextvars.Token:
        raise AcquisitionError(
            "the program returns or keeps the Token of a context variable, which takes back what this call alone set; "
            "reset the variable where it is set"
        )
    if not (hasattr(value, "__dict__") or hasattr(cls, "__slots__")):
        has_state = hasattr(cls, "__setstate__")  # which only code in C knows, such as a generator of NumPy's
        return (Like(copy.deepcopy, value, f"copy_of_{cls.__name__}"), ()) if has_state else None
    return _state(value, cls)


def _state(value: object, cls: type) -> Parts:
    base = next(owner for owner in cls.__mro__ if not owner.__flags__ & HEAP_TYPE)
    if base not in BASES and not issubclass(base, BaseException):
        raise AcquisitionError(
            f"the program returns or keeps a {cls.__name__}, which cannot be made again by every call, since it has "
            "state that only code in C knows; make it outside"
        )
    slots: dict[str, Any] = {}
    for owner in cls.__mro__:
        names = owner.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                slots[name] = getattr(value, name)
    items: Any = None
    if isinstance(value, dict):
        items = dict(value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        items = list(value)
    elif isinstance(value, BaseException):
        items = value.args
    attributes = dict(getattr(value, "__dict__", {}))
    return Like(new_object, cls, f"new_{cls.__name__}"), (attributes, slots, items)


def _code(value: object) -> Parts | None:
    """Parts of a function, a class, or another thing that is code."""
    if isinstance(value, type) and any(isinstance(held, TracedTensor) for held in vars(value).values()):
        raise AcquisitionError(
            f"the program returns or keeps the class {value.__name__}, which it makes and which holds tensors that it "
            "computes; keep these in objects"
        )
    owner = getattr(value, "__self__", None)
    if isinstance(value, BOUND) and owner is not None and not isinstance(owner, types.ModuleType):
        return _bound(value, owner)
    if isinstance(value, types.FunctionType) and (value.__closure__ or value.__defaults__ or value.__kwdefaults__):
        name = f"new_{value.__name__.strip('<>')}"
        parts = (value.__defaults__, value.__kwdefaults__, value.__closure__, value.__dict__)
        return Like(new_function, value, name), parts
    return None


def _bound(method: Bound, owner: object) -> Parts:
    found = overridden(method)
    return (getattr, (owner, method.__name__)) if found is None else (type(found).__get__, (found, owner))


def overridden(method: Bound) -> types.MethodDescriptorType | types.WrapperDescriptorType | None:
    """Return the descriptor of a method in C that a class overrides in Python, so that ``super()`` alone finds it.

    Args:
        method: a method of an object.

    Example:
        >>> from thunder_tracing.made_objects import overridden
        >>> class Log(list):
        ...     def append(self, item):
        ...         super().append(str(item))
        >>> overridden(super(Log, Log()).append), overridden(Log().extend)
        (<method 'append' of 'list' objects>, None)
    """
    owner: Any = method.__self__
    first, *others = [vars(cls)[method.__name__] for cls in type(owner).__mro__ if method.__name__ in vars(cls)]
    if not isinstance(first, types.FunctionType):
        return None
    found = [d for d in others if isinstance(d, DESCRIPTORS) and d.__get__(owner, type(owner)) == method]
    return found[0] if found else None


RUN_ONCE = frozenset({types.CoroutineType, types.AsyncGeneratorType})
Bound = types.BuiltinFunctionType | types.MethodWrapperType
BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Like:
    """Makes something like what the program made.

    Args:
        make: takes that, and the parts.
        pattern: that, or its class.
        __name__: what programs call it.
    """

    make: Callable[..., Any]
    pattern: Any
    __name__: str

    def __call__(self, *parts: Any) -> Any:
        """Return it, made of its parts."""
        return self.make(self.pattern, *parts)


def new_object(cls: type, attributes: dict[str, Any], slots: dict[str, Any], items: Any) -> Any:
    """Return an object of a class with a given state, without running its ``__init__``.

    Args:
        cls: of the object.
        attributes: its ``__dict__``.
        slots: what is in its slots.
        items: what it holds as a container, if it is one; the arguments of an exception.
    """
    if issubclass(cls, (tuple, frozenset)):
        base: Any = tuple if issubclass(cls, tuple) else frozenset
        made: Any = base.__new__(cls, items)
    else:
        made = cls.__new__(cls, *items) if issubclass(cls, BaseException) else cls.__new__(cls)
    if isinstance(made, dict):
        for key, value in items.items():
            (OrderedDict if isinstance(made, OrderedDict) else dict).__setitem__(made, key, value)
    elif isinstance(made, list):
        list.extend(made, items)
    elif isinstance(made, set):
        set.update(made, items)
    if attributes:
        made.__dict__.update(attributes)
    for key, value in slots.items():
        object.__setattr__(made, key, value)
    return made


def new_function(
    like: types.FunctionType, defaults: Any, named: Any, closure: Any, attributes: dict[str, Any]
) -> types.FunctionType:
    """Return a function like one, with what it takes by default, the cells of its closure, and its attributes."""
    made = types.FunctionType(like.__code__, like.__globals__, like.__name__, defaults, closure)
    made.__kwdefaults__ = named
    made.__qualname__, made.__module__, made.__doc__ = like.__qualname__, like.__module__, like.__doc__
    made.__dict__.update(attributes)
    return made


def partial_of(function: Any, args: tuple[Any, ...], named: dict[str, Any], state: dict[str, Any]) -> Any:
    """Return a ``functools.partial``."""
    made = functools.partial(function, *args, **named)
    made.__dict__.update(state)
    return made


def cell_of(*contents: Any) -> Any:
    """Return a cell of a closure."""
    return types.CellType(*contents)


def _cell(value: types.CellType) -> Parts:
    try:
        return cell_of, (value.cell_contents,)
    except ValueError:
        return cell_of, ()


def _reference(value: weakref.ref[Any]) -> Parts | None:
    """Parts of a weak reference; one that is dead serves all calls."""
    referent, callback = value(), value.__callback__
    return None if referent is None else (weakref.ref, (referent,) if callback is None else (referent, callback))


VIEWS = ("keys", "values", "items")


def _view(kind: type, name: str) -> Callable[[Any], Parts]:
    return lambda v: (getattr(kind, name), (kind(v.mapping),))


PARTS: dict[type, Callable[[Any], Parts | None]] = {
    torch.Size: lambda v: (torch.Size, (tuple(v),)),
    SymbolicSize: lambda v: (torch.Size, (tuple(v),)),
    set: lambda v: (set, ([*v],)),
    frozenset: lambda v: (frozenset, ([*v],)),
    deque: lambda v: (deque, ([*v], v.maxlen)),
    OrderedDict: lambda v: (OrderedDict, (dict(v),)),
    defaultdict: lambda v: (defaultdict, (v.default_factory, dict(v))),
    functools.partial: lambda v: (partial_of, (v.func, v.args, v.keywords, v.__dict__)),
    types.MethodType: lambda v: (types.MethodType, (v.__func__, v.__self__)),
    types.CellType: _cell,
    weakref.ref: _reference,
    **{type(getattr(kind(), name)()): _view(kind, name) for kind in (dict, OrderedDict) for name in VIEWS},
}
"""For each class, what makes an object of it, and of which parts."""
