"""Operators, comparisons, truth, subscription and containment on objects whose classes define them in Python."""

import operator
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from thunder_interpreter._calls import Outcome, reported
from thunder_interpreter._frame import AnyFrame, Frame
from thunder_interpreter._null import NOTHING, NULL
from thunder_interpreter._observing import run_natively, with_keys
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, method_call, start, steer
from thunder_interpreter._types import HEAP_TYPE, python_function, raw_attribute
from thunder_interpreter._waiting import AnswerFrame

if TYPE_CHECKING:
    from thunder_interpreter._machine import Machine

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


def is_plain(machine: "Machine", cls: type) -> bool:
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


def native_binary(frame: AnyFrame, fn: Callable[[Any, Any], Any], a: Any, b: Any) -> Outcome:
    """Push ``fn(a, b)``, and report the call."""
    frame.stack.append(reported(frame.machine, fn, [a, b], {}))
    return None


def arithmetic(frame: AnyFrame, symbol: str, a: Any, b: Any) -> Outcome:
    """Push ``a <symbol> b`` for operands that may define the operator in Python; ``symbol`` may end in ``=``."""
    machine = frame.machine
    plain = symbol.removesuffix("=")
    native, name = ARITHMETIC[plain]
    inplace = INPLACE[symbol] if plain != symbol else None
    candidates = binary_candidates(machine, a, b, f"__{name}__", f"__r{name}__")
    if inplace is not None:
        method = raw_attribute(type(a), f"__i{name}__", NULL)
        if method is not NULL:
            candidates.insert(0, (method, a, b))
    if not any(python_function(machine, method) for method, _, _ in candidates):
        return native_binary(frame, inplace or native, a, b)
    if machine.special_methods is not None:
        machine.special_methods(inplace or native, [a, b])
    method, receiver, argument = candidates[0]
    rest = trying(machine, candidates[1:], symbol, a, b)
    if python_function(machine, method):
        waiting = AnswerFrame(frame, rest)
        outcome = machine.call(waiting, method, [receiver, argument], {})
        return waiting if outcome is None else outcome
    return start(frame, trying(machine, candidates, symbol, a, b))


SEQUENCE = (list, tuple, str, bytes, bytearray)


def binary_candidates(machine: "Machine", a: Any, b: Any, name: str, reflected: str) -> list[tuple[Any, Any, Any]]:
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
        if last or (right is not left and issubclass(right, left) and overrides):
            candidates.insert(0, (other, b, a))
        else:
            candidates.append((other, b, a))
    return candidates


def trying(machine: "Machine", candidates: list[tuple[Any, Any, Any]], symbol: str, a: Any, b: Any) -> Protocol:
    """Call the candidates until one answers."""
    for method, receiver, argument in candidates:
        result = yield method_call(method, receiver, argument)
        if result is not NotImplemented:
            return result
    shown = "** or pow()" if symbol == "**" else symbol
    raise TypeError(f"unsupported operand type(s) for {shown}: '{type(a).__name__}' and '{type(b).__name__}'")


def compare(frame: AnyFrame, symbol: str, a: Any, b: Any) -> Outcome:
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
        return native_binary(frame, COMPARE[symbol], a, b)
    if machine.special_methods is not None:
        machine.special_methods(COMPARE[symbol], [a, b])
    first = right is not left and issubclass(right, left)
    candidates = [(other, b, a), (method, a, b)] if first else [(method, a, b), (other, b, a)]
    return start(frame, comparing(candidates, symbol, a, b))


OBJECT_NE = object.__dict__["__ne__"]


def comparing(candidates: list[tuple[Any, Any, Any]], symbol: str, a: Any, b: Any) -> Protocol:
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

    def __init__(self, value: Any) -> None:
        self.value = value

    def _result(self, *_: Any) -> Any:
        return self.value

    __bool__ = __len__ = __index__ = __int__ = __float__ = __complex__ = __repr__ = __str__ = _result
    __hash__ = __bytes__ = __length_hint__ = _result
    __format__ = __dir__ = _result


def unary(frame: AnyFrame, symbol: str, value: Any) -> Outcome:
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


def truth_method(machine: "Machine", value: Any) -> tuple[Any, str] | None:
    """The Python method that decides whether ``value`` is true, if there is one."""
    cls = type(value)
    method = raw_attribute(cls, "__bool__")
    if method is None:
        method = raw_attribute(cls, "__len__")
        return (method, "__len__") if python_function(machine, method) else None
    return (method, "__bool__") if python_function(machine, method) else None


def truth_now(machine: "Machine", value: Any) -> Any:
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


def truth_of(machine: "Machine", value: Any) -> Protocol:
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


def branching(frame: AnyFrame, value: Any) -> Any:
    """As ``truth_now``, for a value that the code branches on."""
    if frame.machine.branch is not None and type(frame) is Frame:
        program = frame.program
        answer = frame.machine.branch(value, program.code, program.offsets[frame.index])
        if answer is not NotImplemented:
            return answer
    return truth_now(frame.machine, value)


def jump_if(frame: Frame, value: Any, wanted: bool, target: int) -> Outcome:
    """Jump to ``target`` if the truth of ``value``, which is no ``bool``, is as wanted."""
    answer = branching(frame, value)
    if answer is NotImplemented:
        return steer(frame, jumping(frame, value, wanted, target))
    return target if answer is wanted else None


def jumping(frame: Frame, value: Any, wanted: bool, target: int) -> Protocol:
    """Ask ``value`` for its truth and set the frame's next step."""
    answer = yield from truth_of(frame.machine, value)
    if answer is wanted:
        frame.index = target - 1
    return NOTHING


