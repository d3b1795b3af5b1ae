"""The ``match`` statement."""

from typing import Any

from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NOTHING
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._registry import opcode

keep_builtins(globals())


MAPPING_FLAG, SEQUENCE_FLAG, MATCH_SELF_FLAG = 1 << 6, 1 << 5, 1 << 22


@opcode("GET_LEN")
def get_len(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value -> value, len(value)``."""
    return frame.machine.call(frame, len, [stack[-1]], {})


@opcode("MATCH_MAPPING")
def match_mapping(frame: Frame, stack: list[Any], _: object) -> None:
    """``value -> value, is it a mapping``."""
    stack.append(bool(type(stack[-1]).__flags__ & MAPPING_FLAG))


@opcode("MATCH_SEQUENCE")
def match_sequence(frame: Frame, stack: list[Any], _: object) -> None:
    """``value -> value, is it a sequence``."""
    stack.append(bool(type(stack[-1]).__flags__ & SEQUENCE_FLAG))


@opcode("MATCH_KEYS")
def match_keys(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``mapping, keys -> mapping, keys, values or None``."""
    return start(frame, matching_keys(stack[-2], stack[-1]))


def matching_keys(mapping: object, keys: tuple[Any, ...]) -> Protocol:
    """Look the keys up with ``mapping.get``."""
    seen = set()
    values = []
    missing = object()
    get = (yield Call(getattr, mapping, "get")) if keys else None
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
        value = yield Call(get, key, missing)
        if value is missing:
            return None
        values.append(value)
    return tuple(values)


@opcode("MATCH_CLASS")
def match_class(frame: Frame, stack: list[Any], count: int) -> Outcome:
    """``subject, class, names -> attributes or None``, the first ``count`` by position."""
    names = stack.pop()
    cls = stack.pop()
    subject = stack.pop()
    if not isinstance(cls, type):
        raise TypeError("called match pattern must be a class")
    return start(frame, matching_class(subject, cls, count, names))


def matching_class(subject: object, cls: type, count: int, names: tuple[str, ...]) -> Protocol:
    """The attributes that a class pattern binds."""
    if not (yield Call(isinstance, subject, cls)):
        return None
    values = []
    seen: set[str] = set()
    if count:
        try:
            positions = yield Call(getattr, cls, "__match_args__")
        except AttributeError:
            positions = ()
            match_self = bool(cls.__flags__ & MATCH_SELF_FLAG)
        else:
            match_self = False
            if type(positions) is not tuple:
                raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {type(positions).__name__})")
        allowed = 1 if match_self else len(positions)
        if allowed < count:
            plural = "" if allowed == 1 else "s"
            raise TypeError(f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)")
        if match_self:
            values.append(subject)
            positions = ()
        for name in positions[:count]:
            if not isinstance(name, str):
                raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
            found = yield from matched_attribute(subject, cls, name, seen)
            if found is NOTHING:
                return None
            values.append(found)
    for name in names:
        found = yield from matched_attribute(subject, cls, name, seen)
        if found is NOTHING:
            return None
        values.append(found)
    return tuple(values)


def matched_attribute(subject: object, cls: type, name: str, seen: set[str]) -> Protocol:
    """One attribute of a class pattern, or ``NOTHING``."""
    if name in seen:
        raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}")
    seen.add(name)
    try:
        return (yield Call(getattr, subject, name))
    except AttributeError:
        return NOTHING
