"""User-defined iterables and mappings as C code may use them: their methods are run interpreted."""

import operator
from collections import OrderedDict, defaultdict, deque
from typing import Any

from thunder_interpreter import _iteration
from thunder_interpreter._machine import Machine, Run
from thunder_interpreter._natives import replaces
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._types import HEAP_TYPE, python_function, raw_attribute

keep_builtins(globals())


class BridgedIterable:
    """An iterable that C code may use: the ``__iter__`` of a user-defined one is run interpreted."""

    __slots__ = ("_iterable", "_run")

    def __init__(self, run: Run, iterable: object) -> None:
        self._run = run
        self._iterable = iterable

    def __iter__(self) -> Any:
        iterator = self._run.bridge(ITER)(self._iterable)
        cls = type(iterator)
        calls = cls.__flags__ & HEAP_TYPE or cls in _iteration.CALLING_ITERATORS
        return BridgedIterator(self._run, iterator) if calls else iterator

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iterable)


class BridgedIterator:
    """An iterator that C code may use: it runs a Python iterator interpreted."""

    __slots__ = ("_iterator", "_run")

    def __init__(self, run: Run, iterator: object) -> None:
        self._run = run
        self._iterator = iterator

    def __iter__(self) -> "BridgedIterator":
        return self

    def __next__(self) -> Any:
        return self._run.bridge(NEXT)(self._iterator)

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iterator)

    def __reduce__(self) -> Any:
        return iter, (self._iterator,)


def ITER(iterable: Any) -> Any:  # noqa: N802
    """Stands for ``iter`` in a bridge."""
    return iter(iterable)


def NEXT(iterator: Any) -> Any:  # noqa: N802
    """Stands for ``next`` in a bridge."""
    return next(iterator)


replaces(ITER)(_iteration.special_iter)
replaces(NEXT)(_iteration.special_next)


class BridgedMapping:
    """A mapping that C code may copy: the methods of a user-defined one are run interpreted."""

    __slots__ = ("_mapping", "_run")

    def __init__(self, run: Run, mapping: object) -> None:
        self._run = run
        self._mapping = mapping

    def keys(self) -> Any:
        """Return the keys of the mapping, to iterate over."""
        found = self._run.bridge(self._run.bridge(getattr)(self._mapping, "keys"))()
        return BridgedIterable(self._run, found)

    def __getitem__(self, key: object) -> Any:
        return self._run.bridge(operator.getitem)(self._mapping, key)


def as_iterable(machine: Machine, value: Any) -> Any:
    """Return what C code gets that iterates over ``value``."""
    return BridgedIterable(machine.run, value) if _iteration.needs_interpreting(machine, value) else value


def as_mapping(machine: Machine, value: Any) -> Any:
    """Return what C code gets that copies the mapping, or the pairs, ``value`` to a dict."""
    cls = type(value)
    if isinstance(value, dict) and not _iteration.needs_interpreting(machine, value):
        return value
    if raw_attribute(cls, "keys") is None:
        return as_iterable(machine, value)
    methods = [raw_attribute(cls, name) for name in ("keys", "__getitem__")]
    return BridgedMapping(machine.run, value) if any([python_function(machine, m) for m in methods]) else value


GROWN_BY = {
    "+=": ((list, deque), "__radd__", as_iterable),
    "|=": ((dict, OrderedDict, defaultdict), "__ror__", as_mapping),
}
"""What containers take in place, unless the operand itself says what the operator does."""


def as_operand(machine: Machine, symbol: str, container: object, value: Any) -> Any:
    """Return what C code gets that does ``container <symbol> value``."""
    kinds, own, bridged = GROWN_BY.get(symbol, ((), "", as_iterable))
    return bridged(machine, value) if type(container) in kinds and raw_attribute(type(value), own) is None else value
