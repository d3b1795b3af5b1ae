"""Text that a program does not fix: each call has its own, where it prints, returns or keeps it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thunder_guards.sources import Source
from thunder_guards.templates import Built, External
from thunder_ir import NumberProxy


def joined(*parts: str) -> str:
    """Return text made of parts."""
    return "".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Text that each call is given.

    Args:
        source: where it is found.
        fixed: returns the text at hand, and fixes the program to it.
    """

    source: Source
    fixed: Callable[[], str]


class RunText:
    """What user code holds in place of such a text. Whatever Python looks at of it fixes what it is made of.

    Args:
        parts: text, text that is given, and templates of text, each of a number and how that is formatted.
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: str | Given | Built) -> None:
        self.parts = parts

    @property
    def template(self) -> Built | External:
        """What finds, or builds, the text in a call."""
        parts = [External(part.source) if isinstance(part, Given) else part for part in self.parts]
        return parts[0] if len(parts) == 1 and isinstance(parts[0], External) else Built(joined, tuple(parts))

    def fixed(self) -> str:
        """Return the text, and constrain the program to what is in it.

        Raises:
            UnknownNumberError: one of its numbers is known only when the program runs.
        """
        return "".join(map(_fixed, self.parts))

    def __add__(self, other: object) -> Any:
        parts = _parts_of(other)
        return NotImplemented if parts is None else RunText(*self.parts, *parts)

    def __radd__(self, other: object) -> Any:
        parts = _parts_of(other)
        return NotImplemented if parts is None else RunText(*parts, *self.parts)

    def __str__(self) -> str:
        return self.fixed()

    def __hash__(self) -> int:
        return hash(self.fixed())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        return getattr(self.fixed(), name)


def _fixed(part: str | Given | Built) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Given):
        return part.fixed()
    made: str = part.build(*[given.fixed() if isinstance(given, NumberProxy) else given for given in part.parts])
    return made


def _as_text(name: str) -> Callable[..., Any]:
    def method(self: RunText, *args: Any) -> Any:
        return getattr(str, name)(self.fixed(), *[a.fixed() if isinstance(a, RunText) else a for a in args])

    method.__name__ = name
    return method


for _name in "repr format eq ne lt le gt ge len contains iter getitem mul rmul mod reduce_ex".split():
    setattr(RunText, f"__{_name}__", _as_text(f"__{_name}__"))


def _parts_of(text: object) -> tuple[str | Given | Built, ...] | None:
    return text.parts if isinstance(text, RunText) else (text,) if type(text) is str else None


def formatted(value: object, format_of: object = "") -> Any:
    """Return the text of a symbolic number, or of one that only the run tells; ``NotImplemented`` for other values."""
    if isinstance(value, NumberProxy) and type(format_of) is str:
        return RunText(Built(format, (value, format_of)))
    return value if isinstance(value, RunText) and not format_of else NotImplemented


CONVERSIONS = re.compile(r"%(?:%|[#0\- +]*\d*(?:\.\d+)?[hlL]?[diouxXeEfFgGcrsa])")
PLAIN = (str, int, float, bool, complex, type(None))
"""Types of values whose text is the same in each call."""


def interpolated(template: object, given: object) -> Any:
    """Return what ``template % given`` makes of symbolic numbers, and of such texts.

    Returns:
        ``NotImplemented`` if there are none, for other values among them, and where Python refuses the template.
    """
    values = given if type(given) is tuple else (given,)
    if type(template) is not str or not any([isinstance(value, (NumberProxy, RunText)) for value in values]):
        return NotImplemented
    conversions, between = CONVERSIONS.findall(template), CONVERSIONS.split(template)
    taking = [conversion for conversion in conversions if conversion != "%%"]
    if len(taking) != len(values) or any(["%" in text for text in between]):
        return NotImplemented
    parts, left = [between[0]], iter(values)
    for conversion, text in zip(conversions, between[1:], strict=True):
        part = "%" if conversion == "%%" else _converted(conversion, next(left))
        if part is NotImplemented:
            return NotImplemented
        parts += [part, text]
    return RunText(*[one for part in parts for one in _parts_of(part) or ()])


def _converted(conversion: str, value: object) -> Any:
    if isinstance(value, NumberProxy):
        return RunText(Built(operator.mod, (conversion, value)))
    if type(value) in PLAIN:
        return conversion % (value,)
    return value if isinstance(value, RunText) and conversion == "%s" else NotImplemented


__all__ = ["Given", "RunText", "formatted", "interpolated", "joined"]
