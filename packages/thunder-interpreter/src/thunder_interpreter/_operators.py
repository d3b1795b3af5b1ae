"""Arithmetic and comparisons of objects whose classes define them in Python."""

import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from thunder_interpreter._calls import reported
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._machine import Machine, Outcome
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, method_call, start
from thunder_interpreter._types import HEAP_TYPE, derives, python_function, raw_attribute
from thunder_interpreter._waiting import AnswerFrame

keep_builtins(globals())


ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "+": (operator.add, "add"),
    "&": (operator.and_, "and"),
    "//": (operator.floordiv, "floordiv"),
    "<<": (operator.lshift, "lshift"),
    "@": (operator.matmul, "matmul"),
    "*": (operator.mul, "mul"),
    "%": (operator.mod, "mod"),
    "|": (operator.or_, "or"),
    "**": (operator.pow, "pow"),
    ">>": (operator.rshift, "rshift"),
    "-": (operator.sub, "sub"),
    "/": (operator.truediv, "truediv"),
    "^": (operator.xor, "xor"),
}


INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "&=": operator.iand,
    "//=": operator.ifloordiv,
    "<<=": operator.ilshift,
    "@=": operator.imatmul,
    "*=": operator.imul,
    "%=": operator.imod,
    "|=": operator.ior,
    "**=": operator.ipow,
    ">>=": operator.irshift,
    "-=": operator.isub,
    "/=": operator.itruediv,
    "^=": operator.ixor,
}


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