def contains(frame: AnyFrame, item: Any, container: Any, invert: bool) -> Outcome:
    """Push ``item in container`` (or ``not in``)."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, (dict, set, frozenset)):
        item = machine.key(container, item)
    method = raw_attribute(type(container), "__contains__")
    if machine.special_methods is not None:
        machine.special_methods(operator.contains, [container, item])
    if python_function(machine, method):
        return start(frame, containing(machine, Call(method, container, item), invert))
    if method is None and "__contains__" not in dir(type(container)):
        iterate = raw_attribute(type(container), "__iter__")
        if python_function(machine, iterate):
            return start(frame, searching(machine, container, item, invert))
    result = reported(machine, operator.contains, [container, item], {})
    frame.stack.append(not result if invert else result)
    return None


def containing(machine: "Machine", request: Call, invert: bool) -> Protocol:
    """Call ``__contains__`` and take the truth of its answer."""
    answer = yield Call(bool, (yield request))
    return not answer if invert else answer


def searching(machine: "Machine", container: Any, item: Any, invert: bool) -> Protocol:
    """Look for ``item`` by iterating over ``container``."""
    iterator = yield Call(iter, container)
    while True:
        try:
            value = yield Call(next, iterator)
        except StopIteration:
            return invert
        if value is item or (yield Call(bool, (yield Call(operator.eq, value, item)))):
            return not invert


def subscript(frame: AnyFrame, container: Any, key: Any) -> Outcome:
    """Push ``container[key]`` where a class may define it in Python."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    cls = type(container)
    method = raw_attribute(cls, "__getitem__")
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(operator.getitem, [container, key])
        return machine.call(frame, method, [container, key], {})
    if method is None and isinstance(container, type):
        hook = raw_attribute(container, "__class_getitem__")
        inner = getattr(hook, "__func__", None)
        if type(hook) is classmethod and python_function(machine, inner):
            return machine.call(frame, inner, [container, key], {})
    if isinstance(container, dict) and cls is not dict:
        missing = raw_attribute(cls, "__missing__")
        if python_function(machine, missing) and method is dict.__dict__["__getitem__"] and key not in container:
            if machine.special_methods is not None:
                machine.special_methods(operator.getitem, [container, key])
            return machine.call(frame, missing, [container, key], {})
    return native_subscript(frame, container, key)


CONTAINERS = frozenset({list, tuple, dict, str, bytes, bytearray, range})


def native_subscript(frame: AnyFrame, container: Any, key: Any) -> Outcome:
    """Push ``container[key]``, and report it as an item of a builtin container or as an opaque call."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    if type(container) in CONTAINERS:
        try:
            value = with_keys(machine, operator.getitem, [container, key], [key])
        except LookupError:
            if machine.missing_item is not None:
                machine.missing_item(container, key)
            raise
        if machine.load_item is not None:
            value = machine.load_item(container, key, value)
        frame.stack.append(value)
        return None
    return native_binary(frame, operator.getitem, container, key)


def store_item(frame: AnyFrame, container: Any, key: Any, value: Any) -> Outcome:
    """Set an item; a call that does it leaves its result on the stack, for the caller to drop."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    method = raw_attribute(type(container), "__setitem__")
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(operator.setitem, [container, key, value])
        return machine.call(frame, method, [container, key, value], {})
    if type(container) in MUTABLE:
        if machine.store_item is not None:
            machine.store_item(container, key, value)
        with_keys(machine, operator.setitem, [container, key, value], [key])
    else:
        if machine.opaque_call is not None:
            machine.opaque_call(operator.setitem, [container, key, value], {})
        run_natively(machine, operator.setitem, [container, key, value], {})
    frame.stack.append(None)
    return None


MUTABLE = frozenset({list, dict, bytearray})


def delete_item(frame: AnyFrame, container: Any, key: Any) -> Outcome:
    """Delete an item; as ``store_item`` otherwise."""
    machine = frame.machine
    if machine.key is not None and isinstance(container, dict):
        key = machine.key(container, key)
    method = raw_attribute(type(container), "__delitem__")
    if python_function(machine, method):
        if machine.special_methods is not None:
            machine.special_methods(operator.delitem, [container, key])
        return machine.call(frame, method, [container, key], {})
    if type(container) in MUTABLE:
        if machine.delete_item is not None:
            machine.delete_item(container, key)
    elif machine.opaque_call is not None:
        machine.opaque_call(operator.delitem, [container, key], {})
    with_keys(machine, operator.delitem, [container, key], [key])
    frame.stack.append(None)
    return None


def negate(frame: AnyFrame, value: Any) -> Outcome:
    """Push ``not value``."""
    answer = truth_now(frame.machine, value)
    if answer is NotImplemented:
        return start(frame, negating(frame.machine, value))
    frame.stack.append(not answer)
    return None


def negating(machine: "Machine", value: Any) -> Protocol:
    """``not value`` by way of a Python method."""
    return not (yield from truth_of(machine, value))


def to_bool(frame: AnyFrame, value: Any) -> Outcome:
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


def jumping_or_popping(frame: Frame, value: Any, wanted: bool, target: int) -> Protocol:
    """Ask ``value`` for its truth; jump or pop."""
    answer = yield from truth_of(frame.machine, value)
    if answer is wanted:
        frame.index = target - 1
    else:
        frame.stack.pop()
    return NOTHING


def store_item_then_drop(frame: AnyFrame, container: Any, key: Any, value: Any) -> Outcome:
    """Set an item, and leave nothing on the stack."""
    return steer(frame, storing(frame, container, key, value))


def storing(frame: AnyFrame, container: Any, key: Any, value: Any) -> Protocol:
    """Set an item for its effect."""
    yield Call(operator.setitem, container, key, value)
    return NOTHING
