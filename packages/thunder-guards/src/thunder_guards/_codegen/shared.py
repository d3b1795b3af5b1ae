"""What generated functions read and ask, one for all that read and ask the same: where many serve calls in turn, the
processor's caches hold it, and not a copy for each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from gc import get_referents
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from thunder_ir import Context


class Row(list[Any]):
    """A list that is never changed. Tuples cannot be referred to weakly."""

    @cached_property
    def addresses(self) -> array[int]:
        """Where its objects are, for native code; valid for as long as the row is there."""
        return array("q", map(id, self))


_ROWS: WeakValueDictionary[tuple[Any, ...], Row] = WeakValueDictionary()
"""By the identities of what they hold, but for strings, for as long as a function reads them."""
_SETS: WeakValueDictionary[tuple[Any, ...], frozenset[Any]] = WeakValueDictionary()
"""By the names in order, for as long as a function reads them."""
_FUNCTIONS: WeakValueDictionary[tuple[Any, ...], Callable[..., Any]] = WeakValueDictionary()
"""By their text and the identities of what it names, for as long as somebody calls them."""


def shared_row(objects: Iterable[Any]) -> Row:
    """Return a list of these very objects, in order; of strings, of equal ones.

    Example:
        >>> from thunder_guards._codegen.shared import shared_row
        >>> table = {}
        >>> row = shared_row([table, "a"])
        >>> shared_row([table, "a"]) is row, shared_row([{}, "a"]) is row
        (True, False)
    """
    made = Row(objects)
    return _ROWS.setdefault(tuple(map(_identity, made)), made)


def _identity(value: Any) -> int | str:
    """Return what tells an object from others, and is the same for all views of one class's attributes."""
    kind = type(value)
    if kind is MappingProxyType:
        (shown,) = get_referents(value)
        return -id(shown)
    return value if kind is str else id(value)


def shared_names(names: Sequence[Any]) -> frozenset[Any]:
    """Return a set of names, one for the same names in the same order."""
    return _SETS.setdefault(tuple(names), frozenset(names))


def shared_condition(conditions: Callable[[Context], list[str]]) -> tuple[Callable[[], bool], str]:
    """Return a function that says whether conditions hold, one for all that ask the same; and its text.

    Args:
        conditions: writes them as Python source that reads no argument of a call.
    """
    context = Context()
    text = f"lambda: {' and '.join(conditions(context))}"
    return shared_function(text, context), text


def shared_function(text: str, context: Context) -> Callable[..., Any]:
    """Return the function that an expression is, one for all of this text that name the very same objects.

    Args:
        text: a lambda expression.
        context: the names that it uses.
    """
    key = (text, *context.globals, *map(id, context.globals.values()))
    function = _FUNCTIONS.get(key)
    if function is None:
        function = _FUNCTIONS[key] = eval(text, context.globals)
    return function
