"""Iteration: over builtin containers (reported), interpreted generators (resumed) and user-defined iterators."""

import itertools
import operator
from collections import deque
from collections.abc import Iterator
from types import CoroutineType, GeneratorType
from typing import Any

from thunder_interpreter import _generators
from thunder_interpreter._calls import call_native
from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._machine import Machine, Outcome, Run
from thunder_interpreter._native_callables import KINDS
from thunder_interpreter._natives import SPECIAL_METHODS, replaces
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._observing import run_natively
from thunder_interpreter._operators import is_plain
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start, steer
from thunder_interpreter._types import HEAP_TYPE, python_function, raw_attribute, reads_as_tuple
from thunder_interpreter._waiting import RaiseFrame

keep_builtins(globals())


VALUES: Any = type({}.values())
ITEMS: Any = type({}.items())
REPORTED = frozenset({list, tuple, deque, dict, set, frozenset, range, str, bytes, type({}.keys()), VALUES, ITEMS})


def is_reported(machine: Machine, iterable: object) -> bool:
    """Whether elements of ``iterable`` are reported one by one, as those of a builtin container."""
    cls = type(iterable)
    if cls in REPORTED:
        return True
    if not reads_as_tuple(cls):
        return False
    if machine.special_methods is not None:
        machine.special_methods(iter, [iterable])
    return True


class Iteration:
    """An iteration over a builtin container that is reported element by element."""

    __slots__ = ("container", "iterator", "places")

    def __init__(self, container: Any, iterator: Any, places: Iterator[Any] | None = None) -> None:
        self.container = container
        self.iterator = iterator
        if places is None:
            places = iter(container.mapping) if type(container) is VALUES else itertools.count()
        self.places = places


def reported_element(machine: Machine, iteration: Iteration, value: object) -> Any:
    """Report an element that an iteration has come to."""
    return machine.iterated(iteration.container, next(iteration.places), value)


def begun(machine: Machine, container: Any) -> Iteration:
    """Report that an iteration over a builtin container starts."""
    iterator = iter(container)
    if machine.iterate is not None:
        machine.iterate(container, iterator)
    return Iteration(container, iterator)


def begun_backwards(machine: Machine, sequence: Any) -> Iteration:
    """Report that an iteration over a list or a tuple starts at its end."""
    iterator = reversed(sequence)
    if machine.iterate is not None:
        machine.iterate(sequence, iterator)
    return Iteration(sequence, iterator, reversed(range(len(sequence))))


class ReportedIterator:
    """An iterator for C code over a builtin container, whose elements it reports when C comes to them."""

    __slots__ = ("_iteration", "_machine")

    def __init__(self, machine: Machine, iteration: Iteration) -> None:
        self._machine = machine
        self._iteration = iteration

    def __iter__(self) -> "ReportedIterator":
        return self

    def __next__(self) -> Any:
        return reported_element(self._machine, self._iteration, next(self._iteration.iterator))

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iteration.iterator)

    def __reduce__(self) -> Any:
        return iter, (self.iterator,)

    @property
    def iterator(self) -> Any:
        """The iterator that it advances."""
        return self._iteration.iterator


def iterate(frame: AnyFrame, obj: Any) -> Outcome:
    """Push ``iter(obj)``."""
    machine = frame.machine
    cls = type(obj)
    if cls not in machine.plain and not is_plain(machine, cls):
        method = raw_attribute(cls, "__iter__")
        if python_function(machine, method):
            if machine.special_methods is not None:
                machine.special_methods(iter, [obj])
            return start(frame, iterating(Call(method, obj)))
        if method is None and python_function(machine, raw_attribute(cls, "__getitem__")):
            outcome = call_native(frame, iter, [obj], {})
            frame.stack[-1] = iter(BridgedSequence(machine.run, obj))
            return outcome
    if machine.watches_iteration and is_reported(machine, obj):
        return push(frame, begun(machine, obj))
    if id(obj) in machine.iterations:  # it is an iterator
        frame.stack.append(obj)
        return None
    return call_native(frame, iter, [obj], {})


