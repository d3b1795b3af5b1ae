"""Opcodes that Python 3.13 brought or changed."""

from types import FunctionType
from typing import Any

from thunder_interpreter import _attributes, _truth
from thunder_interpreter._calls import call
from thunder_interpreter._classes import super_attribute
from thunder_interpreter._decode import Instruction, name_and_flag
from thunder_interpreter._frame import Frame
from thunder_interpreter._machine import Outcome
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start
from thunder_interpreter._registry import drop, opcode
from thunder_interpreter.opcodes.calls import call_named, call_positional, call_spread
from thunder_interpreter.opcodes.containers import CONVERSIONS, formatted, merge_keywords
from thunder_interpreter.opcodes.functions import annotate
from thunder_interpreter.opcodes.python312 import BINARY_INTRINSICS, in_typing, super_name, super_operands
from thunder_interpreter.opcodes.variables import find_global, global_value, undefined

keep_builtins(globals())


V313 = (3, 13)

drop("ENTER_EXECUTOR", "EXIT_INIT_CHECK", since=V313)


@opcode("LOAD_GLOBAL", since=V313, decode=name_and_flag)
def load_global(frame: Frame, stack: list[Any], variable: tuple[str, bool]) -> None:
    """``-> value`` or ``-> value, NULL``."""
    name, null = variable
    names = frame.globals
    value = names.get(name, NULL) if type(names) is dict else NULL
    if value is NULL:
        value = find_global(frame, name)
        if value is NULL:
            raise undefined(name)
    stack.append(value)
    if null:
        stack.append(NULL)


@opcode("LOAD_GLOBAL", since=V313, decode=name_and_flag, watch=("load_global",))
def load_global_watched(frame: Frame, stack: list[Any], variable: tuple[str, bool]) -> None:
    """``-> value`` or ``-> value, NULL``."""
    stack.append(global_value(frame, variable[0]))
    if variable[1]:
        stack.append(NULL)


@opcode("CALL_FUNCTION_EX", since=V313, until=(3, 14))
def call_function_ex(frame: Frame, stack: list[Any], flags: int) -> Outcome:
    """``fn, NULL, args -> result``, or ``fn, NULL, args, kwargs -> result``."""
    kwargs = stack.pop() if flags & 1 else {}
    args = stack.pop()
    stack.pop()
    return call_spread(frame, stack.pop(), args, kwargs)


@opcode("DICT_MERGE", since=V313)
def dict_merge(frame: Frame, stack: list[Any], depth: int) -> Outcome:
    """Update the keyword arguments ``depth`` below with the mapping on top."""
    mapping = stack.pop()
    return merge_keywords(frame, stack[-depth], mapping, stack[-depth - 3])


def two_variables(instruction: Instruction) -> tuple[int, int]:
    """Two indices of local variables in one oparg."""
    return instruction.arg >> 4, instruction.arg & 15


@opcode("LOAD_FAST_LOAD_FAST", since=V313, decode=two_variables)
def load_fast_load_fast(frame: Frame, stack: list[Any], indices: tuple[int, int]) -> None:
    """``-> first, second``."""
    variables = frame.locals
    stack.append(variables[indices[0]])
    stack.append(variables[indices[1]])


@opcode("STORE_FAST_LOAD_FAST", since=V313, decode=two_variables)
def store_fast_load_fast(frame: Frame, stack: list[Any], indices: tuple[int, int]) -> None:
    """``stored -> loaded``."""
    frame.locals[indices[0]] = stack[-1]
    stack[-1] = frame.locals[indices[1]]


@opcode("STORE_FAST_STORE_FAST", since=V313, decode=two_variables)
def store_fast_store_fast(frame: Frame, stack: list[Any], indices: tuple[int, int]) -> None:
    """``second, first ->``."""
    frame.locals[indices[0]] = stack.pop()
    frame.locals[indices[1]] = stack.pop()


@opcode("LOAD_ATTR", since=V313, decode=name_and_flag)
def load_attr(frame: Frame, stack: list[Any], attribute: tuple[str, bool]) -> Outcome:
    """``obj -> obj.name``, or ``obj -> obj.name, NULL`` for a call."""
    obj = stack.pop()
    if attribute[1]:
        known = frame.machine.types.get(type(obj))
        if known is None or attribute[0] not in known.native:
            return start(frame, above_null(Call(getattr, obj, attribute[0]), frame))
        outcome = _attributes.load(frame, obj, attribute[0])
        stack.append(NULL)
        return outcome
    return _attributes.load(frame, obj, attribute[0])


