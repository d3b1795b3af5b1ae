"""Fused steps that keep provenance."""

from typing import Any

from thunder_interpreter._calls import Outcome
from thunder_interpreter._decode import TRACKED_FUSIONS
from thunder_interpreter._frame import Frame
from thunder_interpreter._iteration import BUILTIN_ITERATORS
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._provenance import PLAIN_CONSTANTS, PLAIN_OPERATORS
from thunder_interpreter.opcodes import fused, operators
from thunder_interpreter.opcodes.stack import load_const

keep_builtins(globals())


def stack_and_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``a -> a <symbol> variable``."""
    local, operation, last, original, symbol = argument
    b = frame.locals[local]
    plain = frame.machine.plain
    if type(b) in plain and type(stack[-1]) in plain:
        frame.index = last
        shadow = frame.shadow
        position = len(stack) - 1
        shadow[position] = ("operator", symbol, shadow[position], frame.sources[local])
        stack[-1] = operation(stack[-1], b)
        return last + 1
    return original[0](frame, stack, original[1])


def stack_and_constant(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``a -> a <symbol> constant``."""
    constant, operation, last, original, symbol = argument
    plain = frame.machine.plain
    if type(stack[-1]) in plain and type(constant) in plain:
        frame.index = last
        shadow = frame.shadow
        position = len(stack) - 1
        shadow[position] = ("operator", symbol, shadow[position], ("constant", constant))
        stack[-1] = operation(stack[-1], constant)
        return last + 1
    return original[0](frame, stack, original[1])


def two_variables(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> variable <symbol> variable``."""
    first, second, operation, last, original, symbol = argument
    values = frame.locals
    a = values[first]
    b = values[second]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        sources = frame.sources
        frame.shadow[len(stack)] = ("operator", symbol, sources[first], sources[second])
        stack.append(operation(a, b))
        return last + 1
    return original[0](frame, stack, original[1])


def variable_and_constant(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> variable <symbol> constant``."""
    local, b, operation, last, original, symbol = argument
    a = frame.locals[local]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        frame.shadow[len(stack)] = ("operator", symbol, frame.sources[local], ("constant", b))
        stack.append(operation(a, b))
        return last + 1
    return original[0](frame, stack, original[1])


def variables_and_store(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``variable <symbol> variable``, into a variable."""
    first, second, operation, last, stored, original, symbol = argument
    values = frame.locals
    a = values[first]
    b = values[second]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        sources = frame.sources
        sources[stored] = ("operator", symbol, sources[first], sources[second])
        values[stored] = operation(a, b)
        return last + 2
    return original[0](frame, stack, original[1])


def variable_constant_and_store(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``variable <symbol> constant``, into a variable."""
    local, b, operation, last, stored, original, symbol = argument
    values = frame.locals
    a = values[local]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        sources = frame.sources
        sources[stored] = ("operator", symbol, sources[local], ("constant", b))
        values[stored] = operation(a, b)
        return last + 2
    return original[0](frame, stack, original[1])


def pop_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``value ->``, and jump."""
    stack.pop()
    return argument[0]


def store_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``value ->``, into a variable, and jump."""
    frame.locals[argument[0]] = stack.pop()
    frame.sources[argument[0]] = frame.shadow[len(stack)]
    return argument[1]


def next_to_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``iterator -> iterator``, with the next element in a variable, or ``iterator ->`` and jump."""
    target, local, following, original, _ = argument
    iterator = stack[-1]
    if type(iterator) in BUILTIN_ITERATORS and not frame.machine.iterations:
        value = next(iterator, NULL)
        if value is NULL:
            stack.pop()
            return target
        frame.locals[local] = value
        shadow = frame.shadow
        top = len(stack) - 1
        source = shadow[top]
        count = 0
        if source[0] == "iterator":
            count, source = source[1], source[2]
        shadow[top] = ("iterator", count + 1, source)
        frame.sources[local] = ("element", count, source)
        return following
    return original[0](frame, stack, original[1])


def variables_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """Jump unless ``variable <symbol> variable``; nothing is left on the stack that had a record."""
    return fused.variables_and_jump(frame, stack, argument[:-1])


def variable_constant_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """Jump unless ``variable <symbol> constant``; as above."""
    return fused.variable_constant_and_jump(frame, stack, argument[:-1])


def attribute_of_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> variable.name``."""
    local, name, last, original, _ = argument
    obj = frame.locals[local]
    machine = frame.machine
    known = machine.types.get(type(obj))
    if known is not None and name in known.native and machine.load_attribute is None and obj is not NULL:
        frame.index = last
        frame.shadow[len(stack)] = ("attribute", name, frame.sources[local])
        stack.append(getattr(obj, name))
        return last + 1
    return original[0](frame, stack, original[1])


TRACKED_FUSIONS.update(
    {
        fused.stack_and_variable: stack_and_variable,
        fused.stack_and_constant: stack_and_constant,
        fused.two_variables: two_variables,
        fused.variable_and_constant: variable_and_constant,
        fused.variables_and_store: variables_and_store,
        fused.variable_constant_and_store: variable_constant_and_store,
        fused.pop_and_jump: pop_and_jump,
        fused.store_and_jump: store_and_jump,
        fused.next_to_variable: next_to_variable,
        fused.variables_and_jump: variables_and_jump,
        fused.variable_constant_and_jump: variable_constant_and_jump,
        fused.attribute_of_variable: attribute_of_variable,
    }
)
PLAIN_OPERATORS.update((operators.binary_op, operators.compare_op))
PLAIN_CONSTANTS.add(load_const)