def push(frame: AnyFrame, iteration: Iteration) -> Outcome:
    """Push the iterator of an iteration."""
    if frame.machine.iterated is not None:
        frame.machine.iterations[id(iteration.iterator)] = iteration
    frame.stack.append(iteration.iterator)
    return None


class BridgedSequence:
    """A sequence for an iterator in C: the ``__getitem__`` of a user-defined one is run interpreted."""

    __slots__ = ("_run", "_sequence")

    def __init__(self, run: Run, sequence: object) -> None:
        self._run = run
        self._sequence = sequence

    def __getitem__(self, index: int) -> Any:
        return self._run.bridge(operator.getitem)(self._sequence, index)

    def __len__(self) -> int:
        return self._run.bridge(len)(self._sequence)  # type: ignore[no-any-return]


class IterShim:
    """Lets C check the result of an interpreted ``__iter__``."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __iter__(self) -> Any:
        return self.value


def iterating(request: Call) -> Protocol:
    """Call ``__iter__`` and check what it returns."""
    return iter(IterShim((yield request)))


def advance_iterator(frame: Frame, stack: list[Any], target: int) -> Outcome:
    """Push the next element of the iterator on top, or drop the iterator and jump."""
    iterator = stack[-1]
    machine = frame.machine
    cls = type(iterator)
    if cls in BUILTIN_ITERATORS and not machine.iterations and machine.advanced is None:
        value = next(iterator, NULL)
        if value is NULL:
            stack.pop()
            return target
        stack.append(value)
        return None
    if cls is GeneratorType:
        reference = machine.generators.get(id(iterator))
        if reference is not None:
            resumed = reference()
            if resumed is not None and resumed.finished is False and resumed.back is None:
                return _generators.go_on(resumed, frame, None, finish_loop)
            resumed = _generators.interpreted(machine, iterator)
            if resumed is not None:
                return _generators.resume_for(frame, resumed, None, finish_loop)
    elif cls not in machine.plain and not is_plain(machine, cls):
        method = raw_attribute(cls, "__next__")
        if python_function(machine, method):
            return steer(frame, stepping(frame, Call(method, iterator), target))
        if method is None:
            raise TypeError(f"'{cls.__name__}' object is not an iterator")
    calls = cls in CALLING_ITERATORS or cls.__flags__ & HEAP_TYPE and type(raw_attribute(cls, "__next__")) in KINDS
    value = run_natively(machine, next, [iterator, NULL], {}) if calls else next(iterator, NULL)
    if value is NULL:
        machine.iterations.pop(id(iterator), None)
        stack.pop()
        return target
    iteration = machine.iterations.get(id(iterator))
    if iteration is not None:
        value = reported_element(machine, iteration, value)
    elif machine.advanced is not None:
        value = machine.advanced(iterator, value)
    stack.append(value)
    return None


EXAMPLES: tuple[Any, ...] = ([], (), deque(), "", "é", b"", {}, {}.values(), {}.items(), set(), range(0))
BUILTIN_ITERATORS: frozenset[Any] = frozenset(
    {
        *map(type, map(iter, EXAMPLES)),
        type(iter(range(1 << 70))),
        type(reversed([])),
        enumerate,
        zip,
    }
)


class Sequence:
    """What ``iter`` makes an iterator in C for, which calls ``__getitem__``."""

    def __getitem__(self, index: int) -> Any:
        raise IndexError(index)


CALLING_ITERATORS: frozenset[Any] = frozenset({type(iter(Sequence())), itertools.chain, itertools.islice})
"""Iterators in C that call special methods of what they are made of."""


def finish_loop(back: Frame, _: object) -> Outcome:
    """End the loop of ``back`` since its generator has returned."""
    back.stack.pop()
    back.index = back.program.steps[back.index][1] - 1
    return back


def stepping(frame: Frame, request: Call, target: int) -> Protocol:
    """Call ``__next__`` for a loop."""
    try:
        value = yield request
    except StopIteration:
        frame.stack.pop()
        frame.index = target - 1
        return NOTHING
    return value


@replaces(next, runs=SPECIAL_METHODS)
def special_next(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``next``."""
    if kwargs or not 1 <= len(args) <= 2:
        return call_native(frame, next, args, kwargs)
    iterator = args[0]
    machine = frame.machine
    cls = type(iterator)
    if cls is GeneratorType and type(frame) is Frame and len(args) == 1:
        resumed = _generators.interpreted(machine, iterator)
        if resumed is not None:
            resumed.held_by_caller = iterator
            return _generators.resume_for(frame, resumed, None, finish_next)
    method = raw_attribute(cls, "__next__")
    if python_function(machine, method):
        if len(args) == 1:
            return machine.call(frame, method, [iterator], {})
        return start(frame, next_or_default(Call(method, iterator), args[1]))
    if id(iterator) in machine.iterations:
        value = next(iterator, NULL)
        if value is not NULL:
            frame.stack.append(reported_element(machine, machine.iterations[id(iterator)], value))
            return None
        del machine.iterations[id(iterator)]
    return call_native(frame, next, args, kwargs)


