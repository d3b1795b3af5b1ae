"""Which local variables of a frame, those in cells included, are read after a place in its code."""

import dis
from collections.abc import Iterator
from types import CodeType

from thunder_interpreter._decode import exception_ranges

SEES_ALL = frozenset({"locals", "vars", "dir", "eval", "exec", "super", "sys", "inspect", "_getframe", "currentframe"})
"""Names in code that may look at all variables of its frame."""

ENDS = ("RETURN_", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD", "INTERPRETER_EXIT")
"""What instructions begin with after which the next one does not follow."""


def live_variables(code: CodeType, offset: int) -> frozenset[str]:
    """Return the names of the variables that may be read after an instruction, before they are set.

    Args:
        code: of the frame.
        offset: of the instruction, in bytes.

    Example:
        >>> def f(a, b):
        ...     c = len(a)
        ...     return c
        >>> sorted(live_variables(f.__code__, -1))
        ['a']
    """
    if not SEES_ALL.isdisjoint(code.co_names):
        return frozenset((*code.co_varnames, *code.co_cellvars))
    found = list(dis.get_instructions(code))
    live: dict[int, frozenset[str]] = {}
    following = following_instructions(code, found)
    changed = True
    while changed:
        changed = False
        for instruction in reversed(found):
            after = frozenset[str]().union(*[live.get(at, frozenset()) for at in following[instruction.offset]])
            reads, sets = _variables(instruction)
            before = reads | after - sets | _on_error(code, instruction.offset, live)
            if live.get(instruction.offset) != before:
                live[instruction.offset] = before
                changed = True
    if offset < 0:
        return live[found[0].offset]
    handled = _on_error(code, offset, live)
    return handled.union(*[live.get(at, frozenset()) for at in following[offset]])


def following_instructions(code: CodeType, found: list[dis.Instruction]) -> dict[int, list[int]]:
    """Return the offsets of the instructions that may come after each one, errors apart."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    following: dict[int, list[int]] = {}
    for i, instruction in enumerate(found):
        goes_on = i + 1 < len(found) and not instruction.opname.startswith(ENDS)
        following[instruction.offset] = [found[i + 1].offset] if goes_on else []
        if instruction.opcode in jumps and isinstance(instruction.argval, int):
            following[instruction.offset].append(instruction.argval)
    return following


def _variables(instruction: dis.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables that an instruction reads, and those that it sets for certain before it reads any.

    A closure that is made of a cell may read it at any later time.
    """
    name = instruction.opname
    if not any([part in name for part in ("FAST", "DEREF", "LOAD_CLOSURE")]):
        return frozenset(), frozenset()
    given = instruction.argval
    names = frozenset(given if isinstance(given, tuple) else (given,))
    return (frozenset(), names) if name in ("STORE_FAST", "STORE_DEREF") else (names, frozenset())


def _on_error(code: CodeType, offset: int, live: dict[int, frozenset[str]]) -> frozenset[str]:
    """Return what is read after an error in an instruction."""
    handlers: Iterator[int] = (
        target for start, end, target, *_ in exception_ranges(code.co_exceptiontable) if start <= offset < end
    )
    return live.get(next(handlers, -1), frozenset())
