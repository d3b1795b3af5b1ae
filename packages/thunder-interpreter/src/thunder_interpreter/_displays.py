"""Which slots of a frame's stack hold containers that its code is still building: displays and comprehensions."""

import dis
from types import CodeType

from thunder_interpreter._liveness import following_instructions

FILLS = {
    "LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2,
    "LIST_EXTEND": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1, "DICT_MERGE": 1,
}  # fmt: skip
"""Instructions that add to a container on the stack, and how many values they pop before its place is counted."""


JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
ONLY_PUSH = (
    "COPY", "EXTENDED_ARG", "IMPORT_FROM", "JUMP", "KW_NAMES", "LOAD_", "MATCH_", "NOP", "NOT_TAKEN", "PUSH_", "RESUME",
)  # fmt: skip
"""What names of instructions begin with that leave what lies on the stack."""
PUSH_NOTHING = ("DELETE_", "DICT_", "END_", "LIST_APPEND", "LIST_EXTEND", "MAP_ADD", "POP_", "SET_", "STORE_")
"""The same of instructions that put nothing there."""
REPLACE_THE_TOP = ("BEFORE_WITH", "LOAD_ATTR", "LOAD_METHOD", "LOAD_SPECIAL", "STORE_FAST_LOAD_FAST", "UNPACK_")
"""The same of instructions that pop one value, and push some; all others push one."""


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
            effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=jumps)
            waiting.append((target, height + effect, min(lasting, height - _popped(instruction, effect))))
    return frozenset(filled)


def _popped(instruction: dis.Instruction, effect: int) -> int:
    """Return how many values an instruction takes from the stack, whatever it puts there.

    Args:
        instruction: any but those of generators.
        effect: by how much the stack grows.
    """
    name = instruction.opname
    if name == "SWAP":
        return instruction.arg or 0
    if name.startswith(REPLACE_THE_TOP):
        return 1
    if name.startswith(ONLY_PUSH) and not name.startswith("LOAD_SUPER"):
        return 0
    return -effect if name.startswith(PUSH_NOTHING) else 1 - effect


__all__ = ["unfinished_displays"]
