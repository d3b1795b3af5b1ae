"""Deciding how a nest is executed: a frozen plan, in words why, and the numbers that a call of it needs.

The plan depends on which strides are 0, 1 or something else, not on sizes: a kernel made of it serves all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from thunder_loops.holding import Hold, Sweeps
from thunder_loops.index import Index
from thunder_loops.layout import Strides, Walk, walks
from thunder_loops.nest import Add, Load, Nest, Position, Reduce, Scan, Statement, Store, reads

BLOCK = 8192
"""Elements of the innermost loop that a task has at most, where the loops around it do not make many tasks."""

ADDED, ADDED_APART = 128, 32
"""Neighbours in one task where rows are added to others; fewer where neighbours lie apart in something that is read,
since all of these places wait in the cache for the next row."""

ACROSS = 1024
"""Neighbours whose accumulators are in memory at once, where rows are read one after the other."""

WHOLE = 64
"""Vectors of all machines divide so many elements."""

GRAIN = 32768
"""Elements that are worth a thread."""

SHORT = (2, 3, 4)
"""Steps of reads along a vector that kernels know: what lies between is read with it, and left out."""

OPEN = 5
"""What stands for every other step."""


@dataclass(frozen=True, slots=True)
class Access:
    """How an access steps along the loops, as far as a kernel knows.

    Args:
        inner: along the loop that runs in vectors: 0, 1, one of :data:`SHORT` for reads, or :data:`OPEN`.
        outer: whether it moves with each of the outer loops.
        along: whether it moves with each of the reduced loops that do not run in vectors.
        terms: values that are added, each times a number that the call tells.
        beside: the position of the first access with the same steps through the same buffer, from which this one is
            everywhere as far away; -1 where this one is the first.
    """

    inner: int
    outer: tuple[bool, ...]
    along: tuple[bool, ...]
    terms: tuple[str, ...] = ()
    beside: int = -1


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How a nest is executed.

    A *cell* is a point of the axes that nothing is reduced over. A task is a block of cells that are neighbours, which
    run in vectors; or, where ``by_rows``, one cell, of whose reduced loops the innermost one runs in vectors.

    Args:
        outer: loops over cells, outside of those that are neighbours.
        reduced: loops inside of a cell, over what is reduced.
        by_rows: whether vectors run along the innermost reduced loop.
        whole: whether vectors divide the loop that runs in them, for they need no code for what is left then.
        across: whether the reduced loops run outside of those over neighbours, each of which has its accumulator in
            memory: then what lies in rows is read row by row. There is one sweep.
        statements: what is executed, in order. Buffers are called by their numbers, and where accesses go stands in
            ``accesses``: so nests that differ in names and sizes alone have one plan.
        accesses: for each statement, how it steps; ``None`` for what is no access. That of a reduction which finds a
            place counts the places.
        stages: for each statement, how many sweeps over the reduced loops come before it.
        varies: the values that differ along the loop that runs in vectors.
        inside: the values that differ along reduced loops.
        swept: for each statement, whether it is a write that moves along reduced loops, be its value the same there, or
            one of a value that differs along them, or an addition.
        held: what later sweeps read instead of computing it again.
    """

    outer: int
    reduced: int
    by_rows: bool
    whole: bool
    across: bool
    statements: tuple[Statement, ...]
    accesses: tuple[Access | None, ...]
    stages: tuple[int, ...]
    varies: frozenset[str]
    inside: frozenset[str]
    swept: tuple[bool, ...]
    held: tuple[Hold, ...] = ()

    @property
    def backwards(self) -> bool:
        """Whether the reduced loop runs from its end."""
        return any([isinstance(s, Scan) and s.reverse for s in self.statements])


@dataclass(frozen=True, slots=True)
class Launch:
    """The numbers of a call of a plan.

    Args:
        sizes: of the outer loops, outermost first; of the loop over neighbours, unless by rows; of the reduced loops.
        block: neighbours in one task.
        tasks: how many there are; they may run in any order, and at once.
        walks: for each access: its offset, its steps along the loops that it moves with, and those of its terms; of one
            that goes beside another, how far from that it is.
        elements: points of the space.
        buffers: names of the buffers that the plan calls by their numbers.
        reasons: what was decided, and why.
    """

    sizes: tuple[int, ...]
    block: int
    tasks: int
    walks: tuple[tuple[int, ...], ...]
    elements: int
    buffers: tuple[str, ...]
    reasons: tuple[str, ...] = ()


