"""Attributes and items."""

from typing import Any

from thunder_interpreter import _attributes, _items
from thunder_interpreter._attributes import DELETE, STORE
from thunder_interpreter._calls import operation
from thunder_interpreter._decode import name
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, steer
from thunder_interpreter._registry import opcode

keep_builtins(globals())


def dropping(request: Call) -> Protocol:
    """Do a call for its effect."""
    yield request
    return NOTHING


@opcode("LOAD_ATTR", until=(3, 12), decode=name)
def load_attr(frame: Frame, stack: list[Any], name: str) -> Outcome:
    """``obj -> obj.name``."""
    return _attributes.load(frame, stack.pop(), name)


@opcode("LOAD_METHOD", until=(3, 12), decode=name)
def load_method(frame: Frame, stack: list[Any], name: str) -> Outcome:
    """``obj -> NULL, obj.name``; calling a bound method unpacks it."""
    obj = stack.pop()
    stack.append(NULL)
    return _attributes.load(frame, obj, name)


@opcode("STORE_ATTR", decode=name)
def store_attr(frame: Frame, stack: list[Any], name: str) -> Outcome:
    """``value, obj ->``."""
    obj = stack.pop()
    value = stack.pop()
    machine = frame.machine
    known = machine.types.get(type(obj))
    if known is not None and name in known.native_set and machine.store_attribute is None:
        setattr(obj, name, value)
        return None
    return steer(frame, dropping(Call(STORE, obj, name, value)))


@opcode("DELETE_ATTR", decode=name)
def delete_attr(frame: Frame, stack: list[Any], name: str) -> Outcome:
    """``obj ->``."""
    return steer(frame, dropping(Call(DELETE, stack.pop(), name)))


@opcode("BINARY_SUBSCR")
def binary_subscr(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``container, key -> container[key]``."""
    key = stack.pop()
    container = stack.pop()
    if type(container) in frame.machine.plain:
        return _items.native_subscript(frame, container, key)
    return _items.subscript(frame, container, key)


@opcode("STORE_SUBSCR")
def store_subscr(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value, container, key ->``."""
    key = stack.pop()
    container = stack.pop()
    value = stack.pop()
    return steer(frame, dropping(Call(STORE_ITEM, container, key, value)))


@opcode("DELETE_SUBSCR")
def delete_subscr(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``container, key ->``."""
    key = stack.pop()
    return steer(frame, dropping(Call(DELETE_ITEM, stack.pop(), key)))


def STORE_ITEM(container: Any, key: Any, value: Any) -> None:  # noqa: N802
    """Stands for the storing of an item, when a protocol asks for it."""
    container[key] = value


def DELETE_ITEM(container: Any, key: Any) -> None:  # noqa: N802
    """Stands for the deleting of an item, when a protocol asks for it."""
    del container[key]


operation(STORE_ITEM, 3)(_items.store_item)
operation(DELETE_ITEM, 2)(_items.delete_item)
