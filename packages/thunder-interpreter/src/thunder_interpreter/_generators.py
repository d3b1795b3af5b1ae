"""Generators, coroutines and async generators: real ones, whose bodies run an interpreted frame.

The native object is primed when it is made: it stands at its first ``yield``, so that closing or collecting it runs the
interpreted ``finally`` blocks. Interpreted code resumes the interpreted frame directly, without the native object.
"""

import functools
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Generator
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any

from thunder_interpreter._decode import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE, Program
from thunder_interpreter._frame import AnyFrame, BaseFrame, Frame, user_frames
from thunder_interpreter._loop import execute, unwind
from thunder_interpreter._machine import Machine
from thunder_interpreter._native_stack import ENTRY_CODES, strip
from thunder_interpreter._observing import pause, report_again
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


WORDED = sys.version_info >= (3, 14)  # what is ignored has words, and no object
RESUMABLE_TYPES = (GeneratorType, CoroutineType, AsyncGeneratorType)


def make(frame: Frame) -> Any:
    """The generator, coroutine or async generator of a frame that has reached ``RETURN_GENERATOR``."""
    flags = frame.program.flags
    if flags & CO_COROUTINE:
        frame.origin = origin(frame)
    frame.back = None
    frame.finished = None
    if flags & CO_ASYNC_GENERATOR:
        made = named(FunctionType(driver_code(frame.program, drive_async.__code__), globals())(frame), frame)
        frame.generator = weakref.ref(made)
        return made
    made = named(FunctionType(driver_code(frame.program, drive.__code__), globals())(frame), frame)
    made.send(None)
    frame.registered = id(made)
    frame.generator = weakref.ref(made)
    frame.machine.generators[id(made)] = weakref.ref(frame)
    return made


def driver_code(program: Program, driver: CodeType) -> CodeType:
    """The code of ``driver`` under the name and place of the user's code, which is the last of its constants."""
    if program.driver is None:
        code = program.code
        flags = driver.co_flags | program.flags & CO_ITERABLE_COROUTINE
        if program.flags & CO_COROUTINE:
            flags = flags & ~CO_GENERATOR | CO_COROUTINE
        program.driver = driver.replace(
            co_flags=flags,
            co_name=code.co_name,
            co_qualname=code.co_qualname,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_consts=(*driver.co_consts, code),
        )
    found: CodeType = program.driver
    return found


def named(made: Any, frame: Frame) -> Any:
    """Give a native generator the names of the user's function."""
    made.__name__ = frame.function.__name__
    made.__qualname__ = frame.function.__qualname__
    return made


def drive(frame: Frame) -> Generator[Any, Any, Any]:
    """The body of every native generator and coroutine."""
    sent: Any = None
    thrown: BaseException | None = None
    try:
        try:
            sent = yield
        except BaseException as error:
            thrown = error
            if frame.finished is None:
                never_awaited(frame)
        while True:
            value = resume(frame, sent, thrown)
            if frame.finished:
                return value
            sent = thrown = None
            try:
                sent = yield value
            except BaseException as error:
                thrown = error
            value = None
    except BaseException as error:
        error.__traceback__ = strip(error.__traceback__)
        raise
    finally:
        thrown = None
        frame.machine.generators.pop(frame.registered, None)


def never_awaited(frame: Frame) -> None:
    """Warn if a coroutine that never ran is being collected, as opposed to closed."""
    if frame.program.flags & CO_COROUTINE and frame.generator() is None:
        try:
            warn_never_awaited(frame)
        except BaseException as error:
            if not WORDED:
                raise  # to the native coroutine, which reports it
            name = frame.function.__qualname__
            report(
                error,
                f"Exception ignored while finalizing coroutine <coroutine object {name} at {frame.registered:#x}>",
            )


def warn_never_awaited(frame: Frame) -> None:
    """Warn about a coroutine that never ran."""
    if not frame.program.flags & CO_COROUTINE:
        return
    warnings._warn_unawaited_coroutine(Unawaited(frame))  # type: ignore[attr-defined]


class Unawaited:
    """What the warning about a coroutine needs to know of it."""

    def __init__(self, frame: Frame) -> None:
        self.__qualname__ = frame.function.__qualname__
        self.cr_origin = frame.origin


def origin(frame: Frame) -> Any:
    """Where a coroutine is being made, if that is asked for."""
    depth = sys.get_coroutine_origin_tracking_depth()
    if not depth:
        return None
    found = []
    for caller in user_frames(frame.back):
        found.append((caller.f_code.co_filename, caller.f_lineno, caller.f_code.co_name))
        if len(found) == depth:
            break
    return tuple(found)


