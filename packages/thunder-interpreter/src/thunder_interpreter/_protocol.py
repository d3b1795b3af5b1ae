"""Protocols: Python generators that ask the dispatch loop for calls, and the frames that run them."""

from collections.abc import Callable, Generator
from types import FunctionType
from typing import Any, TypeAlias

from thunder_interpreter._frame import AnyFrame, Steps
from thunder_interpreter._machine import Machine
from thunder_interpreter._native_stack import strip
from thunder_interpreter._null import NOTHING
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


class Call:
    """What a protocol yields to have something called; the result is sent back to it."""

    __slots__ = ("args", "fn", "kwargs")

    def __init__(self, fn: object, /, *args: Any, **kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs


Protocol: TypeAlias = Generator[Call, Any, Any]


class ProtocolFrame:
    """Runs a protocol: a Python generator that yields :class:`Call` and receives results."""

    __slots__ = ("back", "depth", "index", "machine", "protocol", "stack")

    program = Steps(lambda frame, stack, _: resume_protocol(frame, stack))
    handled: BaseException | None = None

    def __init__(self, machine: Machine, protocol: Protocol, back: "AnyFrame") -> None:
        self.machine = machine
        self.protocol = protocol
        self.back = back
        self.depth = back.depth + 1
        self.stack: list[Any] = []
        self.index = -1


def resume_protocol(frame: ProtocolFrame, stack: list[Any]) -> Any:
    """Send the last result to the protocol, and do what it asks for next."""
    return advance(frame, frame.protocol.send, stack.pop())


def advance(frame: ProtocolFrame, step: Callable[[Any], Call], value: object) -> Any:
    """Run the protocol until it needs an interpreted call, or is done.

    Returns:
        the frame to go on with: that of the call, or the one that started the protocol, with the result on its stack.
    """
    call = frame.machine.call
    stack = frame.stack
    protocol = frame.protocol
    while True:
        try:
            request = step(value)
        except StopIteration as stop:
            back = frame.back
            if stop.value is not NOTHING:
                back.stack.append(stop.value)
            return back
        except RuntimeError as error:
            if error is value or not isinstance(error.__cause__, StopIteration):
                raise
            if error.args != ("generator raised StopIteration",):
                raise
            failure = error.__cause__
            failure.__cause__ = failure.__context__ = None
        else:
            frame.index = -1
            try:
                outcome = call(frame, request.fn, [*request.args], request.kwargs)
            except BaseException as error:
                error.__traceback__ = strip(error.__traceback__)  # which holds this frame, and so the error itself
                step, value = protocol.throw, error
                continue
            if outcome is not None:
                return outcome
            step, value = protocol.send, stack.pop()
            continue
        # A protocol may let StopIteration through, which Python would turn into a RuntimeError.
        raise failure


def start(frame: AnyFrame, protocol: Protocol) -> Any:
    """Run ``protocol`` on behalf of ``frame``; its result lands on the frame's stack."""
    outcome = advance(ProtocolFrame(frame.machine, protocol, frame), protocol.send, None)
    return None if outcome is frame else outcome


def steer(frame: AnyFrame, protocol: Protocol) -> Any:
    """Run ``protocol``, which sets the frame's next step itself and returns ``NOTHING``."""
    return advance(ProtocolFrame(frame.machine, protocol, frame), protocol.send, None)


def method_call(method: Any, receiver: Any, *args: Any) -> Call:
    """The call of a special method, as it was found in a class, on ``receiver``."""
    kind = type(method)
    if kind in UNBOUND:
        return Call(method, receiver, *args)
    if hasattr(kind, "__get__"):
        return Call(method.__get__(receiver, type(receiver)), *args)
    return Call(method, *args)


UNBOUND = frozenset({FunctionType, type(list.append), type(object.__init__)})
