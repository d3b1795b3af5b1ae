"""Generators, coroutines, ``yield from``, ``await`` and ``async for``."""

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from thunder_interpreter import _generators, _iteration
from thunder_interpreter._decode import CO_COROUTINE, CO_ITERABLE_COROUTINE, Instruction, jump_forward
from thunder_interpreter._frame import Frame
from thunder_interpreter._generators import AsyncYield
from thunder_interpreter._machine import Outcome
from thunder_interpreter._native_stack import strip
from thunder_interpreter._null import NOTHING
from thunder_interpreter._observing import run_natively
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, method_call, start, steer
from thunder_interpreter._registry import RUNNING, opcode
from thunder_interpreter._types import python_function, raw_attribute

keep_builtins(globals())


@opcode("RETURN_GENERATOR")
def return_generator(frame: Frame, stack: list[Any], _: object) -> Frame:
    """Give the calling frame a generator of this frame."""
    back = frame.back
    back.stack.append(_generators.make(frame))  # type: ignore[union-attr]
    return back  # type: ignore[return-value]


@opcode("YIELD_VALUE", decode=lambda instruction: instruction.delegates or None)
def yield_value(frame: Frame, stack: list[Any], _: object) -> Any:
    """``value ->``; when the generator is resumed, ``-> sent``."""
    back = frame.back
    frame.back = None
    back.stack.append(stack.pop())  # type: ignore[union-attr]
    if frame.held_by_caller is not None:
        _generators.let_go(frame, back)
    return back


@opcode("ASYNC_GEN_WRAP", until=(3, 12))
def async_gen_wrap(frame: Frame, stack: list[Any], _: object) -> None:
    """``value -> wrapped``: tells what is yielded from what is awaited."""
    stack.append(AsyncYield(stack.pop()))


def replace_receiver(back: Frame, value: object) -> Frame:
    """End a delegation by putting its value in the place of the receiver."""
    back.stack[-1] = value
    back.index = back.program.steps[back.index][1][0] - 1
    return back


def value_above_receiver(back: Frame, value: object) -> Frame:
    """End a delegation by putting its value above the receiver."""
    back.stack.append(value)
    back.index = back.program.steps[back.index][1][0] - 1
    return back


def delegation(finish: object) -> Any:
    """A decoder of ``SEND``: where to go, and what to do, when the receiver has returned."""

    def decode(instruction: Instruction) -> tuple[int, Any]:
        return jump_forward(instruction), finish

    return decode


@opcode("SEND", until=(3, 12), decode=delegation(replace_receiver))
@opcode("SEND", since=(3, 12), decode=delegation(value_above_receiver))
def send(frame: Frame, stack: list[Any], argument: tuple[int, Any]) -> Outcome:
    """``receiver, value -> receiver, yielded``, or on to the target with what the receiver returned."""
    value = stack.pop()
    receiver = stack[-1]
    machine = frame.machine
    cls = type(receiver)
    if cls is GeneratorType or cls is CoroutineType:
        resumed = _generators.interpreted(machine, receiver)
        if resumed is not None:
            if resumed.finished is False:
                return _generators.go_on(resumed, frame, value, argument[1])
            return _generators.resume_for(frame, resumed, value, argument[1])
    elif cls not in machine.plain:
        method = raw_attribute(cls, "__next__" if value is None else "send")
        if python_function(machine, method):
            args = () if value is None else (value,)
            return steer(frame, sending(frame, Call(method, receiver, *args), argument[1]))
    try:
        if value is None and raw_attribute(cls, "__next__") is not None:
            calls = cls in _iteration.CALLING_ITERATORS
            result = run_natively(machine, next, [receiver], {}) if calls else receiver.__next__()
        else:
            result = receiver.send(value)
    except StopIteration as stop:
        machine.iterations.pop(id(receiver), None)
        returned = stop.value
    else:
        iteration = machine.iterations.get(id(receiver))
        stack.append(result if iteration is None else _iteration.reported_element(machine, iteration, result))
        return None
    return argument[1](frame, returned)


def sending(frame: Frame, request: Call, finish: Any) -> Protocol:
    """Resume a user-defined iterator."""
    try:
        return (yield request)
    except StopIteration as stop:
        returned = stop.value
    finish(frame, returned)
    return NOTHING