class AsyncYield:
    """A value that an async generator yields to its consumer, as opposed to what it awaits."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


@types.coroutine
def passed_on(value: object) -> Generator[Any, Any, Any]:
    """Yield ``value`` to the event loop."""
    return (yield value)


async def drive_async(frame: Frame) -> Any:
    """The body of every native async generator."""
    sent: Any = None
    thrown: BaseException | None = None
    try:
        while True:
            value = resume(frame, sent, thrown)
            if frame.finished:
                return
            sent = thrown = None
            try:
                if type(value) is AsyncYield:
                    sent = yield value.value
                else:
                    sent = await passed_on(value)
            except BaseException as error:
                thrown = error
            value = None
    except BaseException as error:
        error.__traceback__ = strip(error.__traceback__)
        raise
    finally:
        thrown = None


def resume(frame: Frame, sent: object, thrown: BaseException | None) -> Any:
    """Run a generator's frame from native code until it yields, returns or raises."""
    machine = frame.machine
    if machine.thread != threading.get_ident():
        machine = machine.run.machine()
    if frame.finished:
        if frame.program.flags & CO_COROUTINE and not isinstance(thrown, GeneratorExit):
            raise RuntimeError("cannot reuse already awaited coroutine")
        if thrown is not None:
            raise thrown
        return None
    if frame.back is not None:
        raise ValueError(f"{kind_of(frame)} already executing")
    base = BaseFrame(machine)
    previous, machine.frame = machine.frame, base
    trace = pause(machine) if machine.observing else None
    try:
        if thrown is None and frame.finished is False:
            return execute(machine, go_on(frame, base, sent, None))
        return execute(machine, attach(frame, base, sent, thrown))
    finally:
        machine.frame = previous
        base.native = None
        if trace is not None:
            report_again(machine, trace)


ENTRY_CODES.add(resume.__code__)


def attach(frame: Frame, back: AnyFrame, sent: object, thrown: BaseException | None) -> AnyFrame:
    """Make ``frame`` ready to go on for ``back``.

    Returns:
        the frame to go on with; ``back`` itself when a delegate has answered.

    Raises:
        BaseException: nothing in the frame handles ``thrown``.
    """
    if frame.finished is None and thrown is None and sent is not None:
        raise TypeError(f"can't send non-None value to a just-started {kind_of(frame)}")
    machine = frame.machine = back.machine
    frame.back = back
    frame.depth = back.depth + 1
    frame.finish = None
    if frame.finished is None:
        frame.finished = False
    elif thrown is not None:
        if frame.program.steps[frame.index][1] is True:
            return delegate(machine, frame, back, thrown)
    if thrown is None:
        frame.stack.append(sent)
        return frame
    return unwind(machine, frame, thrown)


def delegate(machine: Machine, frame: Frame, back: AnyFrame, thrown: BaseException) -> AnyFrame:
    """Throw into the iterator that a frame suspended in ``yield from`` or ``await`` delegates to."""
    receiver = frame.stack[-1]
    leaves = isinstance(thrown, GeneratorExit)
    previous, machine.frame = machine.frame, frame
    try:
        method = closing(receiver) if leaves else getattr(receiver, "throw", None)
        if method is not None and leaves:
            machine.enter(method, [], {})
        if method is None or leaves:
            return unwind(machine, frame, thrown)
        value = machine.enter(method, [thrown], {})
    except StopIteration as stop:
        frame.index -= 1  # the SEND before the yield knows what to do with the value
        finished: AnyFrame = frame.program.steps[frame.index][1][1](frame, stop.value)
        return finished
    except BaseException as error:
        if error is thrown and leaves:
            raise
        failure: BaseException = error
    else:
        machine.frame = previous
        frame.back = None
        back.stack.append(value)
        return back
    if frame.finished:
        raise failure
    return unwind(machine, frame, failure)


def closing(receiver: object) -> Any:
    """The ``close`` of what a frame delegates to, or ``None``; CPython ignores that it cannot be looked up."""
    try:
        return getattr(receiver, "close", None)
    except BaseException as error:
        unraisable(error, receiver)
        return None


def unraisable(error: BaseException, source: object) -> None:
    """Report an error in closing ``source`` that there is nobody to get."""
    if WORDED:
        report(error, f"Exception ignored while closing generator {source!r}")
    else:
        report(error, None, source)


