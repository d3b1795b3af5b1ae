"""Callables and iterables handed to C, which calls them through the interpreter."""

import _thread
import bisect
import contextvars
import functools
import itertools
import re
from collections import OrderedDict, defaultdict, deque
from typing import Any

from thunder_interpreter import _iteration
from thunder_interpreter._bridges import as_iterable, as_mapping
from thunder_interpreter._calls import call_native
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._machine import Machine, Outcome
from thunder_interpreter._natives import ANYTHING, NOTHING, SPECIAL_METHODS, Runs, replaces
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


def hand_over(
    *natives: Any,
    position: int | None = None,
    name: str | None = None,
    iterables: slice | None = None,
    alone: bool = False,
    elements: str = "",
    mapping: int | None = None,
    runs: Runs = ANYTHING,
) -> None:
    """Say that C functions call what they get.

    Args:
        natives: the C functions.
        position: of the positional argument that they call.
        name: of the keyword argument that they call.
        iterables: the positional arguments that they iterate over.
        alone: they iterate over their positional argument only if there is no other, as ``max`` does.
        elements: what they do with those of their iterables, ``"looked at"`` or ``"passed on"``, if these are reported.
        mapping: the positional argument that they copy to a dict.
        runs: what they run by themselves besides.
    """

    def special(native: object, frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if native is tuple and len(args) == 1 and type(args[0]) is tuple:  # which it returns
            frame.stack.append(args[0])
            return None
        run = frame.machine.run
        looks = elements == "looked at"
        if position is not None and position < len(args):
            bridged = run.bridge(args[position])
            looks |= bridged is args[position]  # such as ``float``, which C calls as it is
            args[position] = bridged
        if name is not None and name in kwargs:
            kwargs = {**kwargs, name: run.bridge(kwargs[name])}
        if iterables is not None and not (alone and len(args) > 1):
            for index in range(*iterables.indices(len(args))):
                given = args[index]
                args[index] = as_iterable(frame.machine, given)
                if elements and args[index] is given:
                    args[index] = reported(frame.machine, given, looks)
        if mapping is not None and mapping < len(args):
            args[mapping] = as_mapping(frame.machine, args[mapping])
        return call_native(frame, native, args, kwargs)

    for native in natives:
        replaces(native, runs=runs)(functools.partial(special, native))


def reported(machine: Machine, value: Any, looks: bool) -> Any:
    """Return an iterator in place of what C iterates over, if its elements are reported.

    Those of long containers are not: numbers in them are seldom read one by one.

    Args:
        machine: reports them.
        value: what C iterates over.
        looks: whether it looks at the elements, and so into containers among them.
    """
    if machine.iterated is None:
        return value
    iteration = machine.iterations.get(id(value))
    container = value if iteration is None else iteration.container
    if not (type(container) in HOLD_VALUES or isinstance(container, tuple) and _iteration.is_reported(machine, value)):
        return value
    count = tuple.__len__(container) if isinstance(container, tuple) else len(container)  # their own may hide it
    if not 0 < count <= FEW or looks and not all([type(element) in NUMBERS for element in container]):
        return value
    return _iteration.ReportedIterator(machine, iteration or _iteration.begun(machine, value))


HOLD_VALUES = frozenset({list, tuple, deque, _iteration.VALUES, _iteration.ITEMS})
NUMBERS = frozenset({int, float, bool, complex})
FEW = 64


FIRST, SECOND, ALL, REST = slice(0, 1), slice(1, 2), slice(0, None), slice(1, None)
PATTERN = type(re.compile(""))

hand_over(sorted, name="key", iterables=FIRST, elements="looked at", runs=SPECIAL_METHODS)
hand_over(min, max, name="key", iterables=FIRST, alone=True, elements="looked at", runs=SPECIAL_METHODS)
hand_over(sum, any, all, iterables=FIRST, elements="looked at", runs=SPECIAL_METHODS)
hand_over(enumerate, list, tuple, iterables=FIRST, elements="passed on", runs=SPECIAL_METHODS)
hand_over(set, frozenset, iterables=FIRST, runs=SPECIAL_METHODS)
hand_over(zip, iterables=ALL, elements="passed on", runs=SPECIAL_METHODS)
hand_over(list.extend, iterables=SECOND, runs=NOTHING)
hand_over(list.sort, bisect.bisect_left, bisect.bisect_right, name="key")
hand_over(map, filter, position=0, iterables=REST, elements="passed on")
hand_over(str.join, iterables=SECOND)
hand_over(set.update, iterables=REST)
hand_over(
    functools.reduce, itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.filterfalse,
    position=0, iterables=SECOND,
)  # fmt: skip
hand_over(itertools.accumulate, position=1, name="func", iterables=FIRST)
hand_over(itertools.groupby, position=1, name="key", iterables=FIRST)
hand_over(itertools.chain, itertools.product, itertools.zip_longest, iterables=ALL)
hand_over(
    itertools.islice, itertools.tee, itertools.pairwise, itertools.cycle, itertools.combinations,
    itertools.combinations_with_replacement, itertools.permutations, deque, iterables=FIRST,
)  # fmt: skip
hand_over(itertools.compress, iterables=ALL)
hand_over(deque.extend, deque.extendleft, iterables=SECOND)
hand_over(OrderedDict, mapping=0)
hand_over(OrderedDict.update, defaultdict, dict.__init__, dict.__ior__, OrderedDict.__init__, mapping=1)


@replaces(vars(itertools.chain)["from_iterable"])
def special_chain(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``itertools.chain.from_iterable``, which iterates over what it finds, too."""
    cls, *rest = args
    if len(rest) == 1 and type(rest[0]) in (list, tuple):
        rest = [[as_iterable(frame.machine, element) for element in rest[0]]]
    return call_native(frame, cls.from_iterable, rest, kwargs)


hand_over(functools.cmp_to_key, position=0, name="mycmp")
hand_over(type(functools.lru_cache(len)), position=0, name="user_function")
hand_over(contextvars.Context.run, position=1)
hand_over(PATTERN.sub, PATTERN.subn, position=1, name="repl")
hand_over(_thread.start_new_thread, position=0, name="function")
if hasattr(_thread, "start_joinable_thread"):
    hand_over(_thread.start_joinable_thread, position=0, name="function")