def above_null(request: Call, frame: Frame) -> Protocol:
    """Push the result of a call, and ``NULL`` above it."""
    frame.stack.append((yield request))
    return NULL


@opcode("LOAD_SUPER_ATTR", since=V313, decode=super_name)
def load_super_attr(frame: Frame, stack: list[Any], attribute: tuple[str, bool, bool]) -> Outcome:
    """``super, class, self -> super(class, self).name``, with ``NULL`` above for a call."""
    function, args = super_operands(stack, attribute[2])
    lookup = super_attribute(function, args, attribute[0])
    return start(frame, above_null_of(lookup, frame) if attribute[1] else lookup)


def above_null_of(lookup: Protocol, frame: Frame) -> Protocol:
    """Push the result of another protocol, and ``NULL`` above it."""
    frame.stack.append((yield from lookup))
    return NULL


@opcode("TO_BOOL", since=V313)
def to_bool(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value -> bool(value)``."""
    value = stack[-1]
    if value is True or value is False:
        return None
    return _truth.to_bool(frame, stack.pop())


@opcode("END_FOR", since=V313)
def end_for(frame: Frame, stack: list[Any], _: object) -> None:
    """``value ->``."""
    stack.pop()


@opcode("CALL", since=V313)
def call_op(frame: Frame, stack: list[Any], argc: int) -> Outcome:
    """``fn, NULL, *args -> result``, or ``fn, self, *args -> result``."""
    args = pop_arguments(stack, argc)
    return call_positional(frame, stack.pop(), args)


def pop_arguments(stack: list[Any], argc: int) -> list[Any]:
    """Pop the arguments and what lies below them, the first argument or ``NULL``."""
    if argc == 1:
        args = [stack.pop()]
    elif argc:
        args = stack[-argc:]
        del stack[-argc:]
    else:
        args = []
    first = stack.pop()
    if first is not NULL:
        args.insert(0, first)
    return args


@opcode("CALL_KW", since=V313)
def call_kw(frame: Frame, stack: list[Any], argc: int) -> Outcome:
    """As ``CALL``, with the names of the last arguments on top."""
    keywords = stack.pop()
    args = pop_arguments(stack, argc)
    return call_named(frame, stack.pop(), args, keywords)


@opcode("MAKE_FUNCTION", since=V313)
def make_function(frame: Frame, stack: list[Any], _: object) -> None:
    """``code -> function``."""
    code = stack.pop()
    closure = None
    if code.co_freevars:
        # The closure is set by the next instruction but cannot be changed on a function; empty cells hold its place.
        stack.append(code)
        return
    stack.append(FunctionType(code, frame.globals, None, None, closure))


def _annotated(x: int) -> None: ...


ANNOTATE: Any = getattr(_annotated, "__annotate__", None)  # since Python 3.14
NAMES_ANNOTATE = getattr(ANNOTATE, "__qualname__", "__annotate__") != "__annotate__"
"""Whether the function that evaluates annotations is named for the one that has them, as in later patches of 3.14."""

ATTRIBUTES = {1: "__defaults__", 2: "__kwdefaults__", 4: "__annotations__", 8: "__closure__", 16: "__annotate__"}


@opcode("SET_FUNCTION_ATTRIBUTE", since=V313)
def set_function_attribute(frame: Frame, stack: list[Any], flag: int) -> None:
    """``value, function -> function``."""
    function = stack.pop()
    value = stack.pop()
    if flag == 8:
        stack.append(FunctionType(function, frame.globals, None, None, value))
        return
    if flag == 4:
        annotate(function, value)
    else:
        setattr(function, ATTRIBUTES[flag], value)
    if flag == 16 and NAMES_ANNOTATE:
        value.__qualname__ = f"{function.__qualname__}.__annotate__"
    stack.append(function)


@opcode("CONVERT_VALUE", since=V313)
def convert_value(frame: Frame, stack: list[Any], conversion: int) -> Outcome:
    """``value -> str(value)``, or ``repr`` or ``ascii``."""
    return call(frame, CONVERSIONS[conversion], [stack.pop()], {})


@opcode("FORMAT_SIMPLE", since=V313)
def format_simple(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value -> format(value)``."""
    return formatted(frame, stack.pop(), "")


@opcode("FORMAT_WITH_SPEC", since=V313)
def format_with_spec(frame: Frame, stack: list[Any], _: object) -> Outcome:
    """``value, spec -> format(value, spec)``."""
    spec = stack.pop()
    return formatted(frame, stack.pop(), spec)


BINARY_INTRINSICS[5] = in_typing("CALL_INTRINSIC_2", 5)  # the default of a type parameter
