"""Arithmetic, comparison, containment and truth."""

from typing import Any

from thunder_interpreter import _items, _operators, _truth
from thunder_interpreter._bridges import as_operand
from thunder_interpreter._decode import Instruction
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._operators import ARITHMETIC, COMPARE, INPLACE, UNARY
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import opcode

keep_builtins(globals())


SYMBOLS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")


def binary_symbol(instruction: Instruction) -> tuple[str, Any]:
    """The symbol of a binary operator, with the C function that does it."""
    if instruction.arg < len(SYMBOLS):
        symbol = SYMBOLS[instruction.arg]
        return symbol, ARITHMETIC[symbol][0]
    symbol = SYMBOLS[instruction.arg - len(SYMBOLS)] + "="
    return symbol, INPLACE[symbol]


@opcode("BINARY_OP", decode=binary_symbol)
def binary_op(frame: Frame, stack: list[Any], operation: tuple[str, Any]) -> Outcome:
    """``a, b -> a <symbol> b``."""
    b = stack.pop()
    a = stack.pop()
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        stack.append(operation[1](a, b))
        return None
    return binary_slow(frame, operation, a, b)


@opcode("BINARY_OP", decode=binary_symbol, watch=("opaque_call", "opaque_result", "arithmetic"))
def binary_slow_watched(frame: Frame, stack: list[Any], operation: tuple[str, Any]) -> Outcome:
    """``a, b -> a <symbol> b``."""
    b = stack.pop()
    return binary_slow(frame, operation, stack.pop(), b)


def binary_slow(frame: Frame, operation: tuple[str, Any], a: object, b: object) -> Outcome:
    """A binary operator on objects that have not been seen yet, or define it in Python."""
    machine = frame.machine
    if _operators.is_plain(machine, type(a)) and _operators.is_plain(machine, type(b)):
        return _operators.native_arithmetic(frame, operation[1], a, b)
    return _operators.arithmetic(frame, operation[0], a, as_operand(machine, operation[0], a, b))


def comparison_symbol(shift: int) -> Any:
    """A decoder of comparison operators, whose oparg has them ``shift`` bits up."""
    symbols = ("<", "<=", "==", "!=", ">", ">=")

    def decode(instruction: Instruction) -> tuple[str, Any]:
        symbol = symbols[instruction.arg >> shift]
        return symbol, COMPARE[symbol]

    return decode


@opcode("COMPARE_OP", until=(3, 12), decode=comparison_symbol(0))
@opcode("COMPARE_OP", since=(3, 12), until=(3, 13), decode=comparison_symbol(4))
@opcode("COMPARE_OP", since=(3, 13), decode=comparison_symbol(5))  # the jump that follows asks for the truth
def compare_op(frame: Frame, stack: list[Any], operation: tuple[str, Any]) -> Outcome:
    """``a, b -> a <symbol> b``."""
    b = stack.pop()
    a = stack.pop()
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        stack.append(operation[1](a, b))
        return None
    return compare_slow(frame, operation, a, b)


COMPARING = ("opaque_call", "opaque_result", "compare")


@opcode("COMPARE_OP", until=(3, 12), decode=comparison_symbol(0), watch=COMPARING)
@opcode("COMPARE_OP", since=(3, 12), until=(3, 13), decode=comparison_symbol(4), watch=COMPARING)
@opcode("COMPARE_OP", since=(3, 13), decode=comparison_symbol(5), watch=COMPARING)
def compare_watched(frame: Frame, stack: list[Any], operation: tuple[str, Any]) -> Outcome:
    """``a, b -> a <symbol> b``."""
    b = stack.pop()
    return compare_slow(frame, operation, stack.pop(), b)


def compare_slow(frame: Frame, operation: tuple[str, Any], a: object, b: object) -> Outcome:
    """A comparison of objects that have not been seen yet, or define it in Python."""
    machine = frame.machine
    if _operators.is_plain(machine, type(a)) and _operators.is_plain(machine, type(b)):
        return _operators.native_comparison(frame, operation[1], a, b)
    return _operators.compare(frame, operation[0], a, b)


@opcode("CONTAINS_OP")
def contains_op(frame: Frame, stack: list[Any], invert: int) -> Outcome:
    """``item, container -> item in container`` (or ``not in``)."""
    container = stack.pop()
    return _items.contains(frame, stack.pop(), container, bool(invert))


@opcode("IS_OP")
def is_op(frame: Frame, stack: list[Any], invert: int) -> None:
    """``a, b -> a is b`` (or ``is not``)."""
    b = stack.pop()
    same = stack.pop() is b
    stack.append(not same if invert else same)


@opcode("IS_OP", watch=("identical",))
def is_watched(frame: Frame, stack: list[Any], invert: int) -> None:
    """``a, b -> a is b`` (or ``is not``)."""
    b = stack.pop()
    same = frame.machine.identical(stack.pop(), b)
    stack.append(not same if invert else same)


@opcode("UNARY_NEGATIVE", decode=lambda _: "-")
@opcode("UNARY_POSITIVE", until=(3, 12), decode=lambda _: "+")
@opcode("UNARY_INVERT", decode=lambda _: "~")
def unary(frame: Frame, stack: list[Any], symbol: str) -> Outcome:
    """``a -> <symbol>a``."""
    value = stack.pop()
    if type(value) in frame.machine.plain and frame.machine.opaque_call is None:
        stack.append(UNARY[symbol][0](value))
        return None
    return _operators.unary(frame, symbol, value)


@opcode("UNARY_NOT")
def unary_not(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``a -> not a``."""
    value = stack.pop()
    if value is True or value is False:
        stack.append(not value)
        return None
    return _truth.negate(frame, value)
