"""Building, extending and unpacking containers; formatting."""

import operator
from typing import Any

from thunder_interpreter import _formatting, _items, _iteration
from thunder_interpreter._calls import call, operation
from thunder_interpreter._decode import Instruction
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NOTHING
from thunder_interpreter._observing import with_keys
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start, steer
from thunder_interpreter._registry import RUNNING, opcode
from thunder_interpreter.opcodes.calls import callable_name

keep_builtins(globals())


def pop_many(stack: list[Any], count: int) -> list[Any]:
    """The ``count`` values on top, lowest first."""
    if not count:
        return []
    values = stack[-count:]
    del stack[-count:]
    return values


@opcode("BUILD_TUPLE")
def build_tuple(frame: Frame, stack: list[Any], count: int) -> None:
    """``*values -> tuple``."""
    stack.append(tuple(pop_many(stack, count)))


@opcode("BUILD_LIST")
def build_list(frame: Frame, stack: list[Any], count: int) -> None:
    """``*values -> list``."""
    stack.append(pop_many(stack, count))


@opcode("BUILD_SET")
def build_set(frame: Frame, stack: list[Any], count: int) -> None:
    """``*values -> set``."""
    values = pop_many(stack, count)
    stack.append(with_keys(frame.machine, set, [values], values))


@opcode("BUILD_MAP")
def build_map(frame: Frame, stack: list[Any], count: int) -> None:
    """``key, value, key, value, ... -> dict``."""
    values = pop_many(stack, 2 * count)
    pairs = zip(values[::2], values[1::2], strict=True)
    stack.append(with_keys(frame.machine, dict, [pairs], values[::2]))


