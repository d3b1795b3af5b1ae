"""Opcodes that Python 3.12 brought."""

import dis
import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from thunder_interpreter import _attributes, _items, _operators
from thunder_interpreter._classes import super_attribute
from thunder_interpreter._decode import Instruction, constant, fast_name, name_and_flag
from thunder_interpreter._frame import Frame
from thunder_interpreter._generators import AsyncYield
from thunder_interpreter._locals import local_mapping
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import start, steer
from thunder_interpreter._registry import Handler, drop, opcode
from thunder_interpreter.opcodes.exceptions import left_to_raise
from thunder_interpreter.opcodes.flow import leave
from thunder_interpreter.opcodes.functions import importing_all
from thunder_interpreter.opcodes.stack import printing
from thunder_interpreter.opcodes.variables import global_value, load_deref_from, looked_up

keep_builtins(globals())


V312 = (3, 12)
OPCODES = dis.opmap

drop("INTERPRETER_EXIT", "RESERVED", since=V312)


@opcode("LOAD_ATTR", since=V312, until=(3, 13), decode=name_and_flag)
def load_attr(frame: Frame, stack: list[Any], attribute: tuple[str, bool]) -> Outcome:
    """``obj -> obj.name``, or ``obj -> NULL, obj.name`` for a call."""
    obj = stack.pop()
    if attribute[1]:
        stack.append(NULL)
    return _attributes.load(frame, obj, attribute[0])


def super_name(instruction: Instruction) -> tuple[str, bool, bool]:
    """The name of an attribute of ``super()``, whether it is looked up to be called, and if arguments are written."""
    return instruction.code.co_names[instruction.arg >> 2], bool(instruction.arg & 1), bool(instruction.arg & 2)


def super_operands(stack: list[Any], written: bool) -> tuple[Any, list[Any]]:
    """Pop what is called ``super`` and its arguments; another function than the builtin gets those written only."""
    args = stack[-2:]
    del stack[-2:]
    function = stack.pop()
    return function, args if written or function is super else []


@opcode("LOAD_SUPER_ATTR", since=V312, until=(3, 13), decode=super_name)
def load_super_attr(frame: Frame, stack: list[Any], attribute: tuple[str, bool, bool]) -> Outcome:
    """``super, class, self -> super(class, self).name``, with ``NULL`` below for a call."""
    function, args = super_operands(stack, attribute[2])
    if attribute[1]:
        stack.append(NULL)
    return start(frame, super_attribute(function, args, attribute[0]))


@opcode("RETURN_CONST", since=V312, decode=constant)
def return_const(frame: Frame, stack: list[Any], value: object) -> Outcome:
    """Return a constant."""
    return leave(frame, value)


@opcode("END_FOR", since=V312, until=(3, 13))
def end_for(frame: Frame, stack: list[Any], _: object) -> None:
    """``iterator, value ->``."""
    del stack[-2:]


@opcode("END_SEND", since=V312)
def end_send(frame: Frame, stack: list[Any], _: object) -> None:
    """``receiver, value -> value``."""
    del stack[-2]


@opcode("CLEANUP_THROW", since=V312)
def cleanup_throw(frame: Frame, stack: list[Any], _: object) -> None:
    """``receiver, sent, error -> NULL, value`` of a ``StopIteration``; raises any other error again."""
    error = stack[-1]
    if not isinstance(error, StopIteration):
        frame.reraising = -1
        raise error
    stack[-3:] = [NULL, error.value]


@opcode("LOAD_FAST_AND_CLEAR", since=V312)
def load_fast_and_clear(frame: Frame, stack: list[Any], index: int) -> None:
    """``-> value`` (or ``NULL``), and unbind the variable."""
    stack.append(frame.locals[index])
    frame.locals[index] = NULL


@opcode("LOAD_LOCALS", since=V312)
def load_locals(frame: Frame, stack: list[Any], _: object) -> None:
    """``-> namespace``."""
    stack.append(local_mapping(frame))


@opcode("LOAD_FROM_DICT_OR_DEREF", since=V312, decode=fast_name)
def load_from_dict_or_deref(frame: Frame, stack: list[Any], variable: tuple[int, str]) -> None:
    """``namespace -> value``, out of the namespace or a cell."""
    load_deref_from(frame, stack, stack.pop(), variable)


@opcode("LOAD_FROM_DICT_OR_GLOBALS", since=V312, decode=lambda i: i.code.co_names[i.arg])
def load_from_dict_or_globals(frame: Frame, stack: list[Any], name: str) -> None:
    """``namespace -> value``, out of the namespace, the globals or the builtins."""
    value = looked_up(stack.pop(), name)
    stack.append(global_value(frame, name) if value is NULL else value)


