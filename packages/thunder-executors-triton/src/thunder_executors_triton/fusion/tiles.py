"""How a kernel of a region is launched: held in registers or walked, in tiles of which size, with how many warps."""

from __future__ import annotations

from dataclasses import dataclass

from thunder_executors_triton.fusion.render import Kernel
from thunder_executors_triton.kernels.choices import OF_ELEMENTS, Choice
from thunder_executors_triton.kernels.launch import warps_of

LONGEST = 16_384
"""Elements of a tile that registers hold."""

FEW = 32
"""Elements of a point that are held together with those of many other points."""

TILE = 1024
"""Elements of a tile, at least, where one point has fewer."""

WALKED = 4096
"""Elements of a tile of walked elements."""

SECTOR = 16
"""Neighbouring points of a tile that is walked: in two bytes each, what memory hands over at once."""

BUSY = 64
"""Programs that are enough to share out a long walk; with fewer of them PyTorch's reductions are faster."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What one program of the grid computes.

    Args:
        looped: whether elements are walked.
        points: of them.
        elements: of each that it has at a time.
        choices: blocks and warps; where it has elements, these are the only one, the block of which says nothing.
    """

    looped: bool
    points: int
    elements: int
    choices: tuple[Choice, ...]


def tile_of(kernel: Kernel, points: int, elements: int) -> Tile | None:
    """Return how a kernel is launched; ``None`` where PyTorch's kernels do better, or nothing holds its rows.

    Args:
        kernel: see :func:`~thunder_executors_triton.fusion.render.render`.
        points: of its space.
        elements: of each point.

    Example:
        >>> from thunder_executors_triton.fusion.tiles import tile_of
        >>> from thunder_executors_triton.fusion.render import Kernel
        >>> from thunder_loops import Axis
        >>> sums = Kernel("sums", "", "def sums(): ...", (), (), (Axis("i0", 4),), (Axis("i1", 8),), across=False)
        >>> tile_of(sums, 4, 8).points, tile_of(sums, 4, 2048).points, tile_of(sums, 4, 10**6)
        (128, 1, None)
    """
    if not kernel.reduced:
        return Tile(False, 1, 1, OF_ELEMENTS)
    covering = _power(elements)
    if elements > FEW and kernel.across and kernel.looped:
        return _tile(True, SECTOR, min(covering, WALKED // SECTOR))
    if elements <= LONGEST:
        return _tile(False, max(1, TILE // covering), covering)
    return _tile(True, 1, WALKED * 2) if kernel.looped and points >= BUSY else None


def _tile(looped: bool, points: int, elements: int) -> Tile:
    return Tile(looped, points, elements, (Choice(points * elements, warps_of(points * elements)),))


def _power(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


__all__ = ["LONGEST", "Tile", "tile_of"]
