"""Where code does nothing but raise: what branches such as those of ``assert`` lead to."""

from __future__ import annotations

import dis
import functools
from types import CodeType

RAISES = frozenset({"RAISE_VARARGS", "RERAISE"})
LEAVES_OTHERWISE = ("RETURN", "YIELD", "SEND", "FOR_ITER", "JUMP_BACKWARD")
JUMPS = frozenset({"JUMP_FORWARD", "JUMP_ABSOLUTE"})
OPERANDS = ("LOAD_", "PUSH_NULL", "EXTENDED_ARG", "BINARY_OP", "COMPARE_OP", "TO_BOOL", "CACHE")


@functools.lru_cache(maxsize=1024)
def truth_that_raises(code: CodeType, offset: int) -> bool | None:
    """Return for which truth of the value that is tested at a place in the code nothing but a ``raise`` follows.

    Args:
        code: what runs.
        offset: of the instruction that tests, in bytes, or of one that runs together with it, just before.

    Returns:
        ``None`` if that holds for neither truth, or for both.

    Example:
        >>> import dis
        >>> def check(x):
        ...     assert x, "is false"
        ...     return x
        >>> tests = [i.offset for i in dis.get_instructions(check) if "POP_JUMP" in i.opname]
        >>> truth_that_raises(check.__code__, tests[0])
        False
    """
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    start = places[offset]
    for place in range(start, len(instructions)):
        if _is_test(instructions[place]):
            jumped = _only_raises(instructions, places, places[instructions[place].argval])
            fell = _only_raises(instructions, places, place + 1)
            if jumped == fell:
                return None
            return ("TRUE" in instructions[place].opname) == jumped
        if not instructions[place].opname.startswith(OPERANDS):
            return None
    return None


def _is_test(instruction: dis.Instruction) -> bool:
    return instruction.opname.startswith("POP_JUMP") and instruction.opname.endswith(("TRUE", "FALSE"))


def _only_raises(instructions: list[dis.Instruction], places: dict[int, int], place: int) -> bool:
    """Whether every way on from a place ends in a ``raise``."""
    open_, seen = [place], set()
    while open_:
        place = open_.pop()
        if place in seen:
            continue
        seen.add(place)
        instruction = instructions[place]
        name = instruction.opname
        if name in RAISES:
            continue
        if name.startswith(LEAVES_OTHERWISE):
            return False
        if name in JUMPS:
            open_.append(places[instruction.argval])
            continue
        if "JUMP" in name:
            open_.append(places[instruction.argval])
        open_.append(place + 1)
    return True
