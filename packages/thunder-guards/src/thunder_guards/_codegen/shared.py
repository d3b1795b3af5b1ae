"""Data that generated functions read, one for all that read the same: where many serve calls in turn, the processor's
caches hold it, and not a copy for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary


class Row(list[Any]):
    """A list that is never changed. Tuples cannot be referred to weakly."""


_ROWS: WeakValueDictionary[tuple[Any, ...], Row] = WeakValueDictionary()
"""By the identities of what they hold, but for strings, for as long as a function reads them."""
_SETS: WeakValueDictionary[tuple[Any, ...], frozenset[Any]] = WeakValueDictionary()
"""By the names in order, for as long as a function reads them."""


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
    key = tuple([value if value.__class__ is str else id(value) for value in made])
    return _ROWS.setdefault(key, made)


def shared_names(names: Sequence[Any]) -> frozenset[Any]:
    """Return a set of names, one for the same names in the same order."""
    return _SETS.setdefault(tuple(names), frozenset(names))
