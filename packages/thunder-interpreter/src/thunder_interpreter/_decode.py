"""Code objects, decoded once: a list of steps (handler, argument) and an exception table by step."""

import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._registry import Entry, Handler, UnsupportedOpcode, registry

keep_builtins(globals())


CO_OPTIMIZED, CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 0x1, 0x2, 0x4, 0x8
CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
RESUMABLE = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR

NAMES: tuple[str, ...] = tuple(dis.opname)
EXTENDED_ARG = dis.opmap["EXTENDED_ARG"]
LOG = "log"
"""Stands among the callbacks that are watched where the log is to know each instruction."""
CACHE = dis.opmap["CACHE"]


@dataclass(slots=True)
class Instruction:
    """A raw instruction, as a decoder sees it.

    Args:
        name: opcode name.
        arg: oparg, extended arguments merged in.
        offset: in bytes; ``start`` includes the extended arguments before it, ``after`` is the offset of the next
            instruction, inline caches skipped.
        code: the code object it belongs to.
        keywords: names of the keyword arguments, for calls on versions that state them in a separate instruction.
        target: step index of an offset in bytes.
        index: the step that is being decoded.
        delegates: whether this is the yield inside ``yield from`` or ``await``.
    """

    name: str
    arg: int
    start: int
    offset: int
    after: int
    code: CodeType
    keywords: tuple[str, ...] = ()
    target: Callable[[int], int] = int
    index: int = 0
    delegates: bool = False


class Program:
    """A decoded code object.

    Attributes:
        steps: ``(handler, argument)`` by step index, as they are run.
        offsets: byte offset in the code object, by step index.
        cells: ``(index of the argument or -1)`` for each cell variable, in order.
        exact: the number of positional arguments that need no binding, or -1.
        parameters: index of each parameter that callers may name.
    """

    __slots__ = (
        "argcount",
        "binder",
        "bytecode",
        "cell_arguments",
        "code",
        "driver",
        "exact",
        "flags",
        "frame_code",
        "free",
        "handlers",
        "hidden",
        "lines",
        "local_names",
        "nlocals",
        "offsets",
        "padding",
        "parameters",
        "ranges",
        "resumable",
        "simple",
        "steps",
        "unbound",
    )

    def __init__(self, code: CodeType, watched: frozenset[str]) -> None:
        self.code = code
        flags = self.flags = code.co_flags
        self.resumable = bool(flags & RESUMABLE)
        self.argcount = code.co_argcount
        self.nlocals = code.co_nlocals
        names = list(code.co_varnames)
        names += [name for name in code.co_cellvars if name not in code.co_varnames]
        self.free = len(names)
        self.local_names = (*names, *code.co_freevars)
        self.simple = not flags & (CO_VARARGS | CO_VARKEYWORDS) and not code.co_kwonlyargcount
        self.exact = code.co_argcount if self.simple else -1
        total = code.co_argcount + code.co_kwonlyargcount + bool(flags & CO_VARARGS) + bool(flags & CO_VARKEYWORDS)
        self.padding = len(self.local_names) - total
        named = range(code.co_posonlyargcount, code.co_argcount + code.co_kwonlyargcount)
        self.parameters = {names[index]: index for index in named}
        self.unbound = [NULL] * self.padding
        self.cell_arguments = frozenset(code.co_cellvars) & frozenset(code.co_varnames)
        self.binder: Any = None
        self.driver: Any = None
        self.frame_code: CodeType | None = None
        self.hidden = False
        self.lines: list[int | None] | None = None
        self.handlers: dict[int, tuple[int, int, bool] | None] = {}
        self.bytecode = code.co_code
        self.ranges: list[tuple[int, int, int, int, bool]] | None = None
        self._decode(watched)

    def _decode(self, watched: frozenset[str]) -> None:
        kept, index_of = self._kept_instructions()
        entries: dict[str, Entry | None] = {}
        target = index_of.__getitem__
        steps: list[tuple[Any, Any]] = []
        for index, instruction in enumerate(kept):
            name = instruction.name
            if name not in entries:
                entries[name] = registry.entry(name, watched, self.resumable)
            entry = entries[name]
            if entry is None:
                where = f"{self.code.co_filename}, {self.code.co_qualname}, offset {instruction.offset}"
                raise UnsupportedOpcode(f"no handler for {name} on this Python ({where})")
            instruction.target = target
            instruction.index = index
            handler = noted(entry.handler, instruction.offset) if LOG in watched else entry.handler
            steps.append((handler, entry.decode(instruction)))
        self.offsets = [instruction.offset for instruction in kept]
        self.steps = steps

    def _kept_instructions(self) -> tuple[list[Instruction], dict[int, int]]:
        """The instructions that become steps, and the step that each offset leads to."""
        kept: list[Instruction] = []
        index_of: dict[int, int] = {}
        pending: list[int] = []
        keywords: tuple[str, ...] = ()
        dropped, renamed = registry.dropped, registry.renamed
        for instruction in instructions(self.code, self.bytecode):
            name = instruction.name = renamed.get((instruction.name, instruction.arg), instruction.name)
            pending.append(instruction.start)
            if name in dropped:
                if name == "RESUME" and instruction.arg & 3 >= 2 and kept and kept[-1].name == "YIELD_VALUE":
                    kept[-1].delegates = True
                continue
            if name == "KW_NAMES":
                keywords = self.code.co_consts[instruction.arg]
                continue
            if name == "CALL" and keywords:
                instruction.keywords = keywords
                keywords = ()
            for offset in pending:
                index_of[offset] = len(kept)
            pending.clear()
            kept.append(instruction)
        return kept, index_of

    def exception_handler(self, index: int) -> tuple[int, int, bool] | None:
        """``(step, stack depth, push the offset)`` of the handler that covers step ``index``, or ``None``."""
        try:
            return self.handlers[index]
        except KeyError:
            pass
        if self.ranges is None:
            self.ranges = list(exception_ranges(self.code.co_exceptiontable))
        offset = self.offsets[index]
        found = None
        for start, end, target, depth, lasti in self.ranges:
            if start <= offset < end:
                found = (self.step_at(target), depth, lasti)
                break
        self.handlers[index] = found
        return found

    def is_tried(self, index: int) -> bool:
        """Whether a ``try`` statement covers step ``index``: an exception that it raises may be caught."""
        seen: set[int] = set()
        handler = self.exception_handler(index) if index >= 0 else None
        while handler is not None and handler[0] not in seen:  # a handler is covered by the statements around it
            seen.add(handler[0])
            first, second = (NAMES[self.bytecode[self.offsets[i]]] for i in (handler[0], handler[0] + 1))
            if first == "PUSH_EXC_INFO" and second != "WITH_EXCEPT_START":
                return True
            handler = self.exception_handler(handler[0])
        return False

    def step_at(self, offset: int) -> int:
        """The first step at or after a byte offset."""
        for index, at in enumerate(self.offsets):
            if at >= offset:
                return index
        raise IndexError(offset)

    def line(self, index: int) -> int | None:
        """The source line of step ``index``."""
        if index < 0:
            return self.code.co_firstlineno
        if self.lines is None:
            by_offset: dict[int, int | None] = {}
            for start, end, line in self.code.co_lines():
                for offset in range(start, end, 2):
                    by_offset[offset] = line
            self.lines = [by_offset.get(offset) for offset in self.offsets]
        return self.lines[index]


