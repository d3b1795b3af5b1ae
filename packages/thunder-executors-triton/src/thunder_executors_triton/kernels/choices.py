"""With which block and how many warps a kernel may be launched; the first of several choices is the rule's."""

from __future__ import annotations

from dataclasses import dataclass

from thunder_executors_triton.kernels.launch import warps_of


@dataclass(frozen=True, slots=True)
class Choice:
    """How a kernel is launched.

    Args:
        block: of elements that a program works on at a time.
        warps: of a program.
    """

    block: int
    warps: int


def of_rows(block: int) -> tuple[Choice, ...]:
    """Return the choices of a kernel whose programs hold a row of at most ``block`` elements."""
    usual = warps_of(block)
    others = [w for w in (usual // 2, usual * 2, usual // 4) if 1 <= w <= 32]
    return tuple([Choice(block, warps) for warps in (usual, *others)])


OF_ELEMENTS = (Choice(1024, 4), Choice(512, 4), Choice(2048, 8), Choice(4096, 8))
"""The choices of a kernel whose programs have a block of elements each."""