@opcode("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``iterable -> iterator``, as ``yield from`` needs it."""
    iterable = stack.pop()
    kind = type(iterable)
    if kind is GeneratorType:
        stack.append(iterable)
        return None
    if kind is CoroutineType:
        if not frame.program.flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE):
            raise TypeError("cannot 'yield from' a coroutine object in a non-coroutine generator")
        stack.append(iterable)
        return None
    return frame.machine.call(frame, iter, [iterable], {})


@opcode("GET_AWAITABLE")
def get_awaitable(frame: Frame, stack: list[Any], source: int) -> Outcome:
    """``awaitable -> iterator``."""
    return start(frame, awaiting(frame, stack.pop(), source))


NO_AWAITABLE = "'{}' object can't be awaited" if RUNNING >= (3, 14) else "object {} can't be used in 'await' expression"


def awaiting(frame: Frame, awaitable: Any, source: int) -> Protocol:
    """The iterator behind an awaitable; ``source`` tells ``async with`` enter (1) and exit (2) apart, for errors."""
    cls = type(awaitable)
    if cls is CoroutineType:
        suspended = _generators.frame_of(frame.machine, awaitable)
        delegating = awaitable.cr_await is not None
        if suspended is not None:
            delegating = is_delegating(suspended)
        if delegating:
            raise RuntimeError("coroutine is being awaited already")
        return awaitable
    if cls is GeneratorType and awaitable.gi_code.co_flags & CO_ITERABLE_COROUTINE:
        return awaitable
    method = raw_attribute(cls, "__await__")
    if method is None:
        if source:
            name = ("__aenter__", "__aexit__")[source - 1]
            words = f"'async with' received an object from {name} that does not implement __await__: {cls.__name__}"
            raise TypeError(words)
        raise TypeError(NO_AWAITABLE.format(cls.__name__))
    iterator = yield method_call(method, awaitable)
    if type(iterator) is CoroutineType:
        raise TypeError("__await__() returned a coroutine")
    if type(iterator) is GeneratorType and iterator.gi_code.co_flags & CO_ITERABLE_COROUTINE:
        raise TypeError("__await__() returned a coroutine")
    if not hasattr(type(iterator), "__next__"):
        raise TypeError(f"__await__() returned non-iterator of type '{type(iterator).__name__}'")
    return iterator


def is_delegating(frame: Frame) -> bool:
    """Whether a suspended frame waits for another iterator."""
    if frame.finished is not False or frame.index < 0:
        return False
    return frame.back is None and frame.program.steps[frame.index][1] is True


@opcode("GET_AITER")
def get_aiter(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``iterable -> asynchronous iterator``."""
    return start(frame, iterating_asynchronously(stack.pop()))


def iterating_asynchronously(iterable: object) -> Protocol:
    """Call ``__aiter__`` and check what it returns."""
    cls = type(iterable)
    method = raw_attribute(cls, "__aiter__")
    if method is None:
        raise TypeError(f"'async for' requires an object with __aiter__ method, got {cls.__name__}")
    iterator = yield method_call(method, iterable)
    if not hasattr(type(iterator), "__anext__"):
        name = type(iterator).__name__
        raise TypeError(f"'async for' received an object from __aiter__ that does not implement __anext__: {name}")
    return iterator


@opcode("GET_ANEXT")
def get_anext(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``iterator -> iterator, awaitable``."""
    return start(frame, next_asynchronously(frame, stack[-1]))


def next_asynchronously(frame: Frame, iterator: object) -> Protocol:
    """Call ``__anext__`` and get the iterator behind the awaitable it returns."""
    cls = type(iterator)
    method = raw_attribute(cls, "__anext__")
    if method is None:
        raise TypeError(f"'async for' requires an iterator with __anext__ method, got {cls.__name__}")
    awaitable = yield method_call(method, iterator)
    if cls is AsyncGeneratorType:
        return awaitable
    try:
        return (yield from awaiting(frame, awaitable, 0))
    except BaseException as error:
        error.__traceback__ = strip(error.__traceback__)
        failure = invalid_anext(awaitable)
        failure.__cause__ = failure.__context__ = error
    raise failure


def invalid_anext(awaitable: object) -> TypeError:
    """The error of an ``__anext__`` that returns no awaitable."""
    return TypeError(f"'async for' received an invalid object from __anext__: {type(awaitable).__name__}")


@opcode("END_ASYNC_FOR")
def end_async_for(frame: Frame, stack: list[Any], _: object) -> None:
    """``iterator, error ->`` if the error is ``StopAsyncIteration``; raises it otherwise."""
    error = stack.pop()
    if isinstance(error, StopAsyncIteration):
        stack.pop()
        return
    frame.reraising = -1
    raise error
