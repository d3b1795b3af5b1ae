"""Where values came from: a shadow of the stack and the variables of every frame.

A record is a tuple while code runs, ``(kind, key, *records it was made from)``; a user sees :class:`Provenance`.
"""

import dis
from dataclasses import dataclass
from types import CellType, MethodType
from typing import Any, TypeAlias

from thunder_interpreter._decode import TRACKERS, Instruction, Program
from thunder_interpreter._frame import AnyFrame, BaseFrame, Frame, InitFrame
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


Record: TypeAlias = tuple[Any, ...]
NO_VALUE: Record = ("null", None)


@dataclass(frozen=True, slots=True, repr=False)
class Provenance:
    """How a value was obtained.

    Args:
        kind: ``argument``, ``parameter`` (of a function called by native code), ``global`` (or builtin), ``closure``,
            ``constant``, ``attribute``, ``item``, ``slice``,
            ``element``, ``operator``, ``call``, ``container`` or ``other``.
        key: the name, the constant, the symbol, the names of keyword arguments, the index of an element, the opcode.
        inputs: what it was obtained from.

    Example:
        >>> from thunder_interpreter import interpret
        >>> scaled = eval("lambda x: x.real * 2", {"__name__": "example"})
        >>> run = interpret(scaled, provenance=True)
        >>> run(3)
        6
        >>> print(run.result_provenance())
        x.real * 2
    """

    kind: str
    key: Any
    inputs: tuple["Provenance", ...] = ()

    def __str__(self) -> str:
        return render(self)

    __repr__ = __str__


ATOMS = frozenset(
    "argument parameter global closure constant attribute item slice element call container".split(),
)


def render(provenance: Provenance) -> str:
    """The Python expression that a record stands for."""
    kind, key, inputs = provenance.kind, provenance.key, provenance.inputs
    parts = [render(part) if part.kind in ATOMS else f"({render(part)})" for part in inputs]
    if kind in ("argument", "parameter", "global", "closure"):
        return str(key)
    if kind == "constant":
        return repr(key)
    if kind == "attribute":
        return f"{parts[0]}.{key}"
    if kind == "item":
        return f"{parts[0]}[{render(inputs[1])}]"
    if kind == "slice":
        return f"{parts[0]}[{render(inputs[1])}:{render(inputs[2])}]"
    if kind == "element":
        return f"{parts[0]}[{key}]"
    if kind == "operator":
        return f" {key} ".join(parts) if len(parts) == 2 else f"{key}{parts[0]}"
    if kind == "call":
        named = len(inputs) - len(key)
        shown = [render(part) for part in inputs[1:named]]
        shown += [f"{name}={render(part)}" for name, part in zip(key, inputs[named:], strict=True)]
        return f"{parts[0]}({', '.join(shown)})"
    if kind == "container":
        return f"{key}({', '.join(render(part) for part in inputs)})"
    return f"<{key}>({', '.join(parts)})" if parts else f"<{key}>"


def exposed(record: Record, seen: dict[int, Provenance] | None = None) -> Provenance:
    """The :class:`Provenance` of a record; shared parts are shared."""
    seen = {} if seen is None else seen
    pending = [record]
    while pending:
        top = pending[-1]
        if id(top) in seen:
            pending.pop()
            continue
        missing = [part for part in top[2:] if id(part) not in seen]
        if missing:
            pending.extend(missing)
            continue
        seen[id(top)] = Provenance(top[0], top[1], tuple(seen[id(part)] for part in top[2:]))
        pending.pop()
    return seen[id(record)]


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


PLAIN_OPERATORS: set[Any] = set()
PLAIN_CONSTANTS: set[Any] = set()
UNTRACKED = frozenset(
    """
    POP_TOP STORE_ATTR STORE_SUBSCR STORE_SLICE STORE_GLOBAL STORE_NAME DELETE_ATTR DELETE_SUBSCR DELETE_FAST
    DELETE_NAME DELETE_GLOBAL DELETE_DEREF LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE MAP_ADD DICT_UPDATE DICT_MERGE
    JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT POP_EXCEPT RAISE_VARARGS RERAISE COPY_FREE_VARS
    SETUP_ANNOTATIONS END_FOR JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP RETURN_GENERATOR TO_BOOL
    """.split()
)
RESULTS = {  # the number of operands of what pushes one result
    "BINARY_SUBSCR": (2, "item"),
    "BINARY_SLICE": (3, "slice"),
    "UNARY_NEGATIVE": (1, "operator"),
    "UNARY_POSITIVE": (1, "operator"),
    "UNARY_INVERT": (1, "operator"),
    "UNARY_NOT": (1, "operator"),
    "LIST_TO_TUPLE": (1, "other"),
    "CALL_INTRINSIC_1": (1, "other"),
    "CALL_INTRINSIC_2": (2, "other"),
    "FORMAT_SIMPLE": (1, "other"),
    "FORMAT_WITH_SPEC": (2, "other"),
    "CONVERT_VALUE": (1, "other"),
    "YIELD_VALUE": (1, "other"),
    "GET_YIELD_FROM_ITER": (1, "other"),
    "GET_AWAITABLE": (1, "other"),
}
BUILDS = {f"BUILD_{name.upper()}": name for name in ("tuple", "list", "set", "slice")} | {"BUILD_STRING": "str"}
SYMBOLS = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~", "UNARY_NOT": "not "}
PAIRS = {
    "LOAD_FAST_LOAD_FAST": load_two,
    "STORE_FAST_LOAD_FAST": store_and_load,
    "STORE_FAST_STORE_FAST": store_two,
}
Tracked: TypeAlias = tuple[Any, Any]


