"""Callables and iterables handed to C, which calls them through the interpreter."""

import _thread
import bisect
import contextvars
import functools
import itertools
import operator
from typing import Any

from thunder_interpreter import _iteration
from thunder_interpreter._calls import call_native
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._machine import Outcome, Run, Special
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._types import HEAP_TYPE

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


def handing_over(
    native: object, positions: tuple[int, ...], names: tuple[str, ...], iterables: slice | None
) -> Special:
    """A replacement of a C function that calls what it gets.

    Args:
        native: the C function.
        positions: of the positional arguments that it calls.
        names: of the keyword arguments that it calls.
        iterables: the positional arguments that it iterates over.
    """

    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        run = frame.machine.run
        for position in positions:
            if position < len(args):
                args[position] = run.bridge(args[position])
        for name in names:
            if name in kwargs:
                kwargs = {**kwargs, name: run.bridge(kwargs[name])}
        if iterables is not None:
            for index in range(*iterables.indices(len(args))):
                if _iteration.needs_interpreting(frame.machine, args[index]):
                    args[index] = BridgedIterable(run, args[index])
        return call_native(frame, native, args, kwargs)

    return special


FIRST, ALL, REST = slice(0, 1), slice(0, None), slice(1, None)
HANDED: tuple[tuple[Any, tuple[int, ...], tuple[str, ...], slice | None], ...] = (
    (sorted, (), ("key",), FIRST),
    (list.sort, (), ("key",), None),
    (min, (), ("key",), FIRST),
    (max, (), ("key",), FIRST),
    (map, (0,), (), REST),
    (filter, (0,), (), REST),
    (zip, (), (), ALL),
    (enumerate, (), (), FIRST),
    (sum, (), (), FIRST),
    (any, (), (), FIRST),
    (all, (), (), FIRST),
    (list, (), (), FIRST),
    (tuple, (), (), FIRST),
    (set, (), (), FIRST),
    (frozenset, (), (), FIRST),
    (list.extend, (), (), slice(1, 2)),
    (str.join, (), (), slice(1, 2)),
    (set.update, (), (), REST),
    (functools.reduce, (0,), (), slice(1, 2)),
    (itertools.accumulate, (1,), ("func",), FIRST),
    (itertools.starmap, (0,), (), slice(1, 2)),
    (itertools.takewhile, (0,), (), slice(1, 2)),
    (itertools.dropwhile, (0,), (), slice(1, 2)),
    (itertools.filterfalse, (0,), (), slice(1, 2)),
    (itertools.groupby, (1,), ("key",), FIRST),
    (itertools.chain, (), (), ALL),
    (itertools.islice, (), (), FIRST),
    (itertools.product, (), (), ALL),
    (itertools.zip_longest, (), (), ALL),
    (functools.cmp_to_key, (0,), ("mycmp",), None),
    (bisect.bisect_left, (), ("key",), None),
    (bisect.bisect_right, (), ("key",), None),
    (type(functools.lru_cache(len)), (0,), ("user_function",), None),
    (_thread.start_new_thread, (0,), ("function",), None),
    (contextvars.Context.run, (1,), (), None),
    (type(__import__("re").compile("")).sub, (1,), ("repl",), None),
    (type(__import__("re").compile("")).subn, (1,), ("repl",), None),
)

SPECIALS: dict[Any, Special] = {
    **{native: handing_over(native, *rest) for native, *rest in HANDED},  # type: ignore[arg-type]
}
if hasattr(_thread, "start_joinable_thread"):
    native = _thread.start_joinable_thread
    SPECIALS[native] = handing_over(native, (0,), ("function",), None)
