"""Sums of rows in which one element alone can be other than 0: that of a place which is known without a loop."""

from __future__ import annotations

from collections.abc import Mapping

from thunder_ir import dtypes
from thunder_loops.build import Builder
from thunder_loops.index import Index
from thunder_loops.nest import Compute, Constant, Load, Position, Reduce, Scan, Statement, Store, reads


def picked(build: Builder, operand: str, axis: str) -> str | None:
    """Write the sum along an axis of ``where(position == at, value, 0)``, or of its negative; ``None`` if it is none.

    Neither ``at`` nor ``value`` may differ along the axis. Where ``at`` is no place of the axis, the sum is 0.

    Args:
        build: what the operand was written by.
        operand: what is added up.
        axis: along which.
    """
    made = {s.name: s for s in build.statements if not isinstance(s, Store)}
    size = build.extents.get(axis)
    steps: list[Compute] = []
    statement = made[operand]
    while isinstance(statement, Compute) and statement.operation in ("neg", "to"):
        steps.append(statement)
        statement = made[statement.operands[0]]
    if not isinstance(statement, Compute) or statement.operation != "where" or size is None:
        return None
    condition, value, other = statement.operands
    at = _place(made, condition, axis)
    nothing = made[other]
    if at is None or not isinstance(nothing, Constant) or nothing.value != 0:
        return None
    if not {at, value}.isdisjoint(_differing(build.statements, axis)):
        return None
    ends = (("ge", 0), ("lt", size))
    dtype = build.dtype(at)
    low, high = (build.compute(o, at, build.constant(n, dtype), dtype=dtypes.bool8) for o, n in ends)
    found = build.compute("where", build.compute("bitwise_and", low, high), value, other, dtype=build.dtype(value))
    for step in reversed(steps):
        found = build.to(found, step.dtype) if step.operation == "to" else build.compute("neg", found)
    return build.compute("add", found, build.constant(0, build.dtype(found)))  # a sum of zeros is not negative


def _place(made: Mapping[str, Statement], condition: str, axis: str) -> str | None:
    """Return what the variable of an axis is compared with, if a condition is that both are equal."""
    statement = made[condition]
    if isinstance(statement, Compute) and statement.operation == "eq":
        for position, at in (statement.operands, statement.operands[::-1]):
            found = made[position]
            if isinstance(found, Position) and found.index == Index.of(axis):
                return at
    return None


def _differing(statements: list[Statement], axis: str) -> set[str]:
    """Return the values that differ along an axis."""
    found = {axis}
    for statement in statements:
        if isinstance(statement, Store):
            continue
        names = {*reads(statement)}
        if isinstance(statement, Load):
            names |= {name for i in statement.index for name in i.names}
        elif isinstance(statement, Position):
            names |= statement.index.names
        if isinstance(statement, Scan) and axis == statement.axis:
            found.add(statement.name)
        elif not found.isdisjoint(names) and not (isinstance(statement, Reduce) and axis in statement.axes):
            found.add(statement.name)
    return found
