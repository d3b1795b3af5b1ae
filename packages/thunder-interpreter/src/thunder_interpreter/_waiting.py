"""Frames that do one thing when the dispatch loop comes to them: raise, or go on with a result they waited for."""

from typing import Any

from thunder_interpreter._frame import AnyFrame, Steps
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import start

keep_builtins(globals())


class WaitingFrame:
    """Stands before the frame behind it, and holds what that one thing is done with."""

    __slots__ = ("back", "depth", "held", "index", "machine", "stack")

    program: Steps
    handled: BaseException | None = None

    def __init__(self, back: AnyFrame, held: Any) -> None:
        self.machine = back.machine
        self.back = back
        self.held = held
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


def raise_pending(frame: WaitingFrame, stack: list[Any], _: object) -> None:
    """Raise what the frame was made for."""
    raise frame.held


def initialised(frame: WaitingFrame, stack: list[Any], _: object) -> Any:
    """Give the new instance to the frame that called the class."""
    result = stack.pop()
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    back = frame.back
    back.stack.append(frame.held)
    return back


def answered(frame: WaitingFrame, stack: list[Any], _: object) -> Any:
    """Give the result of an operator's method to the frame that needs it, unless it is ``NotImplemented``."""
    result = stack.pop()
    back = frame.back
    if result is NotImplemented:
        outcome = start(back, frame.held)
        return back if outcome is None else outcome
    frame.held.close()
    back.stack.append(result)
    return back


class RaiseFrame(WaitingFrame):
    """Raises an exception in the frame behind it, once the dispatch loop has come to that frame."""

    __slots__ = ()
    program = Steps(raise_pending)


class InitFrame(WaitingFrame):
    """Waits for ``__init__`` of a new instance."""

    __slots__ = ()
    program = Steps(initialised)


class AnswerFrame(WaitingFrame):
    """Waits for the first method of a binary operator; holds the protocol that tries the others."""

    __slots__ = ()
    program = Steps(answered)


WAITING = frozenset({RaiseFrame, InitFrame, AnswerFrame})
"""All of them: an exception just passes through."""