def report(error: BaseException, words: str | None, source: object = None) -> None:
    """Hand an error to ``sys.unraisablehook``."""
    error.__traceback__ = strip(error.__traceback__)
    sys.unraisablehook(record_of_unraisable()((type(error), error, error.__traceback__, words, source)))


@functools.cache
def record_of_unraisable() -> Any:
    """The type of what ``sys.unraisablehook`` gets: it has no name, so that one such error is made to see it."""

    class Raising:
        def __del__(self) -> None:
            raise ValueError

    kinds: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda record: kinds.append(type(record))
    try:
        Raising()
    finally:
        sys.unraisablehook = before
    return kinds[0]


def close(frame: Frame) -> None:
    """End a suspended generator whose frame is cleared: its ``finally`` blocks run."""
    try:
        resume(frame, None, GeneratorExit())
        ended = frame.finished
    except (GeneratorExit, StopIteration):
        return
    except BaseException as error:
        unraisable(error, frame)
        return
    if not ended:
        unraisable(RuntimeError(f"{kind_of(frame)} ignored GeneratorExit"), frame)


def kind_of(frame: Frame) -> str:
    """The word for what a frame belongs to."""
    flags = frame.program.flags
    if flags & CO_ASYNC_GENERATOR:
        return "async generator"
    return "coroutine" if flags & CO_COROUTINE else "generator"


def frame_of(machine: Machine, generator: object) -> Frame | None:
    """The frame of a generator or coroutine, if it is an interpreted one of this run."""
    found = machine.generators.get(id(generator))
    return None if found is None else found()


def interpreted(machine: Machine, generator: Any) -> Frame | None:
    """The frame of a generator or coroutine, if it is an interpreted one that can be resumed directly."""
    reference = machine.generators.get(id(generator))
    if reference is None:
        return None
    found = reference()
    if found is None or found.finished or found.back is not None or type(generator) not in RESUMABLE_TYPES:
        return None
    running = generator.cr_running if type(generator) is CoroutineType else generator.gi_running
    return None if running else found


def attribute(generator: object, name: str) -> Any:
    """An attribute such as ``gi_frame`` as the user's code shall see it: about the interpreted frame."""
    prefix, what = name[:3], name[3:]
    code = getattr(generator, prefix + "code")
    if code.co_code not in (drive.__code__.co_code, drive_async.__code__.co_code):
        return getattr(generator, name)
    if what == "code":
        return code.co_consts[-1]
    native = getattr(generator, prefix + "frame")
    if native is None:
        return getattr(generator, name)
    frame = native.f_locals["frame"]
    suspended = frame.finished is False and frame.back is None
    if what == "frame":
        return None if frame.finished else frame
    if what == "origin":
        return frame.origin
    if what == "running":
        return frame.back is not None or getattr(generator, name)
    if what == "suspended":
        return suspended
    if what in ("yieldfrom", "await"):
        return frame.stack[-1] if suspended and frame.program.steps[frame.index][1] is True else None
    return getattr(generator, name)


def go_on(resumed: Frame, back: AnyFrame, sent: object, finish: Callable[[AnyFrame, Any], Any] | None) -> Frame:
    """Make the frame of a generator that is suspended at a ``yield`` ready to go on for ``back``."""
    resumed.back = back
    resumed.machine = back.machine
    resumed.depth = back.depth + 1
    resumed.finish = finish
    resumed.stack.append(sent)
    return resumed


def resume_for(frame: AnyFrame, resumed: Frame, sent: object, finish: Callable[[AnyFrame, Any], Any]) -> AnyFrame:
    """Go on with a generator's frame on behalf of the interpreted ``frame``."""
    attach(resumed, frame, sent, None)
    resumed.finish = finish
    return resumed


def let_go(frame: Frame, back: AnyFrame | None) -> None:
    """Drop a generator that its caller held while it ran; if nobody else does, it is closed from the caller's frame."""
    frame.machine.frame = back
    frame.held_by_caller = None


def finish(frame: Frame, value: object) -> Any:
    """Return from a generator's frame: to native code as a value, to interpreted code as its opcode wants it."""
    back = frame.back
    frame.back = None
    frame.finished = True
    if frame.held_by_caller is not None:
        let_go(frame, back)
    if frame.finish is None:
        back.stack.append(value)  # type: ignore[union-attr]
        return back
    return frame.finish(back, value)
