"""``str.format``, which looks up attributes and items of its arguments, and runs their formats."""

import _string  # type: ignore[import-not-found]
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_interpreter._calls import call_native
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._natives import replaces
from thunder_interpreter._observing import INERT
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start

keep_builtins(globals())


DEEPEST = 2
"""How many format strings, one the specification within another, there may be."""
CONVERSIONS = {"s": str, "r": repr, "a": ascii}


@dataclass
class Arguments:
    """What the fields of a format string may name.

    Args:
        positional: arguments; ``None`` where there may be no fields for them.
        named: arguments.
        automatic: whether fields are numbered in turn, not by themselves; ``None`` before the first field.
        next: number of the next field, if they are numbered in turn.
    """

    positional: Sequence[Any] | None
    named: Mapping[str, Any]
    automatic: bool | None = None
    next: int = 0

    def numbered(self, number: int | str) -> Any:
        """The argument of a field that has a number, or gets the next one."""
        if self.positional is None:
            raise ValueError("Format string contains positional fields")
        automatic = isinstance(number, str)
        if self.automatic is not None and self.automatic is not automatic:
            ways = ("manual field specification", "automatic field numbering")
            raise ValueError(f"cannot switch from {ways[self.automatic]} to {ways[automatic]}")
        self.automatic = automatic
        if isinstance(number, str):
            number = self.next
            self.next += 1
        if number >= len(self.positional):
            raise IndexError(f"Replacement index {number} out of range for positional args tuple")
        return self.positional[number]


def text_of(template: str, arguments: Arguments, deeper: int = DEEPEST) -> Protocol:
    """The text that a format string makes of arguments."""
    if not deeper:
        raise ValueError("Max string recursion exceeded")
    parts = []
    for literal, field, specification, conversion in _string.formatter_parser(template):
        parts.append(literal)
        if field is None:
            continue
        first, rest = _string.formatter_field_name_split(field)
        if isinstance(first, int) or first == "":
            value = arguments.numbered(first)
        else:
            value = yield Call(operator.getitem, arguments.named, first)
        for is_attribute, key in rest:
            value = yield Call(getattr if is_attribute else operator.getitem, value, key)
        if conversion is not None:
            if conversion not in CONVERSIONS:
                raise ValueError(f"Unknown conversion specifier {conversion}")
            value = yield Call(CONVERSIONS[conversion], value)
        if specification:
            specification = yield from text_of(specification, arguments, deeper - 1)
        parts.append((yield Call(format, value, specification)))
    return joined(parts)


def joined(parts: list[Any]) -> Any:
    """Texts one after another; a lookaside of ``format`` returns what it likes in place of one."""
    return "".join(parts) if all([isinstance(part, str) for part in parts]) else functools.reduce(operator.add, parts)


def formatting(native: object, arguments_of: Any) -> None:
    """Replace ``str.format`` or ``str.format_map``, where it looks into objects.

    Args:
        native: the method.
        arguments_of: makes :class:`Arguments` of those of the method.
    """

    @replaces(native)
    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if args and isinstance(args[0], str) and any([type(v) not in INERT for v in (*args[1:], *kwargs.values())]):
            return start(frame, text_of(str(args[0]), arguments_of(args[1:], kwargs)))
        return call_native(frame, native, args, kwargs)


def of_format(args: list[Any], kwargs: dict[str, Any]) -> Arguments:
    """What the fields of ``str.format`` name."""
    return Arguments(args, kwargs)


def of_format_map(args: list[Any], kwargs: dict[str, Any]) -> Arguments:
    """What the fields of ``str.format_map`` name."""
    if len(args) != 1 or kwargs:
        raise TypeError(f"str.format_map() takes exactly one argument ({len(args)} given)")
    return Arguments(None, args[0])


formatting(str.format, of_format)
formatting(str.format_map, of_format_map)