COMPARE_NAMES = {
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    "==": ("__eq__", "__eq__"),
    "!=": ("__ne__", "__ne__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}


UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}


SPECIAL_NAMES = (
    *(f"__{prefix}{name}__" for _, name in ARITHMETIC.values() for prefix in ("", "r", "i")),
    *(name for name, _ in COMPARE_NAMES.values()),
    *(name for _, name in UNARY.values()),
    *("__bool__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__next__"),
    *("__hash__", "__index__", "__int__", "__float__", "__complex__", "__abs__", "__round__", "__trunc__"),
    *("__floor__", "__ceil__", "__divmod__", "__rdivmod__", "__reversed__", "__length_hint__", "__missing__"),
    *("__repr__", "__str__", "__format__", "__bytes__", "__await__", "__aiter__", "__anext__", "__dir__"),
)


def is_plain(machine: Machine, cls: type) -> bool:
    """Whether no operator on instances of ``cls`` runs Python code that would be interpreted.

    The answer is kept, in ``machine.plain`` when it is yes.
    """
    if cls in machine.plain:
        return True
    if cls in machine.peculiar:
        return False
    if cls.__flags__ & HEAP_TYPE:
        for name in SPECIAL_NAMES:
            if python_function(machine, raw_attribute(cls, name)):
                machine.peculiar.add(cls)
                return False
    machine.plain.add(cls)
    return True


def native_binary(frame: AnyFrame, fn: Callable[[Any, Any], Any], a: object, b: object) -> Outcome:
    """Push ``fn(a, b)``, and report the call."""
    frame.stack.append(reported(frame.machine, fn, [a, b], {}))
    return None


def native_arithmetic(frame: AnyFrame, fn: Callable[[Any, Any], Any], a: object, b: object) -> Outcome:
    """Push ``fn(a, b)``, or what a watcher makes of it."""
    return native_or_answered(frame, frame.machine.arithmetic, fn, a, b)


def native_comparison(frame: AnyFrame, fn: Callable[[Any, Any], Any], a: object, b: object) -> Outcome:
    """Push ``fn(a, b)``, or what a watcher makes of it."""
    return native_or_answered(frame, frame.machine.compare, fn, a, b)


def native_or_answered(frame: AnyFrame, watcher: Any, fn: Callable[[Any, Any], Any], a: object, b: object) -> Outcome:
    """Push ``fn(a, b)``, or the answer of a watcher, if there is one."""
    if watcher is not None:
        answer = watcher(fn, a, b)
        if answer is not NotImplemented:
            frame.stack.append(answer)
            return None
    return native_binary(frame, fn, a, b)


def arithmetic(frame: AnyFrame, symbol: str, a: object, b: object) -> Outcome:
    """Push ``a <symbol> b`` for operands that may define the operator in Python; ``symbol`` may end in ``=``."""
    machine = frame.machine
    plain = symbol.removesuffix("=")
    native, name = ARITHMETIC[plain]
    inplace = INPLACE[symbol] if plain != symbol else None
    candidates = binary_candidates(machine, a, b, f"__{name}__", f"__r{name}__")
    if inplace is not None:
        method = raw_attribute(type(a), f"__i{name}__", NULL)
        if method is not NULL:
            waits = name in ("add", "mul") and issubclass(type(a), SEQUENCE) and type(method) is not FunctionType
            candidates.insert(int(waits and bool(candidates) and candidates[0][1] is b), (method, a, b))
    if not any(python_function(machine, method) for method, _, _ in candidates):
        return native_arithmetic(frame, inplace or native, a, b)
    if machine.special_methods is not None:
        machine.special_methods(inplace or native, [a, b])
    method, receiver, argument = candidates[0]
    rest = trying(machine, candidates[1:], symbol, a, b)
    if python_function(machine, method):
        waiting = AnswerFrame(frame, rest)
        outcome = machine.call(waiting, method, [receiver, argument], {})
        return waiting if outcome is None else outcome
    return start(frame, trying(machine, candidates, symbol, a, b))


SEQUENCE = (list, tuple, str, bytes, bytearray, deque)


def binary_candidates(machine: Machine, a: object, b: object, name: str, reflected: str) -> list[tuple[Any, Any, Any]]:
    """``(method, self, other)`` in the order in which CPython tries them."""
    left, right = type(a), type(b)
    method = raw_attribute(left, name, NULL)
    other = raw_attribute(right, reflected, NULL) if left is not right else NULL
    if method is not NULL and name in ("__add__", "__mul__") and issubclass(left, SEQUENCE):
        last = type(method) is not FunctionType  # concatenation and repetition come after all numeric slots
    else:
        last = False
    candidates = []
    if method is not NULL:
        candidates.append((method, a, b))
    if other is not NULL:
        overrides = other is not raw_attribute(left, reflected)
        if last or (right is not left and derives(right, left) and overrides):
            candidates.insert(0, (other, b, a))
        else:
            candidates.append((other, b, a))
    return candidates


def trying(machine: Machine, candidates: list[tuple[Any, Any, Any]], symbol: str, a: object, b: object) -> Protocol:
    """Call the candidates until one answers."""
    for method, receiver, argument in candidates:
        result = yield method_call(method, receiver, argument)
        if result is not NotImplemented:
            return result
    shown = "** or pow()" if symbol == "**" else symbol
    raise TypeError(f"unsupported operand type(s) for {shown}: '{type(a).__name__}' and '{type(b).__name__}'")


def compare(frame: AnyFrame, symbol: str, a: object, b: object) -> Outcome:
    """Push ``a <symbol> b`` for operands that may define the comparison in Python."""
    machine = frame.machine
    name, reflected = COMPARE_NAMES[symbol]
    left, right = type(a), type(b)
    method, other = raw_attribute(left, name, NULL), raw_attribute(right, reflected, NULL)
    if symbol == "!=":
        interpreted = any(
            python_function(machine, raw_attribute(cls, n)) for cls in (left, right) for n in ("__eq__", "__ne__")
        )
    else:
        interpreted = python_function(machine, method) or python_function(machine, other)
    if not interpreted:
        return native_comparison(frame, COMPARE[symbol], a, b)
    if machine.special_methods is not None:
        machine.special_methods(COMPARE[symbol], [a, b])
    first = right is not left and derives(right, left)
    candidates = [(other, b, a), (method, a, b)] if first else [(method, a, b), (other, b, a)]
    return start(frame, comparing(candidates, symbol, a, b))


OBJECT_NE = object.__dict__["__ne__"]


def comparing(candidates: list[tuple[Any, Any, Any]], symbol: str, a: object, b: object) -> Protocol:
    """Call the candidates until one answers; identity decides about equality otherwise."""
    for method, receiver, argument in candidates:
        if method is NULL:
            continue
        if method is OBJECT_NE:
            result = yield method_call(raw_attribute(type(receiver), "__eq__"), receiver, argument)
            if result is not NotImplemented:
                return not (yield Call(bool, result))
            continue
        result = yield method_call(method, receiver, argument)
        if result is not NotImplemented:
            return result
    if symbol == "==":
        return a is b
    if symbol == "!=":
        return a is not b
    names = f"'{type(a).__name__}' and '{type(b).__name__}'"
    raise TypeError(f"'{symbol}' not supported between instances of {names}")


class Shim:
    """Hands the result of an interpreted special method to the C function that checks and converts it."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def _result(self, *_: Any) -> Any:
        return self.value

    __bool__ = __len__ = __index__ = __int__ = __float__ = __complex__ = __repr__ = __str__ = _result
    __hash__ = __bytes__ = __length_hint__ = _result
    __format__ = __dir__ = _result


def unary(frame: AnyFrame, symbol: str, value: object) -> Outcome:
    """Push ``<symbol>value``."""
    machine = frame.machine
    native, name = UNARY[symbol]
    method = raw_attribute(type(value), name)
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(native, [value])
        return machine.call(frame, method, [value], {})
    frame.stack.append(reported(machine, native, [value], {}))
    return None