@opcode("BINARY_SLICE", since=V312)
def binary_slice(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``container, start, stop -> container[start:stop]``."""
    key = slice(*stack[-2:])
    del stack[-2:]
    return _items.subscript(frame, stack.pop(), key)


@opcode("STORE_SLICE", since=V312)
def store_slice(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value, container, start, stop ->``."""
    key = slice(*stack[-2:])
    del stack[-2:]
    container = stack.pop()
    return _items.store_item_then_drop(frame, container, key, stack.pop())


INTRINSICS: dict[int, Handler] = {}


def intrinsic(number: int) -> Callable[[Handler], Handler]:
    """Register a unary intrinsic function."""

    def register(handler: Handler) -> Handler:
        INTRINSICS[number] = handler
        return handler

    return register


@opcode("CALL_INTRINSIC_1", since=V312, decode=lambda instruction: INTRINSICS[instruction.arg])
def call_intrinsic_1(frame: Frame, stack: list[Any], handler: Handler) -> Outcome:
    """``value -> intrinsic(value)``."""
    return handler(frame, stack, stack.pop())


@intrinsic(1)
def print_value(frame: Frame, stack: list[Any], value: object) -> Outcome:
    """Show a value as the interactive prompt does."""
    stack.append(None)
    return steer(frame, printing(value))


@intrinsic(2)
def import_star(frame: Frame, stack: list[Any], module: object) -> Outcome:
    """Import all public names."""
    stack.append(None)
    return steer(frame, importing_all(frame, module))


@intrinsic(3)
def stopiteration_error(frame: Frame, stack: list[Any], error: Any) -> None:
    """Turn a ``StopIteration`` that leaves a generator into a ``RuntimeError``."""
    flags = frame.program.flags
    kind = "async generator" if flags & 0x200 else "coroutine" if flags & 0x80 else "generator"
    name = ""
    if isinstance(error, StopIteration):
        name = "StopIteration"
    elif flags & 0x200 and isinstance(error, StopAsyncIteration):
        name = "StopAsyncIteration"
    if not name:
        stack.append(error)
        return
    wrapped = RuntimeError(f"{kind} raised {name}")
    wrapped.__cause__ = wrapped.__context__ = error
    stack.append(wrapped)


@intrinsic(4)
def async_gen_wrap(frame: Frame, stack: list[Any], value: object) -> None:
    """Tell what is yielded from what is awaited."""
    stack.append(AsyncYield(value))


@intrinsic(5)
def unary_positive(frame: Frame, stack: list[Any], value: object) -> Outcome:
    """``+value``."""
    return _operators.unary(frame, "+", value)


@intrinsic(6)
def list_to_tuple(frame: Frame, stack: list[Any], value: Any) -> None:
    """``tuple(value)``."""
    stack.append(tuple(value))


@functools.cache
def native_intrinsic(name: str, number: int) -> CodeType:
    """Code of a function that does nothing but an intrinsic: Python offers no other way to call one."""
    count = int(name[-1])
    template = (lambda a: a) if count == 1 else (lambda a, b: a)  # noqa: ARG005
    loads = [byte for index in range(count) for byte in (OPCODES["LOAD_FAST"], index)]
    code = [OPCODES["RESUME"], 0, *loads, OPCODES[name], number, OPCODES["RETURN_VALUE"], 0]
    return template.__code__.replace(co_code=bytes(code), co_stacksize=count, co_linetable=b"")


def in_typing(name: str, number: int) -> Callable[..., Any]:
    """What does an intrinsic of type parameters and aliases natively, as the frame's function would."""

    def run(frame: Frame, *operands: Any) -> Any:
        return FunctionType(native_intrinsic(name, number), frame.globals)(*operands)

    return run


def push_of(run: Callable[..., Any]) -> Handler:
    """A handler that pushes what ``run`` makes of a value."""

    def handler(frame: Frame, stack: list[Any], value: object) -> None:
        stack.append(run(frame, value))

    return handler


TYPING = {7: "TypeVar", 8: "ParamSpec", 9: "TypeVarTuple", 10: "Generic[...]", 11: "type alias"}
INTRINSICS.update({number: push_of(in_typing("CALL_INTRINSIC_1", number)) for number in TYPING})


@opcode("CALL_INTRINSIC_2", since=V312, decode=lambda instruction: BINARY_INTRINSICS[instruction.arg])
def call_intrinsic_2(frame: Frame, stack: list[Any], handler: Any) -> None:
    """``a, b -> intrinsic(a, b)``."""
    b = stack.pop()
    stack.append(handler(frame, stack.pop(), b))


def prep_reraise_star(frame: Frame, original: Any, errors: Any) -> Any:
    """What is left of a group after its ``except*`` clauses."""
    return left_to_raise(original, errors)


TYPING_BINARY = {2: "a bound", 3: "constraints", 4: "type parameters of a function"}
BINARY_INTRINSICS: dict[int, Callable[..., Any]] = {
    1: prep_reraise_star,
    **{number: in_typing("CALL_INTRINSIC_2", number) for number in TYPING_BINARY},
}
