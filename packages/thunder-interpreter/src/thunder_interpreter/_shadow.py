"""What keeps records of where values came from: a shadow of the stack and of the variables of every frame.

Each of the handlers here does what another one does, and the like with the records.
"""

from types import MethodType
from typing import Any

from thunder_interpreter._decode import Program
from thunder_interpreter._frame import AnyFrame, BaseFrame, Frame
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._provenance import NO_VALUE, Record
from thunder_interpreter._waiting import InitFrame

keep_builtins(globals())


def begin(frame: Frame, stack: list[Any], step: tuple[Any, Any]) -> Any:
    """Give a frame that is entered its shadow, unless the call has; then do the first step."""
    if not hasattr(frame, "sources"):
        machine = frame.machine
        program = frame.program
        kind = "argument" if machine.roots else "parameter"
        machine.roots = False
        sources: list[Record] = [(kind, name) for name in program.local_names]
        for index in range(program.free, len(sources)):
            sources[index] = ("closure", program.local_names[index])
        frame.sources = sources
        frame.shadow = [NO_VALUE] * program.room
    return step[0](frame, stack, step[1])


def one_result(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Run a handler that replaces its operands by one value, now or when a call has returned."""
    handler, argument, pops, kind, key = packed
    depth = len(stack)
    shadow = frame.shadow
    operands = frame.operands = shadow[depth - pops : depth]
    shadow[depth - pops] = (kind, key, *operands)
    return handler(frame, stack, argument)


def two_operands(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Run the handler of a binary operator."""
    handler, argument, key = packed
    position = len(stack) - 2
    shadow = frame.shadow
    shadow[position] = ("operator", key, shadow[position], shadow[position + 1])
    return handler(frame, stack, argument)


def plain_operands(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """As ``two_operands``, for an operator that may be done at once."""
    handler, argument, key = packed
    position = len(stack) - 2
    shadow = frame.shadow
    shadow[position] = ("operator", key, shadow[position], shadow[position + 1])
    plain = frame.machine.plain
    if type(stack[-1]) in plain and type(stack[-2]) in plain:
        b = stack.pop()
        stack[-1] = argument[1](stack[-1], b)
        return None
    return handler(frame, stack, argument)


def load_global(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Push a global and, above or below it, ``NULL``."""
    handler, argument, records = packed
    depth = len(stack)
    frame.shadow[depth : depth + 2] = records
    return handler(frame, stack, argument)


def several_results(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Run a handler that replaces its operands by several values, the first of them on top."""
    handler, argument, pops, pushes, key = packed
    depth = len(stack)
    shadow = frame.shadow
    source = shadow[depth - 1] if depth else NO_VALUE
    if key == "UNPACK_SEQUENCE":
        records = [("element", index, source) for index in range(pushes - 1, -1, -1)]
    else:
        records = [("other", key, source)] * pushes
    shadow[depth - pops : depth - pops + pushes] = records
    return handler(frame, stack, argument)


def value_and_null(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Run a handler that pushes a value and, above or below it, ``NULL``."""
    handler, argument, pops, kind, key, null_above = packed
    depth = len(stack)
    shadow = frame.shadow
    record = (kind, key, *shadow[depth - pops : depth])
    at = depth - pops
    shadow[at : at + 2] = (record, NO_VALUE) if null_above else (NO_VALUE, record)
    return handler(frame, stack, argument)


def pushing(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Run a handler that pushes one value of a known record."""
    handler, argument, record = packed
    frame.shadow[len(stack)] = record
    return handler(frame, stack, argument)


def push_constant(frame: Frame, stack: list[Any], packed: tuple[Any, Record]) -> None:
    """Push a constant."""
    value, record = packed
    frame.shadow[len(stack)] = record
    stack.append(value)


def load_fast(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Push a local variable."""
    handler, argument, index = packed
    value = frame.locals[index]
    if value is NULL:
        return handler(frame, stack, argument)
    frame.shadow[len(stack)] = frame.sources[index]
    stack.append(value)
    return None


def store_fast(frame: Frame, stack: list[Any], index: int) -> None:
    """Move a value to a variable."""
    frame.locals[index] = stack.pop()
    frame.sources[index] = frame.shadow[len(stack)]


def load_two(frame: Frame, stack: list[Any], indices: tuple[int, int]) -> None:
    """Push two variables."""
    first, second = indices
    sources, values = frame.sources, frame.locals
    depth = len(stack)
    frame.shadow[depth : depth + 2] = (sources[first], sources[second])
    stack.append(values[first])
    stack.append(values[second])


def store_two(frame: Frame, stack: list[Any], indices: tuple[int, int]) -> None:
    """Move two values to variables."""
    store_fast(frame, stack, indices[0])
    store_fast(frame, stack, indices[1])


def store_and_load(frame: Frame, stack: list[Any], indices: tuple[int, int]) -> None:
    """Move a value to a variable and push another."""
    store_fast(frame, stack, indices[0])
    frame.shadow[len(stack)] = frame.sources[indices[1]]
    stack.append(frame.locals[indices[1]])


def load_cell(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Push the record of what a cell holds."""
    handler, argument, pops, index = packed
    known = frame.machine.cells.get(id(frame.locals[index]))
    frame.shadow[len(stack) - pops] = frame.sources[index] if known is None else known[1]
    return handler(frame, stack, argument)


def store_cell(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Keep the record of what goes into a cell."""
    handler, argument, index = packed
    cell = frame.locals[index]
    frame.machine.cells[id(cell)] = (cell, frame.shadow[len(stack) - 1])
    return handler(frame, stack, argument)


def make_cell(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Keep the record of a parameter that lives in a cell."""
    handler, argument, index = packed
    bound = frame.locals[index] is not NULL
    handler(frame, stack, argument)
    if bound:
        cell = frame.locals[index]
        frame.machine.cells[id(cell)] = (cell, frame.sources[index])


def copying(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Copy a record."""
    handler, distance = packed
    shadow = frame.shadow
    depth = len(stack)
    shadow[depth] = shadow[depth - distance]
    return handler(frame, stack, distance)


def swapping(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Exchange records."""
    handler, distance = packed
    shadow = frame.shadow
    depth = len(stack)
    shadow[depth - distance], shadow[depth - 1] = shadow[depth - 1], shadow[depth - distance]
    return handler(frame, stack, distance)


def begin_loop(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Remember what an iterator iterates over."""
    handler, argument = packed
    shadow = frame.shadow
    depth = len(stack)
    shadow[depth - 1] = ("iterator", 0, shadow[depth - 1])
    return handler(frame, stack, argument)


def iterating(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Count the elements of a loop."""
    handler, argument = packed
    shadow = frame.shadow
    depth = len(stack)
    source = shadow[depth - 1]
    count = 0
    if source[0] == "iterator":
        count, source = source[1], source[2]
    shadow[depth - 1 : depth + 1] = (("iterator", count + 1, source), ("element", count, source))
    return handler(frame, stack, argument)


def calling(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Tell a function that is entered where its arguments came from."""
    handler, argument, pops, keywords = packed
    shadow = frame.shadow
    depth = len(stack)
    bottom = depth - pops
    operands = shadow[bottom:depth]
    values = stack[bottom:]
    if keywords is None:
        keywords = values.pop()
        operands.pop()
    if operands[0] is NO_VALUE:
        del operands[0]
    elif operands[1] is NO_VALUE:
        del operands[1]
    frame.operands = operands
    frame.values = values
    result = shadow[bottom] = ("call", keywords, *operands)
    outcome = handler(frame, stack, argument)
    if type(outcome) is Frame and outcome.index < 0:  # it has just been made
        program = outcome.program
        outcome.shadow = [NO_VALUE] * program.room
        if program.simple and not keywords and len(operands) == program.argcount + 1:
            outcome.sources = [*operands[1:], *(program.unbound_records or unbound_records(program))]
        else:
            outcome.sources = passed_on(outcome, values, operands, result)
    return outcome


def unbound_records(program: Program) -> list[Record]:
    """Records for the variables of a function that are no parameters."""
    if program.unbound_records is None:
        records = initial_records(program)
        program.unbound_records = records[len(records) - program.padding :]
    return program.unbound_records


def initial_records(program: Program) -> list[Record]:
    """Records for the variables of a function that nothing is known to be passed to."""
    records: list[Record] = [("parameter", name) for name in program.local_names]
    for index in range(program.free, len(records)):
        records[index] = ("closure", program.local_names[index])
    return records


def passed_on(entered: Frame, values: list[Any], operands: list[Record], result: Record) -> list[Record]:
    """The records of the variables of an entered frame: those of the arguments that they are bound to.

    Args:
        values: the callable and the arguments as they lay on the stack, ``NULL`` among them.
        operands: a record for each of them, but for ``NULL`` or for an instance that a method was looked up in.
        result: the record of the call.
    """
    program = entered.program
    if program.initial_records is None:
        program.initial_records = initial_records(program)
    records = [*program.initial_records]
    passed = operands[1:]
    values = [value for value in values if value is not NULL]
    fn = values[0]
    if type(entered.back) is InitFrame:
        passed.insert(0, result)
    elif type(fn) is MethodType:
        fn = fn.__func__
        if operands[0][0] == "attribute":
            passed.insert(0, operands[0][2])
        else:
            passed.insert(0, ("attribute", "__self__", operands[0]))
    elif len(passed) == len(values) - 2 and operands[0][0] == "attribute":
        passed.insert(0, operands[0][2])
    if fn is entered.function or type(entered.back) is InitFrame:
        keywords = result[1]
        positional = len(passed) - len(keywords)
        bound = min(positional, program.argcount)
        records[:bound] = passed[:bound]
        for name, record in zip(keywords, passed[positional:], strict=True):
            if name in program.parameters:
                records[program.parameters[name]] = record
        return records
    known = {id(value): record for value, record in zip(values, operands, strict=False)}
    for index, value in enumerate(entered.locals):
        if value is not NULL and id(value) in known:
            records[index] = known[id(value)]
    return records


def returning(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Hand the record of the returned value to the calling frame."""
    handler, argument, constant = packed
    record = constant if constant is not None else frame.shadow[len(stack) - 1]
    back: AnyFrame = frame.back
    kind = type(back)
    if kind is Frame:
        if not frame.program.resumable:
            back.shadow[len(back.stack)] = record
    elif kind is BaseFrame and back.back is None:
        frame.machine.result = record
    return handler(frame, stack, argument)


def padding(frame: Frame, stack: list[Any], packed: tuple[Any, ...]) -> Any:
    """Run any other handler; what it pushes has no better record than the opcode's name."""
    handler, argument, effect, key = packed
    if effect > 0:
        depth = len(stack)
        frame.shadow[depth : depth + effect] = [("other", key)] * effect
    return handler(frame, stack, argument)


def unwound(frame: Frame, depth: int) -> None:
    """Cut the shadow as the stack was cut for an exception."""
    if hasattr(frame, "shadow"):
        frame.shadow[depth : depth + 2] = [("other", "exception")] * 2
