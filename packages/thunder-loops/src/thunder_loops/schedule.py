"""Deciding how a whole program is executed, and dividing reductions that would be too few tasks.

Where few results are reduced from many elements, an axis is divided into chunks: one nest reduces each of them, another
one reduces what they give. How many chunks there are depends on sizes and strides alone, so results are the same for
every number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from thunder_loops.index import Index
from thunder_loops.layout import Strides, row_major_strides
from thunder_loops.nest import (
    Axis,
    Buffer,
    Load,
    LoopProgram,
    Nest,
    Position,
    Reduce,
    Statement,
    Store,
    reads,
)
from thunder_loops.plan import GRAIN, Launch, LoopPlan, plan

TASKS = 16
"""Tasks that are enough for the threads of most machines."""

CHUNKS = 64
"""Chunks that an axis is divided into, at most."""


WORTH_DIVIDING = 16 * GRAIN
"""Elements from which on reducing in chunks is worth a second kernel."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a program is executed.

    Args:
        steps: plans in order, each with the numbers of this call.
        partial: buffers for what chunks give, dense and row by row.
        checking: how many steps come first, to write what the checks of the program are.
    """

    steps: tuple[tuple[LoopPlan, Launch], ...]
    partial: tuple[Buffer, ...]
    checking: int = 0


def schedule(program: LoopProgram, sizes: Mapping[str, int], strides: Strides) -> Schedule:
    """Decide how a program is executed on buffers that lie in memory in a certain way; arguments as of :func:`plan`."""
    steps: list[tuple[LoopPlan, Launch]] = []
    partial: list[Buffer] = []
    checking = 0
    for number, nest in enumerate(program.nests):
        if number == program.checking:
            checking = len(steps)
        made = plan(nest, sizes, strides)
        divided = _divided(nest, made, sizes, len(partial))
        if divided is None:
            steps.append(made)
            continue
        first, second, buffers = divided
        known = {**strides, **{b.name: row_major_strides([int(s) for s in b.shape]) for b in buffers}}
        steps += [plan(first, sizes, known), plan(second, sizes, known)]
        partial += buffers
    return Schedule(tuple(steps), tuple(partial), checking)


def _divided(
    nest: Nest, made: tuple[LoopPlan, Launch], sizes: Mapping[str, int], count: int
) -> tuple[Nest, Nest, list[Buffer]] | None:
    """Return the two nests of a reduction in chunks; ``None`` where there are tasks enough, or no chunks."""
    found, launch = made
    if not found.reduced or launch.tasks >= TASKS or launch.elements < WORTH_DIVIDING:
        return None
    if not (found.by_rows or found.across) or max(found.stages) > 1 or _sweeps_after(found):
        return None
    if (
        nest.scans
        or nest.adds
        or any([s.operation.startswith("arg") for s in nest.statements if isinstance(s, Reduce)])
    ):
        return None
    extent = {a.name: sizes[a.size] if isinstance(a.size, str) else a.size for a in nest.axes}
    axis = max(nest.reduced, key=lambda name: (extent[name], name))
    chunks = max([d for d in range(1, CHUNKS + 1) if extent[axis] % d == 0])
    return divide(nest, axis, chunks, extent, count) if chunks > 3 else None


def _sweeps_after(found: LoopPlan) -> bool:
    return any([stage > 0 and swept for swept, stage in zip(found.swept, found.stages, strict=True)])


def divide(
    nest: Nest, axis: str, chunks: int, extent: Mapping[str, int], count: int = 0
) -> tuple[Nest, Nest, list[Buffer]]:
    """Return the nest that reduces chunks, the one that reduces what they give, and the buffers between.

    Args:
        nest: whose reductions all are done in one sweep, and nothing else after it.
        axis: one that they are over.
        chunks: a divisor of its size.
        extent: sizes of all axes.
        count: of buffers with such names that there are already.
    """
    outer, length = f"{axis}o", extent[axis] // chunks
    cells = [a for a in nest.axes if a.name not in nest.reduced]
    place = (Index.of(outer), *[Index.of(a.name) for a in cells])  # chunks of one result lie far apart
    shape = (chunks, *[extent[a.name] for a in cells])
    first_axes = (
        Axis(outer, chunks),
        *cells,
        *[_resized(a, axis, length) for a in nest.axes if a.name in nest.reduced],
    )
    first: list[Statement] = []
    second: list[Statement] = []
    buffers: list[Buffer] = []
    inside: set[str] = set()
    over = nest.reduced
    for statement in nest.statements:
        moved = _moved(statement, axis, outer, length)
        depends = _names(statement)
        if isinstance(statement, Reduce):
            buffer = Buffer(f"p{count + len(buffers)}", statement.dtype, shape)
            buffers.append(buffer)
            first += [moved, Store(buffer.name, place, statement.name)]
            part = f"{statement.name}p"
            second += [
                Load(part, buffer.name, place, statement.dtype),
                replace(statement, operand=part, axes=(outer,)),
            ]
        elif depends.isdisjoint(over | inside):
            second.append(statement)
            if not isinstance(statement, Store):
                first.append(statement)
        else:
            first.append(moved)
            if not isinstance(statement, Store):
                inside.add(statement.name)
    kept = used(first)
    return Nest(first_axes, kept), Nest((Axis(outer, chunks), *cells), used(second)), buffers


def used(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements that something written depends on."""
    names: set[str] = set()
    kept: list[Statement] = []
    for statement in reversed(statements):
        if isinstance(statement, Store) or statement.name in names:
            names |= _names(statement)
            kept.append(statement)
    return tuple(reversed(kept))


def _names(statement: Statement) -> set[str]:
    """Return the axes and values that a statement names."""
    index: tuple[Index, ...] = ()
    if isinstance(statement, (Load, Store)):
        index = statement.index
    elif isinstance(statement, Position):
        index = (statement.index,)
    return {name for i in index for name in i.names} | set(reads(statement))


def _resized(axis: Axis, name: str, size: int) -> Axis:
    return Axis(name, size) if axis.name == name else axis


def _moved(statement: Statement, axis: str, outer: str, length: int) -> Statement:
    """Return a statement with an axis in two parts; reductions are over the inner one."""

    def index_of(index: Index) -> Index:
        counts = dict(index.terms)
        return index + Index.of(outer) * (counts[axis] * length) if axis in counts else index

    if isinstance(statement, (Load, Store)):
        return replace(statement, index=tuple([index_of(i) for i in statement.index]))
    if isinstance(statement, Position):
        return replace(statement, index=index_of(statement.index))
    return statement
