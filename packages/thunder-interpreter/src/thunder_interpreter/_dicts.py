"""Methods of dicts that read and write items, written out so that each of these is reported on its own."""

import operator
from types import NoneType
from typing import Any

from thunder_interpreter._bridges import as_mapping
from thunder_interpreter._calls import call_native
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._iteration import elements
from thunder_interpreter._machine import Machine, Outcome
from thunder_interpreter._natives import KEYS, SPECIAL_METHODS, replaces
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start

keep_builtins(globals())

PLAIN = frozenset({str, int, bool, float, complex, bytes, NoneType})
"""Types of keys whose hashes run no code, so that nobody sees how often they are asked for."""


def is_reported(machine: Machine, held: Any) -> bool:
    """Whether what happens to the items of a dict is reported, and may be done one by one."""
    if type(held) is not dict or machine.load_item is None and machine.store_item is None:
        return False
    return all([type(key) in PLAIN for key in held])


def call_unreported(frame: AnyFrame, method: Any, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Call a method of dicts natively: bound, as code in C would."""
    if method is dict.update and len(args) == 2:
        args = [args[0], as_mapping(frame.machine, args[1])]
    if args and isinstance(args[0], dict):
        method, args = method.__get__(args[0]), args[1:]
    return call_native(frame, method, args, kwargs)


@replaces(dict.setdefault, runs=KEYS)
def special_setdefault(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``dict.setdefault``."""
    if kwargs or not 2 <= len(args) <= 3 or type(args[1]) not in PLAIN or not is_reported(frame.machine, args[0]):
        return call_unreported(frame, dict.setdefault, args, kwargs)
    return start(frame, setting_default(*args))


def setting_default(held: Any, key: object, default: object = None) -> Protocol:
    """Return an item, which is set first if there is none."""
    if (yield Call(operator.contains, held, key)):
        return (yield Call(operator.getitem, held, key))
    yield Call(operator.setitem, held, key, default)
    return default


@replaces(dict.update)
def special_update(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``dict.update``."""
    if not 1 <= len(args) <= 2 or not all([is_reported(frame.machine, held) for held in args]):
        return call_unreported(frame, dict.update, args, kwargs)
    return start(frame, updating(frame, args[0], [*args[1:], kwargs]))


@replaces(dict, runs=SPECIAL_METHODS)
def special_dict(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``dict``, and what it makes of a dict."""
    if len(args) != 1 or not is_reported(frame.machine, args[0]):
        return call_native(frame, dict, [as_mapping(frame.machine, other) for other in args], kwargs)
    return start(frame, updated(frame, {}, [*args, kwargs]))


@replaces(dict.copy)
def special_copy(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``dict.copy``."""
    if kwargs or len(args) != 1 or not is_reported(frame.machine, args[0]):
        return call_unreported(frame, dict.copy, args, kwargs)
    return start(frame, updated(frame, {}, args))


def updated(frame: AnyFrame, held: dict[Any, Any], others: list[dict[Any, Any]]) -> Protocol:
    """Set the items of other dicts; return the dict."""
    for other in others:
        for key in (yield from elements(frame, other)):
            yield Call(operator.setitem, held, key, (yield Call(operator.getitem, other, key)))
    return held


def updating(frame: AnyFrame, held: dict[Any, Any], others: list[dict[Any, Any]]) -> Protocol:
    """Set the items of other dicts."""
    yield from updated(frame, held, others)
