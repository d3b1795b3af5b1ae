"""Fused steps that keep provenance."""

from typing import Any

from thunder_interpreter._calls import Outcome
from thunder_interpreter._decode import TRACKED_FUSIONS
from thunder_interpreter._frame import Frame
from thunder_interpreter._iteration import BUILTIN_ITERATORS
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._provenance import NO_VALUE
from thunder_interpreter._tracking import PLAIN_CONSTANTS, PLAIN_OPERATORS
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


def stack_and_attribute(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``a -> a <symbol> variable.name``."""
    local, name, operation, last, original, symbol = argument
    obj = frame.locals[local]
    machine = frame.machine
    known = machine.types.get(type(obj))
    if known is not None and name in known.native and machine.load_attribute is None and obj is not NULL:
        frame.index = last - 1
        value = getattr(obj, name)
        plain = machine.plain
        shadow = frame.shadow
        record = ("attribute", name, frame.sources[local])
        depth = len(stack)
        if type(value) in plain and type(stack[-1]) in plain:
            frame.index = last
            shadow[depth - 1] = ("operator", symbol, shadow[depth - 1], record)
            stack[-1] = operation(stack[-1], value)
            return last + 1
        shadow[depth] = record
        stack.append(value)
        return last
    return original[0](frame, stack, original[1])


def null_and_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> NULL, variable``."""
    local, last, original, _ = argument
    value = frame.locals[local]
    if value is NULL:
        return original[0](frame, stack, original[1])
    depth = len(stack)
    frame.shadow[depth : depth + 2] = (NO_VALUE, frame.sources[local])
    stack.append(NULL)
    stack.append(value)
    return last + 1


TRACKED_FUSIONS.update(
    {
        fused.stack_and_variable: stack_and_variable,
        fused.stack_and_constant: stack_and_constant,
        fused.two_variables: two_variables,
        fused.variable_and_constant: variable_and_constant,
        fused.variables_and_store: variables_and_store,
        fused.variable_constant_and_store: variable_constant_and_store,
        fused.pop_and_jump: fused.pop_and_jump,  # leaves nothing on the stack that has a record
        fused.store_and_jump: store_and_jump,
        fused.next_to_variable: next_to_variable,
        fused.variables_and_jump: fused.variables_and_jump,
        fused.variable_constant_and_jump: fused.variable_constant_and_jump,
        fused.into_attribute_of_variable: fused.into_attribute_of_variable,
        fused.attribute_of_variable: attribute_of_variable,
        fused.stack_and_attribute: stack_and_attribute,
        fused.null_and_variable: null_and_variable,
    }
)
PLAIN_OPERATORS.update((operators.binary_op, operators.compare_op))
PLAIN_CONSTANTS.add(load_const)
