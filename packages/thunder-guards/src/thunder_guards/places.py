"""External places: one class for each kind says how it is read, put back and written by generated code."""

from __future__ import annotations

import keyword
import types
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from types import CellType
from typing import Any, Generic, TypeVar

import torch

from thunder_guards.buffers import copy_of, write_back
from thunder_guards.kinds import held_by_class, item_of
from thunder_guards.memory import whole_storage
from thunder_ir import Context, literal

Owner = TypeVar("Owner", contravariant=True)
Key = TypeVar("Key", contravariant=True)
Before = TypeVar("Before", contravariant=True)

MISSING = object()
"""What is at a place where nothing is."""


class Step(ABC, Generic[Owner, Key]):
    """A place to which a way to a value leads, from the object that has it."""

    @abstractmethod
    def read(self, owner: Owner, key: Key) -> Any:
        """Return what is there now. Raises whatever reading it raises."""

    @abstractmethod
    def expression(self, owner: str, key: Key, context: Context) -> str:
        """Return Python source that reads it, given that of the object."""

    @abstractmethod
    def shown(self, owner: str, key: Key) -> str:
        """Return the place as text for messages, given that of the object."""


class Written(ABC, Generic[Owner, Key, Before]):
    """A place to which a program may write."""

    is_whole = False
    """Whether it is what an object holds, rather than one part of an object that can be told by a key."""

    @abstractmethod
    def now(self, owner: Owner, key: Key) -> Any:
        """Return what is there; :data:`MISSING` if nothing is."""

    @abstractmethod
    def restore(self, owner: Owner, key: Key, before: Before) -> None:
        """Put back what was there."""

    def contents(self, owner: Owner, before: Before) -> Any:
        """Return what a program leaves in an object, of which ``before`` was kept: a plain object."""
        raise TypeError(f"{type(self).__name__} is a part of an object")

    @abstractmethod
    def assignment(self, owner: str, key: Key, value: str, context: Context) -> str:
        """Return a line of Python source that writes a value there."""

    def remove(self, owner: Owner, key: Key) -> None:
        """Delete what is there."""
        raise TypeError(f"{type(self).__name__} cannot be deleted")


class Attribute(Step[Any, str], Written[Any, str, object]):
    """An attribute of an object."""

    def read(self, owner: Any, key: str) -> Any:
        return getattr(owner, key)

    def expression(self, owner: str, key: str, context: Context) -> str:
        plain = key.isidentifier() and not keyword.iskeyword(key)
        return f"{owner}.{key}" if plain else f"getattr({owner}, {key!r})"

    def shown(self, owner: str, key: object) -> str:
        return f"{owner}.{key}"

    def now(self, owner: Any, key: str) -> Any:
        return kept_as(owner, key)

    def restore(self, owner: Any, key: str, before: object) -> None:
        if before is not MISSING:
            set_attribute(owner, key, before)
        elif kept_as(owner, key) is not MISSING:
            self.remove(owner, key)

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{context.object(set_attribute, 'set_attribute')}({owner}, {key!r}, {value})"

    def remove(self, owner: Any, key: str) -> None:
        _plain_setters(owner).__delattr__(owner, key)


class Item(Step[Any, Any], Written[Any, Any, object]):
    """An item of a container."""

    def read(self, owner: Any, key: Any) -> Any:
        return owner[key]

    def expression(self, owner: str, key: object, context: Context) -> str:
        return f"{owner}[{_key(key, context)}]"

    def shown(self, owner: str, key: object) -> str:
        return f"{owner}[{shown_key(key)}]"

    def now(self, owner: object, key: object) -> Any:
        return dict.get(owner, key, MISSING) if isinstance(owner, dict) else item_of(owner, key)

    def restore(self, owner: Any, key: Any, before: object) -> None:
        kind = builtin_kind(owner) or type(owner)
        if before is not MISSING:
            kind.__setitem__(owner, key, before)
        elif key in owner:
            kind.__delitem__(owner, key)

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{owner}[{literal(key, context)}] = {value}"

    def remove(self, owner: Any, key: Any) -> None:
        if owner.get(key, MISSING) is not MISSING:
            del owner[key]


class KeptItem(Item):
    """An item of a container whose class has a ``__getitem__`` of its own, which is not asked."""

    def read(self, owner: object, key: object) -> Any:
        return item_of(owner, key)

    def expression(self, owner: str, key: object, context: Context) -> str:
        return f"{context.object(item_of, 'item_of')}({owner}, {_key(key, context)})"


class Value(Step[Mapping[Any, Any], int]):
    """A value of a dict by its place in the order, whatever its key is."""

    def read(self, owner: Mapping[Any, Any], key: int) -> Any:
        return nth_value(owner, key)

    def expression(self, owner: str, key: int, context: Context) -> str:
        return f"{context.object(nth_value, 'nth_value')}({owner}, {key})"

    def shown(self, owner: str, key: int) -> str:
        return f"list({owner}.values())[{key}]"


class Cell(Step[CellType, object], Written[CellType, object, object]):
    """What a cell of a closure holds."""

    def read(self, owner: CellType, key: object) -> Any:
        return owner.cell_contents

    def expression(self, owner: str, key: object, context: Context) -> str:
        return f"{owner}.cell_contents"

    def shown(self, owner: str, key: object) -> str:
        return owner

    def now(self, owner: CellType, key: object) -> Any:
        return contents_of(owner)

    def restore(self, owner: CellType, key: object, before: object) -> None:
        if before is MISSING:
            del owner.cell_contents
        else:
            owner.cell_contents = before

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{owner}.cell_contents = {value}"

    def remove(self, owner: CellType, key: object) -> None:
        del owner.cell_contents


