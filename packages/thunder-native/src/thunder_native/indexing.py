"""Rows of ``a[key]``, where the key is made of integers, slices, ``None`` and ``...``."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from thunder_ir import BoundSymbol, IntegerProxy, TensorProxy
from thunder_native.arguments import arguments
from thunder_native.schema import call
from thunder_native.table import CannotExpress, Slot, Table
from thunder_native.views import part


@dataclass(frozen=True, slots=True)
class Step:
    """One view of those that a key comes to, one after the other.

    Args:
        dimension: of what the step before made.
        key: what is taken of it; ``None`` for a new dimension.
    """

    dimension: int
    key: int | IntegerProxy | slice | None


def steps_of(a: TensorProxy, key: Any) -> list[Step]:
    """Return the views that a key comes to, without those that change nothing.

    Raises:
        CannotExpress: it holds something else, such as a tensor.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    if not all([k is None or k.__class__ in (int, slice, EllipsisType) or isinstance(k, IntegerProxy) for k in keys]):
        raise CannotExpress("it takes other parts than those at indices and slices")
    taken = len([k for k in keys if k is not None and k is not ...])
    steps: list[Step] = []
    dimension = 0
    for k in keys:
        if k is ...:
            dimension += a.ndim - taken
            continue
        if k != slice(None):
            steps.append(Step(dimension, k))
        dimension += k is None or isinstance(k, slice)
    return steps


def outer(table: Table, bound: BoundSymbol) -> None:
    """By PyTorch's operators, as its own indexing does it."""
    a, key = arguments(bound, "self", "index")
    steps = steps_of(a, key)
    if not steps:
        raise CannotExpress("it takes all of it")
    made: TensorProxy | Slot = a
    between: list[Slot] = []
    for count, step in enumerate(steps):
        into = bound.output.name if count + 1 == len(steps) else None
        name, overload, *rest = _operator(step)
        made = call(table, name, overload, made, step.dimension, *rest, into=into)
        between += [made] * (into is None)
    if between:
        table.release(*between)


def _operator(step: Step) -> tuple[Any, ...]:
    """Return name and overload of the operator, and what it takes behind the dimension."""
    key = step.key
    if key is None:
        return "aten::unsqueeze", ""
    if isinstance(key, slice):
        return "aten::slice", "Tensor", key.start, key.stop, 1 if key.step is None else key.step
    return "aten::select", "int", key


def inner(table: Table, bound: BoundSymbol) -> None:
    """Without the dispatcher: no dimension is new, and what is taken of each lies in a row."""
    a, key = arguments(bound, "self", "index")
    steps = steps_of(a, key)
    sizes = list(a.shape)
    parts: list[tuple[Step, int, int]] = []
    for step in steps:
        if isinstance(step.key, slice):
            start, stop, stride = _indices(step.key, sizes[step.dimension])
            if stride != 1:
                raise CannotExpress("it leaves out elements between others")
            parts.append((step, start, max(stop - start, 0)))
            sizes[step.dimension] = max(stop - start, 0)
        elif step.key.__class__ is int and -sizes[step.dimension] <= step.key < sizes[step.dimension]:
            parts.append((step, step.key % sizes[step.dimension], 1))
            sizes.pop(step.dimension)
        else:
            raise CannotExpress("it has a new dimension, or an index that is not there")
    if not parts:
        raise CannotExpress("it takes all of it")
    read, dimensions = a.name, a.ndim
    for count, (step, start, length) in enumerate(parts):
        drop = not isinstance(step.key, slice)
        made = bound.output.name if count + 1 == len(parts) else table.new().name
        part(table, read, dimensions, step.dimension, start, length, drop=drop, made=made)
        if count:
            table.release(Slot(read))
        read, dimensions = made, dimensions - drop


def _indices(key: slice, size: int) -> tuple[int, int, int]:
    if not all([v is None or v.__class__ is int for v in (key.start, key.stop, key.step)]):
        raise CannotExpress("its bounds are the program's")
    return key.indices(size)
