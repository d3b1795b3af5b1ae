"""The dispatch loop, and what happens when an exception leaves a handler."""

import sys
from types import CodeType, FunctionType, TracebackType
from typing import Any

from thunder_interpreter import _traceback
from thunder_interpreter._calls import call, construct
from thunder_interpreter._decode import CO_ASYNC_GENERATOR, CO_COROUTINE, Program
from thunder_interpreter._frame import AnyFrame, BaseFrame, Frame, Leave
from thunder_interpreter._machine import Machine, Opaque
from thunder_interpreter._native_stack import ENTRY_CODES, strip
from thunder_interpreter._observing import pause, report_again
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import ProtocolFrame, advance
from thunder_interpreter._waiting import WAITING

keep_builtins(globals())


PROGRAMS: dict[frozenset[str], dict[int, Program]] = {}
KEPT_PROGRAMS = 4096


class Loop(Machine):
    """A machine with the dispatch loop."""

    call = staticmethod(call)
    construct = staticmethod(construct)

    def decode(self, code: CodeType) -> Program:
        """The program of ``code``, whether functions of that code are opaque or not."""
        return decoded(code, self.run.features)

    def program(self, function: FunctionType) -> Program | Opaque:
        """Decode the code of ``function``, unless it is to be called natively."""
        code = function.__code__
        found: Program | Opaque
        found = Opaque(code) if self.run.is_opaque(function) else decoded(code, self.run.features)
        self.programs[id(code)] = found
        return found

    def enter(self, fn: object, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call ``fn`` interpreted, from native code."""
        base = BaseFrame(self)
        if base.back is None:
            self.limit = sys.getrecursionlimit()
        previous, self.frame = self.frame, base
        trace = pause(self) if self.observing else None
        try:
            outcome = call(base, fn, args, kwargs)
            if outcome is None:
                return base.stack.pop()
            return execute(self, outcome)
        finally:
            self.frame = previous
            base.native = None
            if trace is not None:
                report_again(self, trace)


def decoded(code: CodeType, features: frozenset[str]) -> Program:
    """The program of ``code``, decoded at most once for each set of watched callbacks."""
    programs = PROGRAMS.setdefault(features, {})
    found = programs.get(id(code))
    if found is None:
        if len(programs) > KEPT_PROGRAMS:
            programs.clear()
        found = programs[id(code)] = Program(code, features)
    return found


def execute(machine: Machine, frame: AnyFrame) -> Any:
    """Run ``frame`` and what it calls, until a base frame is reached.

    Raises:
        BaseException: whatever the code raises, with the user's frames in its traceback.
    """
    while True:
        machine.frame = frame
        steps = frame.program.steps
        stack = frame.stack
        index = frame.index + 1
        try:
            while True:
                handler, argument = steps[index]
                frame.index = index
                outcome = handler(frame, stack, argument)
                if outcome is None:
                    index += 1
                elif type(outcome) is int:
                    index = outcome
                elif type(outcome) is Leave:
                    return outcome.value
                else:
                    frame = machine.frame = outcome
                    steps = frame.program.steps
                    stack = frame.stack
                    index = frame.index + 1
        except BaseException as error:
            failure = error
        frame = unwind(machine, frame, failure)
        del failure


ENTRY_CODES.add(Loop.enter.__code__)


def unwind(machine: Machine, frame: AnyFrame, error: BaseException) -> AnyFrame:
    """Find the frame that handles ``error`` and make it ready to go on.

    Raises:
        BaseException: the error itself, when no frame above the base frame handles it.
    """
    if machine.raised is not None:
        machine.raised(error)
    traceback = strip(error.__traceback__)
    chain_context(frame, error)
    while True:
        kind = type(frame)
        if kind is Frame:
            reraising = frame.reraising
            if reraising is not None:
                frame.reraising = None
            elif not frame.program.hidden:
                traceback = _traceback.entry(frame, traceback, error)
            found = frame.program.exception_handler(frame.index) if frame.index >= 0 else None
            if found is not None:
                error.__traceback__ = traceback
                handle(frame, found, error, reraising)
                return frame
            back = frame.back
            if reraising is not None and reraising >= 0:
                frame.index = reraising
            error, traceback = leave(frame, error, traceback)
        elif kind in WAITING:
            back = frame.back
        elif kind is ProtocolFrame:
            error.__traceback__ = traceback
            try:
                return advance(frame, frame.protocol.throw, error)
            except BaseException as raised:
                error = raised
            traceback = strip(error.__traceback__)
            back = frame.back
        else:
            error.__traceback__ = traceback
            raise error
        frame = machine.frame = back


def handle(frame: Frame, handler: tuple[int, int, bool], error: BaseException, reraising: int | None) -> None:
    """Make a frame ready to go on with what handles an exception in it.

    Args:
        handler: the step that it begins with, how much of the stack is kept, whether the step that raised is pushed.
        reraising: see :class:`Frame`.
    """
    target, depth, push_offset = handler
    stack = frame.stack
    del stack[depth:]
    if push_offset:
        stack.append(frame.index if reraising is None or reraising < 0 else reraising)
    stack.append(error)
    frame.index = target - 1


def leave(
    frame: Frame, error: BaseException, traceback: TracebackType | None
) -> tuple[BaseException, TracebackType | None]:
    """End a frame that does not handle an exception; return the one that its caller gets, with its traceback."""
    if frame.program.resumable:
        error, traceback = no_stop_iteration(frame, error, traceback)
        frame.finished = True
        frame.back = None
        frame.held_by_caller = None
        frame.stack.clear()
    if isinstance(error, AttributeError) and error.name is None and error.obj is None:
        error.obj, error.name = getattr(frame, "looked_up", (None, None))
    return error, traceback


def no_stop_iteration(
    frame: Frame, error: BaseException, traceback: TracebackType | None
) -> tuple[BaseException, TracebackType | None]:
    """``StopIteration`` may not leave a generator: it becomes a ``RuntimeError``."""
    flags = frame.program.flags
    if isinstance(error, StopIteration) or (isinstance(error, StopAsyncIteration) and flags & CO_ASYNC_GENERATOR):
        kind = "async generator" if flags & CO_ASYNC_GENERATOR else "coroutine" if flags & CO_COROUTINE else "generator"
        error.__traceback__ = traceback
        name = "StopIteration" if isinstance(error, StopIteration) else "StopAsyncIteration"
        wrapped = RuntimeError(f"{kind} raised {name}")
        wrapped.__cause__ = wrapped.__context__ = error
        return wrapped, None
    return error, traceback


def handled_exception(frame: AnyFrame) -> BaseException | None:
    """The exception being handled in ``frame`` or, if there is none, in those that called it."""
    while frame is not None:
        if frame.handled is not None:
            found: BaseException = frame.handled
            return found
        frame = frame.back
    return None


def chain_context(frame: AnyFrame, error: BaseException) -> None:
    """Make the exception that was being handled the context of one that native code raised."""
    handled = handled_exception(frame)
    if handled is None or handled is error:
        return
    last = error
    seen = set()
    while True:
        context = last.__context__
        if context is handled or last is handled:
            return
        if context is None or id(context) in seen:
            break
        seen.add(id(context))
        last = context
    context = handled
    seen.clear()
    while context is not None and id(context) not in seen:
        if context is error:
            return
        seen.add(id(context))
        context = context.__context__
    if last.__context__ is None:
        last.__context__ = handled


def set_context(error: BaseException, handled: BaseException | None) -> None:
    """Chain ``handled`` to ``error`` as ``raise`` does, cutting a cycle that would arise."""
    if handled is None or handled is error:
        return
    context: BaseException | None = handled
    seen = set()
    while context is not None and id(context) not in seen:
        seen.add(id(context))
        following = context.__context__
        if following is error:
            context.__context__ = None
            break
        context = following
    error.__context__ = handled
