"""Jumps, loops and returns."""

from typing import Any

from thunder_interpreter import _generators, _iteration, _truth
from thunder_interpreter._decode import Instruction, jump_backward, jump_forward
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import opcode

keep_builtins(globals())


@opcode("JUMP_FORWARD", decode=jump_forward)
@opcode("JUMP_BACKWARD", decode=jump_backward)
@opcode("JUMP_BACKWARD_NO_INTERRUPT", decode=jump_backward)
def jump(frame: Frame, stack: list[Any], target: int) -> int:
    """Go to ``target``."""
    return target


@opcode("POP_JUMP_FORWARD_IF_FALSE", until=(3, 12), decode=jump_forward)
@opcode("POP_JUMP_BACKWARD_IF_FALSE", until=(3, 12), decode=jump_backward)
@opcode("POP_JUMP_IF_FALSE", since=(3, 12), decode=jump_forward)
def pop_jump_if_false(frame: Frame, stack: list[Any], target: int) -> Outcome:
    """``condition ->``; jumps to ``target`` if it is false."""
    value = stack.pop()
    if value is True:
        return None
    if value is False:
        return target
    return _truth.jump_if(frame, value, False, target)


@opcode("POP_JUMP_FORWARD_IF_TRUE", until=(3, 12), decode=jump_forward)
@opcode("POP_JUMP_BACKWARD_IF_TRUE", until=(3, 12), decode=jump_backward)
@opcode("POP_JUMP_IF_TRUE", since=(3, 12), decode=jump_forward)
def pop_jump_if_true(frame: Frame, stack: list[Any], target: int) -> Outcome:
    """``condition ->``; jumps to ``target`` if it is true."""
    value = stack.pop()
    if value is False:
        return None
    if value is True:
        return target
    return _truth.jump_if(frame, value, True, target)


@opcode("POP_JUMP_FORWARD_IF_NONE", until=(3, 12), decode=jump_forward)
@opcode("POP_JUMP_BACKWARD_IF_NONE", until=(3, 12), decode=jump_backward)
@opcode("POP_JUMP_IF_NONE", since=(3, 12), decode=jump_forward)
def pop_jump_if_none(frame: Frame, stack: list[Any], target: int) -> int | None:
    """``value ->``; jumps to ``target`` if it is ``None``."""
    return target if stack.pop() is None else None


@opcode("POP_JUMP_FORWARD_IF_NOT_NONE", until=(3, 12), decode=jump_forward)
@opcode("POP_JUMP_BACKWARD_IF_NOT_NONE", until=(3, 12), decode=jump_backward)
@opcode("POP_JUMP_IF_NOT_NONE", since=(3, 12), decode=jump_forward)
def pop_jump_if_not_none(frame: Frame, stack: list[Any], target: int) -> int | None:
    """``value ->``; jumps to ``target`` unless it is ``None``."""
    return None if stack.pop() is None else target


@opcode("JUMP_IF_FALSE_OR_POP", until=(3, 12), decode=jump_forward)
def jump_if_false_or_pop(frame: Frame, stack: list[Any], target: int) -> Outcome:
    """Jumps to ``target`` if the top is false, pops it otherwise."""
    return _truth.jump_or_pop(frame, stack, False, target)


@opcode("JUMP_IF_TRUE_OR_POP", until=(3, 12), decode=jump_forward)
def jump_if_true_or_pop(frame: Frame, stack: list[Any], target: int) -> Outcome:
    """Jumps to ``target`` if the top is true, pops it otherwise."""
    return _truth.jump_or_pop(frame, stack, True, target)


@opcode("GET_ITER")
def get_iter(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``iterable -> iterator``."""
    return _iteration.iterate(frame, stack.pop())


def after_loop(instruction: Instruction) -> int:
    """The step after a loop: beyond ``END_FOR``, which drops what the iterator left."""
    return instruction.target(instruction.after + 2 * instruction.arg) + 1


def after_loop_before_pop(instruction: Instruction) -> int:
    """The step after ``END_FOR`` and, since 3.13, what drops the iterator: ``POP_TOP``, or ``POP_ITER``."""
    return instruction.target(instruction.after + 2 * instruction.arg) + 2


opcode("FOR_ITER", until=(3, 12), decode=jump_forward)(_iteration.advance_iterator)
opcode("FOR_ITER", since=(3, 12), until=(3, 13), decode=after_loop)(_iteration.advance_iterator)
opcode("FOR_ITER", since=(3, 13), decode=after_loop_before_pop)(_iteration.advance_iterator)


@opcode("RETURN_VALUE")
def return_value(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value ->``; goes on in the calling frame."""
    back = frame.back
    back.stack.append(stack.pop())  # type: ignore[union-attr]
    return back


@opcode("RETURN_VALUE", watch=("returned",))
@opcode("RETURN_VALUE", resumable=True)
def return_value_watched(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value ->``; goes on in the calling frame."""
    return leave(frame, stack.pop())


def leave(frame: Frame, value: object) -> Outcome:
    """Give ``value`` to the calling frame."""
    watch = frame.machine.on_return
    if watch is not None:
        value = returned(frame, value, watch)
    if frame.program.resumable:
        return _generators.finish(frame, value)
    back = frame.back
    back.stack.append(value)  # type: ignore[union-attr]
    return back


def returned(frame: Frame, value: Any, watch: Any) -> Any:
    """Report the returned value; the callback's answer replaces it."""
    return watch(frame.function, value)