@opcode("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: Frame, stack: list[Any], count: int) -> None:
    """``*values, keys -> dict``."""
    keys = stack.pop()
    stack.append(dict(zip(keys, pop_many(stack, count), strict=True)))


@opcode("BUILD_STRING")
def build_string(frame: Frame, stack: list[Any], count: int) -> None:
    """``*strings -> string``."""
    stack.append(_formatting.joined(pop_many(stack, count)))


@opcode("BUILD_SLICE")
def build_slice(frame: Frame, stack: list[Any], count: int) -> None:
    """``start, stop[, step] -> slice``."""
    stack.append(slice(*pop_many(stack, count)))


@opcode("LIST_TO_TUPLE", until=(3, 12))
def list_to_tuple(frame: Frame, stack: list[Any], _: object) -> None:
    """``list -> tuple``."""
    stack.append(tuple(stack.pop()))


@opcode("LIST_APPEND")
def list_append(frame: Frame, stack: list[Any], depth: int) -> None:
    """Append the top to the list ``depth`` below."""
    value = stack.pop()
    list.append(stack[-depth], value)


@opcode("SET_ADD")
def set_add(frame: Frame, stack: list[Any], depth: int) -> None:
    """Add the top to the set ``depth`` below."""
    value = stack.pop()
    with_keys(frame.machine, set.add, [stack[-depth], value], [value])


@opcode("MAP_ADD")
def map_add(frame: Frame, stack: list[Any], depth: int) -> None:
    """``key, value ->``, into the dict ``depth`` below."""
    value = stack.pop()
    key = stack.pop()
    with_keys(frame.machine, operator.setitem, [stack[-depth], key, value], [key])


@opcode("LIST_EXTEND")
def list_extend(frame: Frame, stack: list[Any], depth: int) -> Outcome:
    """Append the elements of the top to the list ``depth`` below."""
    iterable = stack.pop()
    target = stack[-depth]
    kind = type(iterable)
    if kind in (tuple, list, dict) and not frame.machine.watches_iteration:
        target.extend(iterable)
        return None
    if kind.__dict__.get("__iter__") is None and not hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__"):
        raise TypeError(f"Value after * must be an iterable, not {kind.__name__}")
    return steer(frame, extending(frame, list.extend, target, iterable))


@opcode("SET_UPDATE")
def set_update(frame: Frame, stack: list[Any], depth: int) -> Outcome:
    """Add the elements of the top to the set ``depth`` below."""
    iterable = stack.pop()
    return steer(frame, extending(frame, set.update, stack[-depth], iterable))


def extending(frame: Frame, extend: object, target: object, iterable: object) -> Protocol:
    """Extend a container by all elements of ``iterable``."""
    elements = yield from _iteration.elements(frame, iterable)
    with_keys(frame.machine, extend, [target, elements], elements if extend is set.update else ())
    return NOTHING


@opcode("DICT_UPDATE")
def dict_update(frame: Frame, stack: list[Any], depth: int) -> Outcome:
    """Update the dict ``depth`` below with the mapping on top."""
    mapping = stack.pop()
    target = stack[-depth]
    if type(mapping) is dict:
        target.update(reported_mapping(frame, mapping))
        return None
    if not hasattr(mapping, "keys"):
        raise TypeError(f"'{type(mapping).__name__}' object is not a mapping")
    return steer(frame, merging(frame, target, mapping, None))


@opcode("DICT_MERGE", until=(3, 13))
def dict_merge(frame: Frame, stack: list[Any], depth: int) -> Outcome:
    """Update the keyword arguments ``depth`` below with the mapping on top."""
    mapping = stack.pop()
    return merge_keywords(frame, stack[-depth], mapping, stack[-depth - 2])


def merge_keywords(frame: Frame, target: dict[str, Any], mapping: object, fn: object) -> Outcome:
    """Add a mapping to the keyword arguments of ``fn``; a key that is there already is an error."""
    if type(mapping) is dict and target.keys().isdisjoint(mapping):
        target.update(reported_mapping(frame, mapping))
        return None
    if not hasattr(mapping, "keys"):
        raise TypeError(f"{callable_name(fn)} argument after ** must be a mapping, not {type(mapping).__name__}")
    return steer(frame, merging(frame, target, mapping, fn))


def reported_mapping(frame: Frame, mapping: dict[Any, Any]) -> dict[Any, Any]:
    """A dict that is spread: its keys are reported as an iteration, its values as items."""
    machine = frame.machine
    if not machine.watches_iteration and machine.load_item is None:
        return mapping
    keys = _iteration.reported_elements(machine, mapping)
    if machine.load_item is None:
        return {key: mapping[key] for key in keys}
    return {key: machine.load_item(mapping, key, mapping[key]) for key in keys}


def merging(frame: Frame, target: dict[Any, Any], mapping: object, fn: object) -> Protocol:
    """Copy a mapping key by key; ``fn`` is the callable when its keyword arguments are merged."""
    keys = yield Call(getattr(mapping, "keys"))  # noqa: B009
    for key in (yield from _iteration.elements(frame, keys)):
        if fn is not None:
            if key in target:
                raise TypeError(f"{callable_name(fn)} got multiple values for keyword argument '{key}'")
        target[key] = yield Call(GET_ITEM, mapping, key)
    return NOTHING


def GET_ITEM(container: Any, key: Any) -> Any:  # noqa: N802
    """Stands for subscription, when a protocol asks for it."""
    return container[key]


operation(GET_ITEM, 2)(_items.subscript)


@opcode("UNPACK_SEQUENCE")
def unpack_sequence(frame: Frame, stack: list[Any], count: int) -> Outcome:
    """``iterable -> *elements``, the first on top."""
    iterable = stack.pop()
    kind = type(iterable)
    if (kind is tuple or kind is list) and len(iterable) == count and not frame.machine.watches_iteration:
        stack.extend(iterable[::-1])
        return None
    return steer(frame, unpacking(frame, iterable, count, None))


def before_and_after(instruction: Instruction) -> tuple[int, int]:
    """How many variables stand before and after the starred one."""
    return instruction.arg & 255, instruction.arg >> 8


@opcode("UNPACK_EX", decode=before_and_after)
def unpack_ex(frame: Frame, stack: list[Any], counts: tuple[int, int]) -> Outcome:
    """``iterable -> *before, list, *after``, the first on top."""
    return steer(frame, unpacking(frame, stack.pop(), *counts))


COUNTED = (list, tuple, dict) if RUNNING >= (3, 14) else ()  # of these, errors say how many elements they have


def unpacking(frame: Frame, iterable: Any, before: int, after: int | None) -> Protocol:
    """Unpack ``iterable``; without ``after`` there is no starred variable, and no more elements may come."""
    kind = type(iterable)
    if not hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__"):
        raise TypeError(f"cannot unpack non-iterable {kind.__name__} object")
    if _iteration.is_reported(frame.machine, iterable):
        if frame.machine.watches_iteration:
            iterable = _iteration.reported_elements(frame.machine, iterable)
        return spread_over(frame, kind, list(iterable), before, after)
    iterator = yield Call(iter, iterable)
    values: list[Any] = []
    least = before + (after or 0)
    while len(values) < before:
        try:
            values.append((yield Call(next, iterator)))
        except StopIteration:
            break
    if len(values) < before:
        wanted = f"at least {least}" if after is not None else f"{before}"
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {len(values)})")
    if after is None:
        try:
            yield Call(next, iterator)
        except StopIteration:
            frame.stack.extend(values[::-1])
            return NOTHING
        raise ValueError(f"too many values to unpack (expected {before})")
    rest = yield from _iteration.elements(frame, iterator)
    if len(rest) < after:
        got = len(values) + len(rest)
        raise ValueError(f"not enough values to unpack (expected at least {least}, got {got})")
    tail = rest[len(rest) - after :]
    del rest[len(rest) - after :]
    frame.stack.extend(tail[::-1])
    frame.stack.append(rest)
    frame.stack.extend(values[::-1])
    return NOTHING


def spread_over(frame: Frame, kind: type, values: list[Any], before: int, after: int | None) -> Any:
    """Push the elements of a builtin container, of which there have to be enough."""
    count = len(values)
    if after is None:
        if count < before:
            raise ValueError(f"not enough values to unpack (expected {before}, got {count})")
        if count > before:
            got = f", got {count}" if kind in COUNTED else ""
            raise ValueError(f"too many values to unpack (expected {before}{got})")
        frame.stack.extend(values[::-1])
        return NOTHING
    if count < before + after:
        raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {count})")
    frame.stack.extend(values[count - after :][::-1])
    frame.stack.append(values[before : count - after])
    frame.stack.extend(values[:before][::-1])
    return NOTHING


@opcode("FORMAT_VALUE", until=(3, 13))
def format_value(frame: Frame, stack: list[Any], flags: int) -> Outcome:
    """``value[, spec] -> string``."""
    spec = stack.pop() if flags & 4 else ""
    value = stack.pop()
    conversion = CONVERSIONS[flags & 3]
    if conversion is None:
        return formatted(frame, value, spec)
    return start(frame, converting(conversion, value, spec))


CONVERSIONS = (None, str, repr, ascii)


def formatted(frame: Frame, value: object, spec: object) -> Outcome:
    """Push ``format(value, spec)``."""
    if type(value) is str and not spec:
        frame.stack.append(value)
        return None
    return call(frame, format, [value, spec], {})


def converting(conversion: object, value: object, spec: object) -> Protocol:
    """Convert, then format."""
    value = yield Call(conversion, value)
    return (yield Call(format, value, spec)) if spec else value
