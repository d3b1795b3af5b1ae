"""Opcodes that only move values on the stack, and those that need no step."""

import sys
from typing import Any

from thunder_interpreter._decode import constant
from thunder_interpreter._frame import Frame
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, steer
from thunder_interpreter._registry import drop, opcode

keep_builtins(globals())


drop("NOP", "CACHE", "RESUME", "EXTENDED_ARG")
drop("PRECALL", until=(3, 12))


@opcode("POP_TOP")
def pop_top(frame: Frame, stack: list[Any], _: object) -> None:
    """``value ->``."""
    stack.pop()


@opcode("PUSH_NULL")
def push_null(frame: Frame, stack: list[Any], _: object) -> None:
    """``-> NULL``."""
    stack.append(NULL)


@opcode("COPY")
def copy(frame: Frame, stack: list[Any], depth: int) -> None:
    """``value, ... -> value, ..., value``, the value ``depth`` below the top."""
    stack.append(stack[-depth])


@opcode("SWAP")
def swap(frame: Frame, stack: list[Any], depth: int) -> None:
    """Exchange the top with the value ``depth`` below."""
    stack[-depth], stack[-1] = stack[-1], stack[-depth]


@opcode("LOAD_CONST", decode=constant)
def load_const(frame: Frame, stack: list[Any], value: object) -> None:
    """``-> value``."""
    stack.append(value)


@opcode("LOAD_CONST", decode=constant, watch=("constant",))
def load_const_watched(frame: Frame, stack: list[Any], value: object) -> None:
    """``-> value``."""
    stack.append(frame.machine.constant(value))


@opcode("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: Frame, stack: list[Any], _: object) -> None:
    """``-> AssertionError``."""
    stack.append(AssertionError)


@opcode("PRINT_EXPR", until=(3, 12))
def print_expr(frame: Frame, stack: list[Any], _: object) -> Any:
    """``value ->``; shows it as the interactive prompt does."""
    return steer(frame, printing(stack.pop()))


def printing(value: object) -> Protocol:
    """Call ``sys.displayhook``."""
    try:
        hook = sys.displayhook
    except AttributeError:
        hook = None
    if hook is None:
        raise RuntimeError("lost sys.displayhook")
    yield Call(hook, value)
    return NOTHING
