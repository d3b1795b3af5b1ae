"""Which slots of a frame's stack hold containers that its code is still building: displays and comprehensions."""

import dis
from types import CodeType

from thunder_interpreter._liveness import following_instructions

FILLS = {
    "LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2,
    "LIST_EXTEND": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1, "DICT_MERGE": 1,
}  # fmt: skip
"""Instructions that add to a container on the stack, and how many values they pop before its place is counted."""


def unfinished_displays(code: CodeType, offset: int, depth: int) -> frozenset[int]:
    """Return the slots of a stack whose containers are added to by instructions that come after one.

    Args:
        code: of the frame.
        offset: of the instruction, in bytes, which pushes one value.
        depth: how many values lie below that value.

    Example:
        >>> def f(a):
        ...     return [*a, len(a), *a]
        >>> call = next(i.offset for i in dis.get_instructions(f.__code__) if i.opname == "CALL")
        >>> unfinished_displays(f.__code__, call, 1)
        frozenset({0})
    """
    found = {instruction.offset: instruction for instruction in dis.get_instructions(code)}
    following = following_instructions(code, list(found.values()))
    filled: set[int] = set()
    kept: dict[int, int] = {}
    """By instruction: how many slots still hold on some way to it what they hold now."""
    waiting = [(at, depth + 1, depth) for at in following[offset]]
    while waiting:
        at, height, lasting = waiting.pop()
        if kept.get(at, -1) >= lasting:
            continue
        kept[at] = lasting
        instruction = found[at]
        popped = FILLS.get(instruction.opname)
        if popped is not None and instruction.arg is not None:
            slot = height - popped - instruction.arg
            if slot < lasting:
                filled.add(slot)
        for target in following[at]:
            jumps = target == instruction.argval and instruction.opcode in JUMPS
            after = height + dis.stack_effect(instruction.opcode, instruction.arg, jump=jumps)
            waiting.append((target, after, min(lasting, after)))
    return frozenset(filled)


JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})

__all__ = ["unfinished_displays"]