class WholeStorage(Step[torch.Tensor, object]):
    """All of the memory that a tensor lies in, as a tensor."""

    def read(self, owner: torch.Tensor, key: object) -> Any:
        return whole_storage(owner)

    def expression(self, owner: str, key: object, context: Context) -> str:
        return f"{context.object(whole_storage, 'whole_storage')}({owner})"

    def shown(self, owner: str, key: object) -> str:
        return owner


class ContextVariable(Written[ContextVar[Any], object, object]):
    """The value of a context variable."""

    def now(self, owner: ContextVar[Any], key: object) -> Any:
        return owner.get(MISSING)

    def restore(self, owner: object, key: object, before: object) -> None:
        """Each acquisition has a context of its own."""

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{owner}.set({value})"


class Whole(Written[Owner, object, Before]):
    """What an object holds as a whole."""

    is_whole = True

    def now(self, owner: Owner, key: object) -> Any:
        return owner


class ListEnd(Whole[list[Any], int]):
    """The end of a list that was only appended to; what was before is its length."""

    def restore(self, owner: list[Any], key: object, before: int) -> None:
        del owner[before:]

    def contents(self, owner: list[Any], before: int) -> Any:
        return owner[before:]

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{owner}.extend({value})"


class Buffer(Whole[object, object]):
    """The contents of a buffer."""

    def restore(self, owner: object, key: object, before: object) -> None:
        write_back(owner, before)

    def contents(self, owner: object, before: object) -> Any:
        return copy_of(owner)

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{context.object(write_back, 'write_back')}({owner}, {value})"


class Container(Whole[Iterable[Any], object]):
    """The contents of a list, a dict, a set or a deque."""

    def restore(self, owner: Iterable[Any], key: object, before: object) -> None:
        refill(owner, before)

    def contents(self, owner: Iterable[Any], before: object) -> Any:
        return dict(owner) if isinstance(owner, dict) else list(owner)

    def assignment(self, owner: str, key: object, value: str, context: Context) -> str:
        return f"{context.object(refill, 'refill')}({owner}, {value})"


ATTRIBUTE, ITEM, CELL, BUFFER = Attribute(), Item(), Cell(), Buffer()

STEPS: dict[str, Step[Any, Any]] = {
    "attribute": ATTRIBUTE, "item": ITEM, "kept item": KeptItem(), "value": Value(), "cell": CELL,
    "whole storage": WholeStorage(),
}  # fmt: skip
"""The kinds of places that a source leads to, but for what is called."""

WRITTEN: dict[str, Written[Any, Any, Any]] = {
    "attribute": ATTRIBUTE, "item": ITEM, "cell": CELL, "context": ContextVariable(), "end": ListEnd(),
    "buffer": BUFFER, "container": Container(),
}  # fmt: skip
"""The kinds of places that a program may write to."""


def shown_key(key: object) -> str:
    """Return a key as text that tells it from others; a tensor by what it is and where, not by its values."""
    return f"<tensor at {id(key):#x}>" if isinstance(key, torch.Tensor) else repr(key)


def _key(key: object, context: Context) -> str:
    return context.object(key, "tensor") if isinstance(key, torch.Tensor) else literal(key, context)


def nth_value(container: Mapping[Any, Any], index: int) -> Any:
    """Return a value of a dict by its place."""
    return list(container.values())[index]


def contents_of(cell: CellType) -> Any:
    """Return what a cell of a closure holds; :data:`MISSING` if nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def kept_as(owner: Any, name: str) -> Any:
    """Return what an object itself has as an attribute, or what its class sets there; not what the class finds."""
    own = getattr(owner, "__dict__", None)
    set_by_class = hasattr(type(held_by_class(type(owner), name)), "__set__")
    if isinstance(own, (dict, types.MappingProxyType)) and not set_by_class:
        return own.get(name, MISSING)
    return getattr(owner, name, MISSING)


def is_slot(target: object, name: Any) -> bool:
    """Whether an attribute of an object is kept in a slot, whatever the object's ``__dict__`` has by that name."""
    return isinstance(held_by_class(type(target), name), types.MemberDescriptorType)


def is_empty(cell: CellType) -> bool:
    """Return whether a cell of a closure holds nothing."""
    return contents_of(cell) is MISSING


def _plain_setters(target: object) -> Any:
    """Return the class whose setters change an attribute of an object without running what the user's class defines."""
    if isinstance(target, type):
        return type
    return object if isinstance(type(target).__setattr__, types.FunctionType) else type(target)


def set_attribute(target: Any, name: str, value: object) -> None:
    """Set an attribute of an object. What its class does where one is set was done when the program was acquired."""
    _plain_setters(target).__setattr__(target, name, value)


def refill(container: Any, contents: Any) -> None:
    """Give a container other contents, keeping the container. Methods that its class replaces are not called."""
    kind = builtin_kind(container)
    if kind is OrderedDict or kind is dict:
        kind.clear(container)
        for key, value in contents.items():
            kind.__setitem__(container, key, value)
    elif kind is set:
        set.clear(container)
        set.update(container, contents)
    elif kind is list:
        list.__setitem__(container, slice(None), contents)
    else:
        deque.clear(container)
        deque.extend(container, contents)


def builtin_kind(container: object) -> Any:
    """Return the class of Python's own whose methods change a container; ``None`` for what is no such container."""
    return next((kind for kind in (OrderedDict, dict, set, list, deque) if isinstance(container, kind)), None)