def tracked(instruction: Instruction, step: Tracked) -> Tracked:
    """The step that does ``step`` and keeps the shadow."""
    return tracked_variable(instruction, step) or tracked_access(instruction, step) or tracked_rest(instruction, step)


def tracked_variable(instruction: Instruction, step: Tracked) -> Tracked | None:
    """As ``tracked``, for variables, constants and what moves values on the stack."""
    name, arg = instruction.name, instruction.arg
    handler, argument = step
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE"):
        return load_fast, (handler, argument, arg)
    if name == "STORE_FAST":
        return store_fast, arg
    if name in PAIRS:
        return PAIRS[name], argument
    if name in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
        return load_cell, (handler, argument, 0, arg)
    if name == "LOAD_FROM_DICT_OR_DEREF":
        return load_cell, (handler, argument, 1, arg)
    if name == "STORE_DEREF":
        return store_cell, (handler, argument, arg)
    if name == "MAKE_CELL":
        return make_cell, (handler, argument, arg)
    if name == "LOAD_CONST":
        record = ("constant", argument)
        if handler in PLAIN_CONSTANTS:
            return push_constant, (argument, record)
        return pushing, (handler, argument, record)
    if name == "PUSH_NULL":
        return pushing, (handler, argument, NO_VALUE)
    if name == "COPY":
        return copying, (handler, arg)
    if name == "SWAP":
        return swapping, (handler, arg)
    return None


def tracked_access(instruction: Instruction, step: Tracked) -> Tracked | None:
    """As ``tracked``, for globals, attributes, calls, loops and returns."""
    name, arg = instruction.name, instruction.arg
    handler, argument = step
    above = "CALL_KW" in dis.opmap  # since then, NULL lies above the callable
    if name == "LOAD_GLOBAL":
        if argument[1]:
            record = ("global", argument[0])
            return load_global, (handler, argument, [record, NO_VALUE] if above else [NO_VALUE, record])
        return pushing, (handler, argument, ("global", argument[0]))
    if name == "LOAD_NAME":
        return pushing, (handler, argument, ("global", argument))
    if name == "LOAD_METHOD":
        return value_and_null, (handler, argument, 1, "attribute", argument, above)
    if name in ("LOAD_ATTR", "LOAD_SUPER_ATTR"):
        pops = 1 if name == "LOAD_ATTR" else 3
        key, method = (argument, False) if isinstance(argument, str) else argument[:2]
        if method:
            return value_and_null, (handler, argument, pops, "attribute", key, above)
        return one_result, (handler, argument, pops, "attribute", key)
    if name == "GET_ITER":
        return begin_loop, step
    if name == "FOR_ITER":
        return iterating, step
    if name == "CALL":
        return calling, (handler, argument, arg + 2, instruction.keywords)
    if name == "CALL_KW":
        return calling, (handler, argument, arg + 3, None)
    if name == "RETURN_VALUE":
        return returning, (handler, argument, None)
    if name == "RETURN_CONST":
        return returning, (handler, argument, ("constant", argument))
    return None


def tracked_rest(instruction: Instruction, step: Tracked) -> Tracked:
    """As ``tracked``, for operators, containers and everything else."""
    name, arg = instruction.name, instruction.arg
    handler, argument = step
    if name in UNTRACKED or name.startswith("POP_JUMP"):
        return step
    if name in ("BINARY_OP", "COMPARE_OP"):
        at_once = handler in PLAIN_OPERATORS and len(argument) == 2
        return plain_operands if at_once else two_operands, (handler, argument, argument[0])
    if name == "CONTAINS_OP":
        return two_operands, (handler, argument, "not in" if arg else "in")
    if name == "IS_OP":
        return two_operands, (handler, argument, "is not" if arg else "is")
    if name in BUILDS:
        return one_result, (handler, argument, arg, "container", BUILDS[name])
    if name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
        return one_result, (handler, argument, 2 * arg if name == "BUILD_MAP" else arg + 1, "container", "dict")
    if name in RESULTS:
        pops, kind = RESULTS[name]
        return one_result, (handler, argument, pops, kind, SYMBOLS.get(name, name))
    if name == "UNPACK_SEQUENCE":
        return several_results, (handler, argument, 1, arg, name)
    if name == "UNPACK_EX":
        return several_results, (handler, argument, 1, sum(argument) + 1, name)
    opcode = dis.opmap[name]
    effect = dis.stack_effect(opcode, arg if opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    return padding, (handler, argument, effect, name)


def find(frame: AnyFrame, value: Any) -> Record | None:
    """The record of ``value`` in the innermost frame that holds it."""
    while frame is not None:
        if type(frame) is Frame and hasattr(frame, "sources"):
            found = find_in(frame, value)
            if found is not None:
                return found
        frame = frame.back
    return None


def find_in(frame: Any, value: Any) -> Record | None:
    """The record of ``value`` among the variables and the stack of a frame."""
    passed = [held for held in getattr(frame, "values", ()) if held is not NULL]
    known: list[tuple[Any, Record]] = list(zip(passed, getattr(frame, "operands", ()), strict=False))
    known += zip(frame.stack, frame.shadow, strict=False)
    variables: list[tuple[Any, Record]] = list(zip(frame.locals, frame.sources, strict=False))
    for held, record in known + variables:
        if held is value:
            return record
    cells = frame.machine.cells
    for held, _ in variables:
        if type(held) is CellType and id(held) in cells and holds(held, value):
            found: Record = cells[id(held)][1]
            return found
    return None


def holds(cell: CellType, value: Any) -> bool:
    """Whether a cell holds ``value``."""
    try:
        return cell.cell_contents is value
    except ValueError:
        return False


TRACKERS.extend((tracked, begin))
