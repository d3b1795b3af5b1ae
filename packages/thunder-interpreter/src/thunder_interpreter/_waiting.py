"""Frames that do one thing when the dispatch loop comes to them: raise, or go on with a result they waited for."""

from typing import Any

from thunder_interpreter._frame import AnyFrame, Steps
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Protocol, start

keep_builtins(globals())


def raise_pending(frame: "RaiseFrame", stack: list[Any], _: object) -> None:
    """Raise what the frame was made for."""
    raise frame.error


class RaiseFrame:
    """Raises an exception in the frame behind it, once the dispatch loop has come to that frame."""

    __slots__ = ("back", "depth", "error", "index", "machine", "stack")

    program = Steps(raise_pending)
    handled: BaseException | None = None

    def __init__(self, back: "AnyFrame", error: BaseException) -> None:
        self.machine = back.machine
        self.back = back
        self.error = error
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


def initialised(frame: "InitFrame", stack: list[Any], _: object) -> Any:
    """Give the new instance to the frame that called the class."""
    result = stack.pop()
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    back = frame.back
    back.stack.append(frame.created)
    return back


class InitFrame:
    """Waits for ``__init__`` of a new instance."""

    __slots__ = ("back", "created", "depth", "index", "machine", "stack")

    program = Steps(initialised)
    handled: BaseException | None = None

    def __init__(self, back: "AnyFrame", created: object) -> None:
        self.machine = back.machine
        self.back = back
        self.created = created
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


def answered(frame: "AnswerFrame", stack: list[Any], _: object) -> Any:
    """Give the result of an operator's method to the frame that needs it, unless it is ``NotImplemented``."""
    result = stack.pop()
    back = frame.back
    if result is NotImplemented:
        outcome = start(back, frame.otherwise)
        return back if outcome is None else outcome
    frame.otherwise.close()
    back.stack.append(result)
    return back


class AnswerFrame:
    """Waits for the first method of a binary operator."""

    __slots__ = ("back", "depth", "index", "machine", "otherwise", "stack")

    program = Steps(answered)
    handled: BaseException | None = None

    def __init__(self, back: "AnyFrame", otherwise: "Protocol") -> None:
        self.machine = back.machine
        self.back = back
        self.otherwise = otherwise
        self.depth = back.depth
        self.stack: list[Any] = []
        self.index = -1


WAITING = frozenset({RaiseFrame, InitFrame, AnswerFrame})
"""All of them: an exception just passes through."""
