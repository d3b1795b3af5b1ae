"""Frequent sequences of opcodes done by one handler.

Each has the handler of its first opcode to fall back on, which goes on with the steps that stand after it.
"""

from typing import Any

from thunder_interpreter._calls import Outcome
from thunder_interpreter._decode import Instruction, fusion
from thunder_interpreter._frame import Frame
from thunder_interpreter._iteration import BUILTIN_ITERATORS
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


VARIABLES = ("LOAD_FAST", "LOAD_FAST_CHECK")
OPERATORS = ("BINARY_OP", "COMPARE_OP")
JUMPS_IF_FALSE = ("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_IF_FALSE")
Steps = list[tuple[Any, Any]]


@fusion(*VARIABLES)
def fuse_variable(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, ...] | None:
    """Fuse the load of a variable with the operation on it."""
    following = kept[index + 1 : index + 3]
    if not following:
        return None
    local = kept[index].arg
    second = following[0]
    if second.name in OPERATORS:
        symbol, operation = steps[index + 1][1][:2]
        return stack_and_variable, symbol, local, operation, index + 1
    if second.name == "STORE_ATTR":
        return into_attribute_of_variable, None, local, steps[index + 1][1], index + 1
    if second.name == "LOAD_ATTR":
        argument = steps[index + 1][1]
        name = argument if isinstance(argument, str) else None if argument[1] else argument[0]
        if name is None:
            return None
        if len(following) == 2 and following[1].name == "BINARY_OP":
            symbol, operation = steps[index + 2][1][:2]
            return stack_and_attribute, symbol, local, name, operation, index + 2
        return attribute_of_variable, None, local, name, index + 1
    if len(following) == 2 and following[1].name in OPERATORS and second.name in (*VARIABLES, "LOAD_CONST"):
        constant = second.name == "LOAD_CONST"
        other = steps[index + 1][1] if constant else second.arg
        return fuse_operation(kept, steps, index + 2, (local, other), constant)
    return None


def fuse_operation(
    kept: list[Instruction], steps: Steps, last: int, operands: tuple[Any, Any], constant: bool
) -> tuple[Any, ...]:
    """Fuse an operation on two variables, or a variable and a constant, and the jump that may follow."""
    symbol, operation = steps[last][1][:2]
    jumps = last + 1 < len(kept) and kept[last].name == "COMPARE_OP" and kept[last + 1].name in JUMPS_IF_FALSE
    if last + 1 < len(kept) and kept[last + 1].name == "STORE_FAST" and kept[last].name == "BINARY_OP":
        handler = variable_constant_and_store if constant else variables_and_store
        return handler, symbol, *operands, operation, last, kept[last + 1].arg
    if jumps:
        handler = variable_constant_and_jump if constant else variables_and_jump
        return handler, symbol, *operands, operation, last, steps[last + 1][1]
    return variable_and_constant if constant else two_variables, symbol, *operands, operation, last


@fusion("LOAD_FAST_LOAD_FAST")
def fuse_two_variables(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, ...] | None:
    """Fuse the load of two variables with the operation on them."""
    if index + 1 < len(kept) and kept[index + 1].name in OPERATORS:
        return fuse_operation(kept, steps, index + 1, steps[index][1], False)
    return None


@fusion("LOAD_CONST")
def fuse_constant(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, ...] | None:
    """Fuse the load of a constant with the operation on it."""
    if index + 1 < len(kept) and kept[index + 1].name in OPERATORS:
        symbol, operation = steps[index + 1][1][:2]
        return stack_and_constant, symbol, steps[index][1], operation, index + 1
    return None


@fusion("PUSH_NULL")
def fuse_null(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, ...] | None:
    """Fuse what begins a call of a variable."""
    if index + 1 < len(kept) and kept[index + 1].name in VARIABLES:
        return null_and_variable, None, kept[index + 1].arg, index + 1
    return None


@fusion("FOR_ITER")
def fuse_loop(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, ...] | None:
    """Fuse a loop with the store of its variable."""
    if index + 1 < len(kept) and kept[index + 1].name == "STORE_FAST":
        return next_to_variable, None, steps[index][1], kept[index + 1].arg, index + 2
    return None


@fusion("POP_TOP", "STORE_FAST")
def fuse_jump(kept: list[Instruction], steps: Steps, index: int) -> tuple[Any, ...] | None:
    """Fuse the end of a loop's body with the jump back."""
    if index + 1 < len(kept) and kept[index + 1].name == "JUMP_BACKWARD":
        if kept[index].name == "POP_TOP":
            return pop_and_jump, None, steps[index + 1][1]
        return store_and_jump, None, kept[index].arg, steps[index + 1][1]
    return None


def pop_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``value ->``, and jump."""
    stack.pop()
    return argument[0]


def store_and_jump(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``value ->``, into a variable, and jump."""
    frame.locals[argument[0]] = stack.pop()
    return argument[1]


def next_to_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``iterator -> iterator``, with the next element in a variable, or ``iterator ->`` and jump."""
    target, local, following, original = argument
    iterator = stack[-1]
    if type(iterator) in BUILTIN_ITERATORS and not frame.machine.iterations:
        value = next(iterator, NULL)
        if value is NULL:
            stack.pop()
            return target
        frame.locals[local] = value
        return following
    return original[0](frame, stack, original[1])


def variables_and_store(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``variable <symbol> variable``, into a variable."""
    first, second, operation, last, stored, original = argument
    variables = frame.locals
    a = variables[first]
    b = variables[second]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        variables[stored] = operation(a, b)
        return last + 2
    return original[0](frame, stack, original[1])


def variable_constant_and_store(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``variable <symbol> constant``, into a variable."""
    local, b, operation, last, stored, original = argument
    variables = frame.locals
    a = variables[local]
    plain = frame.machine.plain
    if type(a) in plain and type(b) in plain:
        frame.index = last
        variables[stored] = operation(a, b)
        return last + 2
    return original[0](frame, stack, original[1])


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


def stack_and_attribute(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``a -> a <symbol> variable.name``."""
    local, name, operation, last, original = argument
    obj = frame.locals[local]
    machine = frame.machine
    known = machine.types.get(type(obj))
    if known is not None and name in known.native and machine.load_attribute is None and obj is not NULL:
        frame.index = last - 1
        value = getattr(obj, name)
        plain = machine.plain
        if type(value) in plain and type(stack[-1]) in plain:
            frame.index = last
            stack[-1] = operation(stack[-1], value)
            return last + 1
        stack.append(value)
        return last
    return original[0](frame, stack, original[1])


def into_attribute_of_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``value ->``, into ``variable.name``."""
    local, name, last, original = argument
    obj = frame.locals[local]
    machine = frame.machine
    known = machine.types.get(type(obj))
    if known is not None and name in known.native_set and machine.store_attribute is None and obj is not NULL:
        frame.index = last
        setattr(obj, name, stack.pop())
        return last + 1
    return original[0](frame, stack, original[1])


def null_and_variable(frame: Frame, stack: list[Any], argument: tuple[Any, ...]) -> Outcome:
    """``-> NULL, variable``."""
    local, last, original = argument
    value = frame.locals[local]
    if value is NULL:
        return original[0](frame, stack, original[1])
    stack.append(NULL)
    stack.append(value)
    return last + 1
