"""Frequent sequences of opcodes done by one handler.

Each has the handler of its first opcode to fall back on, which goes on with the steps that stand after it.
"""

from typing import Any

from thunder_interpreter._calls import Outcome
from thunder_interpreter._decode import Instruction, fusion
from thunder_interpreter._frame import Frame
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import __builtins__  # noqa: F401 - what is interpreted may patch them

VARIABLES = ("LOAD_FAST", "LOAD_FAST_CHECK")
OPERATORS = ("BINARY_OP", "COMPARE_OP")
JUMPS_IF_FALSE = ("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_IF_FALSE")
Steps = list[tuple[Any, Any]]


@fusion(*VARIABLES)
def fuse_variable(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, Any] | None:
    """Fuse the load of a variable with the operation on it."""
    following = kept[index + 1 : index + 4]
    if not following:
        return None
    local = kept[index].arg
    second = following[0]
    if second.name in OPERATORS:
        return stack_and_variable, (local, steps[index + 1][1][1], index + 1, steps[index])
    if second.name == "LOAD_ATTR":
        argument = steps[index + 1][1]
        name = argument if isinstance(argument, str) else None if argument[1] else argument[0]
        return None if name is None else (attribute_of_variable, (local, name, index + 1, steps[index]))
    if len(following) < 2 or following[1].name not in OPERATORS:
        return None
    operation = steps[index + 2][1][1]
    jump = jump_after(kept, steps, index + 3) if following[1].name == "COMPARE_OP" else None
    if second.name in VARIABLES:
        if jump is not None:
            return variables_and_jump, (local, second.arg, operation, index + 2, jump, steps[index])
        return two_variables, (local, second.arg, operation, index + 2, steps[index])
    if second.name == "LOAD_CONST":
        constant = steps[index + 1][1]
        if jump is not None:
            return variable_constant_and_jump, (local, constant, operation, index + 2, jump, steps[index])
        return variable_and_constant, (local, constant, operation, index + 2, steps[index])
    return None


def jump_after(kept: list[Instruction], steps: Steps, index: int) -> int | None:
    """Where the jump at ``index`` goes if what was compared is false."""
    if index < len(kept) and kept[index].name in JUMPS_IF_FALSE:
        target: int = steps[index][1]
        return target
    return None


@fusion("LOAD_FAST_LOAD_FAST")
def fuse_two_variables(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, Any] | None:
    """Fuse the load of two variables with the operation on them."""
    if index + 1 >= len(kept) or kept[index + 1].name not in OPERATORS:
        return None
    first, second = steps[index][1]
    operation = steps[index + 1][1][1]
    jump = jump_after(kept, steps, index + 2) if kept[index + 1].name == "COMPARE_OP" else None
    if jump is not None:
        return variables_and_jump, (first, second, operation, index + 1, jump, steps[index])
    return two_variables, (first, second, operation, index + 1, steps[index])


@fusion("LOAD_CONST")
def fuse_constant(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, Any] | None:
    """Fuse the load of a constant with the operation on it."""
    if index + 1 < len(kept) and kept[index + 1].name in OPERATORS:
        return stack_and_constant, (steps[index][1], steps[index + 1][1][1], index + 1, steps[index])
    return None


def stack_and_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``a -> a <symbol> variable``."""
    local, operation, last, original = argument
    b = frame.locals[local]
    plain = frame.machine.plain
    if type(b) in plain and type(stack[-1]) in plain:
        frame.index = last
        stack[-1] = operation(stack[-1], b)
        return last + 1
    return original[0](frame, stack, original[1])


def stack_and_constant(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``a -> a <symbol> constant``."""
    constant, operation, last, original = argument
    plain = frame.machine.plain
    if type(stack[-1]) in plain and type(constant) in plain:
        frame.index = last
        stack[-1] = operation(stack[-1], constant)
        return last + 1
    return original[0](frame, stack, original[1])


def two_variables(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> variable <symbol> variable``."""
    first, second, operation, last, original = argument
    variables = frame.locals
    a = variables[first]
    b = variables[second]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        stack.append(operation(a, b))
        return last + 1
    return original[0](frame, stack, original[1])


def variable_and_constant(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> variable <symbol> constant``."""
    local, b, operation, last, original = argument
    a = frame.locals[local]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        stack.append(operation(a, b))
        return last + 1
    return original[0](frame, stack, original[1])


def variables_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """Jump unless ``variable <symbol> variable``."""
    first, second, operation, last, target, original = argument
    variables = frame.locals
    a = variables[first]
    b = variables[second]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        return jumped(stack, operation(a, b), last, target)
    return original[0](frame, stack, original[1])


def variable_constant_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """Jump unless ``variable <symbol> constant``."""
    local, b, operation, last, target, original = argument
    a = frame.locals[local]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        answer = operation(a, b)
        if answer is True:
            return last + 2
        if answer is False:
            return target
        stack.append(answer)
        return last + 1
    return original[0](frame, stack, original[1])


def jumped(stack: list[Any], answer: Any, last: int, target: int) -> int:
    """Where to go on after a comparison; an answer that is no ``bool`` is left to the jump itself."""
    if answer is True:
        return last + 2
    if answer is False:
        return target
    stack.append(answer)
    return last + 1


def attribute_of_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> variable.name``."""
    local, name, last, original = argument
    obj = frame.locals[local]
    machine = frame.machine
    known = machine.types.get(type(obj))
    if known is not None and name in known.native and machine.load_attribute is None and obj is not NULL:
        frame.index = last
        stack.append(getattr(obj, name))
        return last + 1
    return original[0](frame, stack, original[1])