def finish_next(back: AnyFrame, value: object) -> Outcome:
    """Raise the ``StopIteration`` of a generator that has returned."""
    return RaiseFrame(back, StopIteration() if value is None else StopIteration(value))


def resuming(native: object) -> None:
    """Replace ``generator.send`` or its like, which resumes an interpreted generator directly."""

    @replaces(native)
    def special(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        if len(args) == 2 and not kwargs and type(frame) is Frame:
            resumed = _generators.interpreted(frame.machine, args[0])
            if resumed is not None:
                if resumed.finished is None and args[1] is not None:
                    kind = _generators.kind_of(resumed)
                    raise TypeError(f"can't send non-None value to a just-started {kind}")
                resumed.held_by_caller = args[0]
                return _generators.resume_for(frame, resumed, args[1], finish_next)
        return call_native(frame, native, args, kwargs)


resuming(GeneratorType.send)
resuming(CoroutineType.send)


def next_or_default(request: Call, default: object) -> Protocol:
    """``next`` with a default."""
    try:
        return (yield request)
    except StopIteration:
        return default


@replaces(iter)
def special_iter(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``iter``."""
    if kwargs or len(args) != 1:
        if len(args) == 2 and not kwargs and callable(args[0]):
            args[0] = frame.machine.run.bridge(args[0])
        return call_native(frame, iter, args, kwargs)
    return iterate(frame, args[0])


def elements(frame: AnyFrame, iterable: Any) -> Protocol:
    """All elements of ``iterable``, as a list; interpreted where its iterator is."""
    machine = frame.machine
    if is_reported(machine, iterable):
        if machine.watches_iteration:
            return reported_elements(machine, iterable)
        return list(iterable)
    if not needs_interpreting(machine, iterable):
        if machine.opaque_call is not None:
            machine.opaque_call(iter, [iterable], {})
        found = run_natively(machine, list, [iterable], {})
        return found if machine.advanced is None else [machine.advanced(iterable, value) for value in found]
    iterator = yield Call(iter, iterable)
    found = []
    while True:
        try:
            found.append((yield Call(next, iterator)))
        except StopIteration:
            return found


def reported_elements(machine: Machine, container: Any) -> list[Any]:
    """All elements of a builtin container, reported."""
    iteration = begun(machine, container)
    if machine.iterated is None:
        return list(iteration.iterator)
    return [reported_element(machine, iteration, value) for value in iteration.iterator]


def needs_interpreting(machine: Machine, iterable: object) -> bool:
    """Whether iterating over ``iterable`` runs a Python method that C would run natively."""
    cls = type(iterable)
    if cls in machine.plain:
        return False
    method = raw_attribute(cls, "__iter__")
    if method is None:
        return python_function(machine, raw_attribute(cls, "__getitem__"))
    return python_function(machine, method) or python_function(machine, raw_attribute(cls, "__next__"))