def plan(nest: Nest, sizes: Mapping[str, int], strides: Strides) -> tuple[LoopPlan, Launch]:
    """Decide how a nest is executed on buffers that lie in memory in a certain way.

    Args:
        nest: the loops.
        sizes: the sizes of axes that are open, by the names of the sizes.
        strides: of the buffers, in elements.
    """
    extent = {a.name: sizes[a.size] if isinstance(a.size, str) else a.size for a in nest.axes}
    elements = math.prod(extent.values())
    steps = walks(nest, strides, extent)
    over = nest.reduced
    present = [name for name, size in extent.items() if size != 1]
    along_them = [n for n in present if n in over]
    cells, why = _merged(_ordered([n for n in present if n not in over], nest, steps), extent, steps)
    reduced, why_reduced = _merged(along_them if nest.adds else _ordered(along_them, nest, steps), extent, steps)
    by_rows = not nest.adds and _by_rows(cells, reduced, steps)
    reasons = [*why, *why_reduced, f"vectors run along {'what is reduced' if by_rows else 'neighbouring results'}"]
    outer, vector = (cells, reduced[-1]) if by_rows else (cells[:-1], cells[-1] if cells else "")
    along = reduced[:-1] if by_rows else reduced
    accesses: list[Access | None] = []
    numbers = []
    first: dict[Hashable, int] = {}
    for position, statement in enumerate(nest.statements):
        walk = steps.get(position)
        if walk is None:
            accesses.append(None)
            continue
        access, told = _access(walk, outer, vector, along, (0, 1, *(SHORT if isinstance(statement, Load) else ())))
        root = first.setdefault((getattr(statement, "buffer", ""), access, told[1:]), position)
        if root != position:
            access, told = replace(access, beside=root), (walk.offset - steps[root].offset,)
        accesses.append(access)
        numbers.append(told)
    stages = _stages(nest.statements)
    across = bool(reduced) and not by_rows and not _sweeps_again(nest.statements, stages, over)
    statements, buffers = _anonymous(nest.statements)
    sweeps = [p in steps and not over.isdisjoint(steps[p].steps) for p in range(len(statements))]
    inside = _varying(nest.statements, sweeps, False)
    neighbours = 1 if by_rows else extent[vector] if vector else 1
    most = (_most_added(accesses) if nest.adds else ACROSS) if across else 0
    block, tasks = _tasks([extent[n] for n in outer], neighbours, math.prod([extent[n] for n in reduced]), most)
    whole = not (extent[vector] if by_rows else math.gcd(neighbours, block)) % WHOLE
    swept = tuple([_is_swept(s, m, inside, reduced) for s, m in zip(statements, sweeps, strict=True)])
    terms = [a.terms if a is not None else () for a in accesses]
    sweeps_over = Sweeps(statements, terms, stages, inside, swept)
    held = _held(sweeps_over, accesses) if by_rows and not nest.scans else ()
    made = LoopPlan(
        len(outer), len(reduced), by_rows, whole, across, statements, tuple(accesses), stages,
        _varying(nest.statements, [a is not None and a.inner != 0 for a in accesses], not by_rows),
        inside, swept, held,
    )  # fmt: skip
    if held:
        reasons.append("what one sweep computes waits for the next one where an output of the row will be")
    if across:
        reasons.append("rows are read one after the other, as one sweep tells all")
    shape = (*[extent[n] for n in outer], *([] if by_rows else [neighbours]), *[extent[n] for n in reduced])
    return made, Launch(shape, block, tasks, tuple(numbers), elements, buffers, tuple(reasons))


def _most_added(accesses: Sequence[Access | None]) -> int:
    return ADDED_APART if any([a is not None and a.inner > 1 for a in accesses]) else ADDED


def _is_swept(statement: Statement, moves: bool, inside: Collection[str], reduced: Collection[str]) -> bool:
    if isinstance(statement, Add):
        return bool(reduced)  # what is the same for all is still added for each
    return isinstance(statement, Store) and (moves or statement.value in inside)


def _held(sweeps: Sweeps, accesses: Sequence[Access | None]) -> tuple[Hold, ...]:
    """Return what waits for later sweeps: in places that are one for each element of a row, and neighbours."""
    able = []
    for place in sweeps.places():
        access = accesses[place]
        if access is not None and access.inner == 1 and all((*access.outer, *access.along)) and not access.terms:
            able.append(place)
    return sweeps.holds(able)


def _access(
    walk: Walk, outer: Sequence[str], vector: str, along: Sequence[str], known: Sequence[int]
) -> tuple[Access, tuple[int, ...]]:
    """Return what a kernel knows of an access, ``known`` steps among it, and the numbers that it is told."""
    cells = [walk.steps.get(name, 0) for name in outer]
    inner = [walk.steps.get(name, 0) for name in along]
    step = walk.steps.get(vector, 0)
    moves = [s for s in (*cells, *inner) if s]
    open_step = [step] if step not in known else []
    names, counts = [n for n, _ in walk.terms], [c for _, c in walk.terms]
    access = Access(
        OPEN if open_step else step, tuple([s != 0 for s in cells]), tuple([s != 0 for s in inner]), tuple(names)
    )
    return access, (walk.offset, *moves, *open_step, *counts)


def _by_rows(cells: Sequence[str], reduced: Sequence[str], steps: Mapping[int, Walk]) -> bool:
    """Whether more accesses have neighbours along what is reduced than along results.

    Accesses that stay where they are while something is reduced are made once for each result, and do not count.
    """
    if not reduced:
        return False
    if not cells:
        return True
    moving = [w for w in steps.values() if any([w.steps.get(axis, 0) for axis in reduced])]

    def neighbours(axis: str) -> int:
        found = [w.steps.get(axis, 0) for w in moving]
        return found.count(1) - len([s for s in found if s not in (0, 1)])

    return neighbours(reduced[-1]) >= neighbours(cells[-1])


