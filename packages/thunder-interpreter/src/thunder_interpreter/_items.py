"""Subscription and containment of objects whose classes define them in Python."""

import operator
from collections import OrderedDict
from typing import Any

from thunder_interpreter._calls import reported
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._iteration import elements, needs_interpreting
from thunder_interpreter._machine import Machine, Outcome
from thunder_interpreter._null import NOTHING
from thunder_interpreter._observing import run_natively, with_keys
from thunder_interpreter._operators import native_binary
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start, steer
from thunder_interpreter._types import python_function, raw_attribute, reads_as_tuple

keep_builtins(globals())


def contains(frame: AnyFrame, item: object, container: object, invert: bool) -> Outcome:
    """Push ``item in container`` (or ``not in``)."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, (dict, set, frozenset)):
        item = machine.key(container, item)
    method = raw_attribute(type(container), "__contains__")
    if machine.special_methods is not None:
        machine.special_methods(operator.contains, [container, item])
    if python_function(machine, method):
        return start(frame, containing(machine, Call(method, container, item), invert))
    if method is None and "__contains__" not in dir(type(container)):
        iterate = raw_attribute(type(container), "__iter__")
        if python_function(machine, iterate):
            return start(frame, searching(machine, container, item, invert))
    result = reported(machine, operator.contains, [container, item], {})
    frame.stack.append(not result if invert else result)
    return None


def containing(machine: Machine, request: Call, invert: bool) -> Protocol:
    """Call ``__contains__`` and take the truth of its answer."""
    answer = yield Call(bool, (yield request))
    return not answer if invert else answer


def searching(machine: Machine, container: object, item: object, invert: bool) -> Protocol:
    """Look for ``item`` by iterating over ``container``."""
    iterator = yield Call(iter, container)
    while True:
        try:
            value = yield Call(next, iterator)
        except StopIteration:
            return invert
        if value is item or (yield Call(bool, (yield Call(operator.eq, value, item)))):
            return not invert


def subscript(frame: AnyFrame, container: object, key: object) -> Outcome:
    """Push ``container[key]`` where a class may define it in Python."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    cls = type(container)
    method = raw_attribute(cls, "__getitem__")
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(operator.getitem, [container, key])
        return machine.call(frame, method, [container, key], {})
    if method is None and isinstance(container, type):
        hook = raw_attribute(container, "__class_getitem__")
        inner = getattr(hook, "__func__", None)
        if type(hook) is classmethod and python_function(machine, inner):
            return machine.call(frame, inner, [container, key], {})
    if isinstance(container, dict) and cls is not dict:
        missing = raw_attribute(cls, "__missing__")
        if python_function(machine, missing) and method is dict.__dict__["__getitem__"] and key not in container:
            if machine.special_methods is not None:
                machine.special_methods(operator.getitem, [container, key])
            return machine.call(frame, missing, [container, key], {})
    return native_subscript(frame, container, key)


PLACES = frozenset({int, slice})
CONTAINERS = frozenset({list, tuple, dict, str, bytes, bytearray, range})


def native_subscript(frame: AnyFrame, container: object, key: object) -> Outcome:
    """Push ``container[key]``, and report it as an item of a builtin container or as an opaque call."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    cls = type(container)
    if cls in CONTAINERS or reads_as_tuple(cls):
        if cls not in CONTAINERS and machine.special_methods is not None:
            machine.special_methods(operator.getitem, [container, key])
        if machine.item is not None and (cls is list or cls is tuple) and type(key) not in PLACES:
            value = machine.item(container, key)
            if value is not NotImplemented:
                frame.stack.append(value)
                return None
        try:
            value = with_keys(machine, operator.getitem, [container, key], [key])
        except LookupError:
            if machine.missing_item is not None:
                machine.missing_item(container, key)
            raise
        if machine.load_item is not None:
            value = machine.load_item(container, key, value)
        frame.stack.append(value)
        return None
    if machine.item is not None and type(key) not in PLACES:
        value = machine.item(container, key)
        if value is not NotImplemented:
            frame.stack.append(value)
            return None
    return native_binary(frame, operator.getitem, container, key)


def store_item(frame: AnyFrame, container: object, key: object, value: object) -> Outcome:
    """Set an item; a call that does it leaves its result on the stack, for the caller to drop."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    method = raw_attribute(type(container), "__setitem__")
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(operator.setitem, [container, key, value])
        return machine.call(frame, method, [container, key, value], {})
    if type(container) is list and type(key) is slice and needs_interpreting(machine, value):
        return start(frame, storing_elements(frame, container, key, value))
    if type(container) in MUTABLE or method in KEPT:
        if machine.store_item is not None:
            machine.store_item(container, key, value)
        with_keys(machine, operator.setitem, [container, key, value], [key])
    else:
        given = [container, key, value]
        if machine.opaque_call is not None:
            machine.opaque_call(operator.setitem, given, {})
        run_natively(machine, operator.setitem, given, {})
    frame.stack.append(None)
    return None


def storing_elements(frame: AnyFrame, container: list[Any], key: slice, value: object) -> Protocol:
    """Put the elements of a user-defined iterable into a part of a list."""
    found = yield from elements(frame, value)
    return (yield Call(operator.setitem, container, key, found))


MUTABLE = frozenset({list, dict, bytearray})
KEPT = (dict.__dict__["__setitem__"], OrderedDict.__dict__["__setitem__"])
"""What sets items of dicts of other classes, such as ``defaultdict`` and ``Counter``."""


def delete_item(frame: AnyFrame, container: object, key: object) -> Outcome:
    """Delete an item; as ``store_item`` otherwise."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    method = raw_attribute(type(container), "__delitem__")
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(operator.delitem, [container, key])
        return machine.call(frame, method, [container, key], {})
    if type(container) in MUTABLE:
        if machine.delete_item is not None:
            machine.delete_item(container, key)
    elif machine.opaque_call is not None:
        machine.opaque_call(operator.delitem, [container, key], {})
    with_keys(machine, operator.delitem, [container, key], [key])
    frame.stack.append(None)
    return None


def store_item_then_drop(frame: AnyFrame, container: object, key: object, value: object) -> Outcome:
    """Set an item, and leave nothing on the stack."""
    return steer(frame, storing(frame, container, key, value))


def storing(frame: AnyFrame, container: object, key: object, value: object) -> Protocol:
    """Set an item for its effect."""
    yield Call(operator.setitem, container, key, value)
    return NOTHING
