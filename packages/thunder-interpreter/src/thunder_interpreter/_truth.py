"""The truth of objects whose classes define it in Python, and what goes on by it."""

from typing import Any

from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._machine import Machine, Outcome
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._operators import Shim, is_plain
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start, steer
from thunder_interpreter._types import python_function, raw_attribute

keep_builtins(globals())


def truth_method(machine: Machine, value: object) -> tuple[Any, str] | None:
    """The Python method that decides whether ``value`` is true, if there is one."""
    cls = type(value)
    method = raw_attribute(cls, "__bool__", NULL)
    if method is NULL:
        method = raw_attribute(cls, "__len__")
        return (method, "__len__") if python_function(machine, method) else None
    return (method, "__bool__") if python_function(machine, method) else None


def truth_now(machine: Machine, value: object) -> Any:
    """Whether ``value`` is true, or ``NotImplemented`` if a Python method has to be called for that."""
    if machine.truth is not None:
        answer = machine.truth(value)
        if answer is not NotImplemented:
            return answer
    if type(value) in machine.plain or is_plain(machine, type(value)) or truth_method(machine, value) is None:
        if machine.opaque_call is not None:
            machine.opaque_call(bool, [value], {})
        return bool(value)
    if machine.special_methods is not None:
        machine.special_methods(bool, [value])
    return NotImplemented


def truth_of(machine: Machine, value: object) -> Protocol:
    """``bool(value)`` where ``truth_now`` could not tell."""
    found = truth_method(machine, value)
    if found is None:
        return bool(value)
    result = yield Call(found[0], value)
    if found[1] == "__bool__":
        if type(result) is not bool:
            raise TypeError(f"__bool__ should return bool, returned {type(result).__name__}")
        return result
    return len(Shim(result)) != 0


def branching(frame: AnyFrame, value: object) -> Any:
    """As ``truth_now``, for a value that the code branches on."""
    if frame.machine.branch is not None and type(frame) is Frame:
        program = frame.program
        answer = frame.machine.branch(value, program.code, program.offsets[frame.index])
        if answer is not NotImplemented:
            return answer
    return truth_now(frame.machine, value)


def jump_if(frame: Frame, value: object, wanted: bool, target: int) -> Outcome:
    """Jump to ``target`` if the truth of ``value``, which is no ``bool``, is as wanted."""
    answer = branching(frame, value)
    if answer is NotImplemented:
        return steer(frame, jumping(frame, value, wanted, target))
    return target if answer is wanted else None


def jumping(frame: Frame, value: object, wanted: bool, target: int) -> Protocol:
    """Ask ``value`` for its truth and set the frame's next step."""
    answer = yield from truth_of(frame.machine, value)
    if answer is wanted:
        frame.index = target - 1
    return NOTHING


def negate(frame: AnyFrame, value: object) -> Outcome:
    """Push ``not value``."""
    answer = truth_now(frame.machine, value)
    if answer is NotImplemented:
        return start(frame, negating(frame.machine, value))
    frame.stack.append(not answer)
    return None


def negating(machine: Machine, value: object) -> Protocol:
    """``not value`` by way of a Python method."""
    return not (yield from truth_of(machine, value))


def to_bool(frame: AnyFrame, value: object) -> Outcome:
    """Push ``bool(value)``."""
    answer = branching(frame, value)
    if answer is NotImplemented:
        return start(frame, truth_of(frame.machine, value))
    frame.stack.append(answer)
    return None


def jump_or_pop(frame: Frame, stack: list[Any], wanted: bool, target: int) -> Outcome:
    """Jump to ``target`` if the truth of the top is as wanted, and pop it otherwise."""
    value = stack[-1]
    answer = value if value is True or value is False else truth_now(frame.machine, value)
    if answer is NotImplemented:
        return steer(frame, jumping_or_popping(frame, value, wanted, target))
    if answer is wanted:
        return target
    stack.pop()
    return None


def jumping_or_popping(frame: Frame, value: object, wanted: bool, target: int) -> Protocol:
    """Ask ``value`` for its truth; jump or pop."""
    answer = yield from truth_of(frame.machine, value)
    if answer is wanted:
        frame.index = target - 1
    else:
        frame.stack.pop()
    return NOTHING