def _stages(statements: Sequence[Statement]) -> tuple[int, ...]:
    """Return for each statement how many sweeps come before it; the value of a reduction is there one later."""
    ready: dict[str, int] = {}
    found = []
    for statement in statements:
        index = statement.index if isinstance(statement, (Load, Store)) else ()
        index = (statement.index,) if isinstance(statement, Position) else index
        named = [n for i in index for n in i.names if n in ready]
        stage = max([ready[name] for name in (*reads(statement), *named)], default=0)
        found.append(stage)
        if not isinstance(statement, Store):
            ready[statement.name] = stage + isinstance(statement, Reduce)
    return tuple(found)


def _anonymous(statements: Sequence[Statement]) -> tuple[tuple[Statement, ...], tuple[str, ...]]:
    """Call buffers by their numbers and leave indices out; return the names of the buffers, too."""
    numbers: dict[str, str] = {}
    found: list[Statement] = []
    for statement in statements:
        if isinstance(statement, (Load, Store)):
            buffer = numbers.setdefault(statement.buffer, str(len(numbers)))
            found.append(replace(statement, buffer=buffer, index=()))
        else:
            found.append(replace(statement, index=Index()) if isinstance(statement, Position) else statement)
    return tuple(found), tuple(numbers)


def _ordered(axes: list[str], nest: Nest, steps: Mapping[int, Walk]) -> list[str]:
    """Put axes along which accesses take small steps inside; what is written counts before what is read."""
    stores = [p for p in steps if isinstance(nest.statements[p], Store)]
    rank = [steps[p] for p in stores] + [w for p, w in steps.items() if p not in stores]

    def goes_inside(a: str, b: str) -> bool:
        for walk in rank:
            step, other = abs(walk.steps.get(a, 0)), abs(walk.steps.get(b, 0))
            if step and other and step != other:
                return step < other
        return False

    order: list[str] = []
    for axis in axes:
        place = len(order)
        while place and goes_inside(order[place - 1], axis):
            place -= 1
        order.insert(place, axis)
    return order


def _merged(order: Sequence[str], extent: dict[str, int], steps: dict[int, Walk]) -> tuple[list[str], list[str]]:
    """Make one loop of neighbours that all accesses walk through as one; ``extent`` then has its size."""
    merged: list[str] = []
    reasons: list[str] = []
    for axis in order:
        if merged and all([w.steps.get(merged[-1], 0) == w.steps.get(axis, 0) * extent[axis] for w in steps.values()]):
            reasons.append(f"{merged[-1]} and {axis} are one loop: every access walks through both in even steps")
            extent[axis] *= extent[merged.pop()]
        merged.append(axis)
    return merged, reasons


def _varying(statements: Sequence[Statement], moves: Sequence[bool], results: bool) -> frozenset[str]:
    """Return the values that differ along a loop, given the accesses that move with it; those of scans always do.

    Args:
        statements: of the nest.
        moves: for each, whether it is an access that moves.
        results: whether what reductions find counts as different.
    """
    found: set[str] = set()
    for statement, moving in zip(statements, moves, strict=True):
        if isinstance(statement, Store):
            continue
        names = list(reads(statement))
        if isinstance(statement, Load):
            names += [name for i in statement.index for name in i.names]
        elif isinstance(statement, Position):
            names += statement.index.names
        differs = moving or isinstance(statement, Scan) or not found.isdisjoint(names)
        if results if isinstance(statement, Reduce) else differs:
            found.add(statement.name)
    return frozenset(found)


def _sweeps_again(statements: Sequence[Statement], stages: Sequence[int], over: frozenset[str]) -> bool:
    """Whether something that differs along the reduced axes is left to do once a reduction is done."""
    inside: set[str] = set()
    for statement, stage in zip(statements, stages, strict=True):
        if isinstance(statement, Reduce):
            if stage:
                return True
            continue
        index = statement.index if isinstance(statement, (Load, Store)) else ()
        names = {n for i in index for n in i.names} | set(reads(statement))
        if isinstance(statement, Position):
            names |= statement.index.names
        if isinstance(statement, Scan) or not names.isdisjoint(over | inside):
            if stage:
                return True
            if not isinstance(statement, Store):
                inside.add(statement.name)
    return False


def _tasks(outer: Sequence[int], neighbours: int, reduced: int, across: int) -> tuple[int, int]:
    """Return how many neighbours a task has, and the number of tasks.

    Both depend on sizes alone, never on how many threads there are.

    Args:
        outer: sizes of the outer loops.
        neighbours: how many there are.
        reduced: points inside of a cell.
        across: how many neighbours a task may have where the loops over these points are outside of that over them.
    """
    around = math.prod(outer)
    most = max(BLOCK // max(reduced, 1) // WHOLE * WHOLE, 256)
    if across:
        block = min(neighbours, across)
        return block, around * -(-neighbours // block) if block else 0
    block = neighbours if around >= 64 or neighbours <= most else most
    return block, around * -(-neighbours // block) if block else 0
