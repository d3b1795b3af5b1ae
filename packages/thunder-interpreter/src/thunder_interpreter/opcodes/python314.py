"""Opcodes that Python 3.14 brought or changed."""

import importlib
from typing import Any

from thunder_interpreter._calls import call
from thunder_interpreter._decode import Instruction
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._native_callables import tell_of_special
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import drop, opcode, rename, serves
from thunder_interpreter._types import raw_attribute
from thunder_interpreter.opcodes.calls import call_spread
from thunder_interpreter.opcodes.exceptions import special_method
from thunder_interpreter.opcodes.python313 import load_fast_load_fast, two_variables
from thunder_interpreter.opcodes.stack import load_const, load_const_watched, pop_top
from thunder_interpreter.opcodes.variables import load_fast

keep_builtins(globals())


V314 = (3, 14)

drop("NOT_TAKEN", since=V314)
rename("BINARY_OP", 26, "BINARY_SUBSCR", since=V314)

opcode("POP_ITER", since=V314)(pop_top)
opcode("LOAD_FAST_BORROW", since=V314)(load_fast)
opcode("LOAD_FAST_BORROW_LOAD_FAST_BORROW", since=V314, decode=two_variables)(load_fast_load_fast)
opcode("LOAD_SMALL_INT", since=V314)(load_const)
opcode("LOAD_SMALL_INT", since=V314, watch=("constant",))(load_const_watched)


COMMON = (AssertionError, NotImplementedError, tuple, all, any)


@opcode("LOAD_COMMON_CONSTANT", since=V314, decode=lambda instruction: COMMON[instruction.arg])
def load_common_constant(frame: Frame, stack: list[Any], value: object) -> None:
    """``-> value``."""
    stack.append(value)


@opcode("CALL_FUNCTION_EX", since=V314)
def call_function_ex(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``fn, NULL, args, kwargs -> result``, with ``NULL`` for no keywords."""
    kwargs = stack.pop()
    args = stack.pop()
    stack.pop()
    return call_spread(frame, stack.pop(), args, {} if kwargs is NULL else kwargs)


MANAGER, ASYNC_MANAGER = "context manager", "asynchronous context manager"
ENTERING = (("__enter__", "__exit__"), ("__aenter__", "__aexit__"))


def special_name(instruction: Instruction) -> tuple[str, bool]:
    """The name of a special method of a context manager, and whether of an asynchronous one."""
    return (*ENTERING[0], *ENTERING[1])[instruction.arg], instruction.arg > 1


@opcode("LOAD_SPECIAL", since=V314, decode=special_name)
def load_special(frame: Frame, stack: list[Any], special: tuple[str, bool]) -> None:
    """``manager -> method, NULL``."""
    name, waits = special
    manager = stack.pop()
    tell_of_special(frame.machine, manager, name)
    method = special_method(manager, name)
    if method is None:
        raise no_manager(type(manager), name, waits)
    stack.append(method)
    stack.append(NULL)


def no_manager(cls: type, name: str, waits: bool) -> TypeError:
    """The error of a ``with`` statement, which knows the other kind of managers."""
    kinds = (ASYNC_MANAGER, MANAGER) if waits else (MANAGER, ASYNC_MANAGER)
    module = cls.__module__
    shown = cls.__qualname__ if module in ("builtins", "__main__") else f"{module}.{cls.__qualname__}"
    text = f"'{shown}' object does not support the {kinds[0]} protocol (missed {name} method)"
    if all(raw_attribute(cls, other) is not None for other in ENTERING[not waits]):
        word = "with" if waits else "async with"
        text += f" but it supports the {kinds[1]} protocol. Did you mean to use '{word}'?"
    return TypeError(text)


@opcode("WITH_EXCEPT_START", since=V314)
def with_except_start(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``exit, NULL, offset, previous, error -> ..., result`` of ``exit(type, error, traceback)``."""
    error = stack[-1]
    return call(frame, stack[-5], [type(error), error, error.__traceback__], {})


TEMPLATES: Any = importlib.import_module("string.templatelib") if serves(V314, None) else None
CONVERSIONS = (None, "s", "r", "a")


@opcode("BUILD_INTERPOLATION", since=V314)
def build_interpolation(frame: Frame, stack: list[Any], flags: int) -> None:
    """``value, text[, spec] -> interpolation``."""
    spec = stack.pop() if flags & 1 else ""
    text = stack.pop()
    stack.append(TEMPLATES.Interpolation(stack.pop(), text, CONVERSIONS[flags >> 2], spec))


@opcode("BUILD_TEMPLATE", since=V314)
def build_template(frame: Frame, stack: list[Any], _: object) -> None:
    """``strings, interpolations -> template``."""
    interpolations = stack.pop()
    strings = stack.pop()
    parts = [part for pair in zip(strings, interpolations, strict=False) for part in pair]
    stack.append(TEMPLATES.Template(*parts, *strings[len(interpolations) :]))
