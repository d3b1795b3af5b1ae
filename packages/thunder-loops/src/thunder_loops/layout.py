"""How the accesses of a nest step through memory, once the strides of its buffers are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thunder_loops.index import Index
from thunder_loops.nest import Load, Nest, Position, Reduce, Statement, Store

Strides = Mapping[str, tuple[int, ...]]
"""For each buffer, how many elements lie between neighbours along each dimension."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where an access goes: a linear function of the loop variables, and of values.

    Args:
        offset: in elements, where all variables are 0.
        steps: in elements, for each axis by name; axes that are not there leave it where it is.
        terms: values that are added, each times a number of elements.
    """

    offset: int
    steps: Mapping[str, int]
    terms: tuple[tuple[str, int], ...] = ()


def walks(nest: Nest, strides: Strides, extent: Mapping[str, int]) -> dict[int, Walk]:
    """Return the walks of a nest, by the positions of their statements.

    Args:
        nest: the loops.
        strides: of the buffers.
        extent: sizes of all axes.
    """
    axes = {a.name for a in nest.axes}
    found = {}
    for position, statement in enumerate(nest.statements):
        if isinstance(statement, Reduce) and statement.operation.startswith("arg"):
            found[position] = _places(statement.axes, extent)
            continue
        parts = indexed(statement, strides)
        if parts is not None:
            found[position] = _walk(parts, axes)
    return found


def indexed(statement: Statement, strides: Strides) -> list[tuple[Index, int]] | None:
    """Return the indices of an access, each with the stride of its dimension; ``None`` for what is no access."""
    if isinstance(statement, Position):
        return [(statement.index, 1)]
    if isinstance(statement, (Load, Store)):
        return list(zip(statement.index, strides[statement.buffer], strict=True))
    return None


def _walk(parts: Sequence[tuple[Index, int]], axes: set[str]) -> Walk:
    offset = 0
    counts: dict[str, int] = {}
    for index, stride in parts:
        offset += index.constant * stride
        for term, count in index.terms:
            assert isinstance(term, str), "divisions are values of their own"
            counts[term] = counts.get(term, 0) + count * stride
    steps = {name: count for name, count in counts.items() if name in axes and count}
    return Walk(offset, steps, tuple([(name, count) for name, count in counts.items() if name not in axes]))


def _places(axes: Sequence[str], extent: Mapping[str, int]) -> Walk:
    """Return the walk that counts the points of axes row by row."""
    counts = row_major_strides([extent[name] for name in axes])
    return Walk(0, {name: count for name, count in zip(axes, counts, strict=True) if extent[name] != 1})


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose last dimension is innermost."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