def instructions(code: CodeType, bytecode: bytes) -> Iterator[Instruction]:
    """Walk over the instructions of ``code``, caches and extended arguments folded away."""
    extended = 0
    start: int | None = None
    offset, end = 0, len(bytecode)
    while offset < end:
        op = bytecode[offset]
        arg = bytecode[offset + 1] | extended
        if start is None:
            start = offset
        at = offset
        offset += 2
        if op == EXTENDED_ARG:
            extended = arg << 8
            continue
        while offset < end and bytecode[offset] == CACHE:
            offset += 2
        yield Instruction(NAMES[op], arg, start, at, offset, code)
        extended = 0
        start = None


def noted(handler: Handler, offset: int) -> Handler:
    """Return a handler such that the log is told of each run of its instruction."""

    def told(frame: Any, stack: list[Any], argument: Any) -> Any:
        frame.machine.log.ran(frame.program.code, offset)
        return handler(frame, stack, argument)

    return told


def exception_ranges(table: bytes) -> Iterator[tuple[int, int, int, int, bool]]:
    """Parse an exception table: ``(start, end, target, depth, lasti)``, offsets in bytes."""
    position = 0

    def number() -> int:
        nonlocal position
        byte = table[position]
        position += 1
        value = byte & 63
        while byte & 64:
            byte = table[position]
            position += 1
            value = value << 6 | byte & 63
        return value

    while position < len(table):
        start = number() * 2
        length = number() * 2
        target = number() * 2
        depth_lasti = number()
        yield start, start + length, target, depth_lasti >> 1, bool(depth_lasti & 1)


def name(instruction: Instruction) -> str:
    """A name out of ``co_names``."""
    return instruction.code.co_names[instruction.arg]


def name_and_flag(instruction: Instruction) -> tuple[str, bool]:
    """A name out of ``co_names`` that shares its argument with a flag: whether ``NULL`` goes with it, for a call."""
    return instruction.code.co_names[instruction.arg >> 1], bool(instruction.arg & 1)


def constant(instruction: Instruction) -> Any:
    """A constant."""
    return instruction.code.co_consts[instruction.arg]


def jump_forward(instruction: Instruction) -> int:
    """The step that a forward jump goes to."""
    return instruction.target(instruction.after + 2 * instruction.arg)


def jump_backward(instruction: Instruction) -> int:
    """The step that a backward jump goes to."""
    return instruction.target(instruction.after - 2 * instruction.arg)


def fast_name(instruction: Instruction) -> tuple[int, str]:
    """The index and the name of a local variable, cell or free variable."""
    code = instruction.code
    names = [*code.co_varnames, *(n for n in code.co_cellvars if n not in code.co_varnames), *code.co_freevars]
    return instruction.arg, names[instruction.arg]
