"""Rows of views: those that nobody outside of a region can see are made without the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from thunder_ir import BoundSymbol, TensorProxy
from thunder_native.arguments import arguments
from thunder_native.schema import dispatch
from thunder_native.table import CannotExpress, Table, Words

Row = Callable[[Table, BoundSymbol], None]


def has_known_sizes(bound: BoundSymbol) -> bool:
    """Whether the sizes of all tensors of a call are numbers."""
    shapes = [p.shape for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
    return all([type(d) is int for shape in shapes for d in shape])


def inner_or(row: Row, otherwise: Row) -> Row:
    """Return the row that is ``row`` where nobody can tell, and ``otherwise`` where somebody can, or it declines."""

    def write(table: Table, bound: BoundSymbol) -> None:
        if table.inner and has_known_sizes(bound):
            try:
                return row(table, bound)
            except CannotExpress:
                table.steps.clear()  # the dispatcher can do more
        otherwise(table, bound)

    return write


def _integers(values: Sequence[Any]) -> list[int]:
    if not all([v.__class__ is int for v in values]):
        raise CannotExpress("it takes other than integers")
    return list(values)


def part(
    table: Table, read: str, dimensions: int, which: int, start: int, length: int, *, drop: bool, made: str
) -> None:
    """Append the step of a part along a dimension."""
    table.step("part", read, made, dimensions, which, start, length, int(drop))


def pieces(by: str) -> Row:
    """Return the row of ``split`` or ``chunk``, whose second argument has that name."""

    def write(table: Table, bound: BoundSymbol) -> None:
        a, _, dimension = arguments(bound, "input", by, dim=0)
        (which,) = _integers([dimension])
        which += a.ndim if which < 0 else 0
        start = 0
        for piece in bound.output:  # they say themselves how long they are
            length = piece.shape[which]
            part(table, a.name, a.ndim, which, start, length, drop=False, made=piece.name)
            start += length
        if start != a.shape[which]:
            raise CannotExpress("the pieces are not all of it")

    return write


def permuted(table: Table, bound: BoundSymbol) -> None:
    """``permute``."""
    if bound.kwargs:
        a, rest = arguments(bound, "input", "dims")
    else:
        a, *rest = bound.args
    order = _integers(rest[0] if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else rest)
    _reorder(table, a, [d + a.ndim if d < 0 else d for d in order], bound.output)


def transposed(table: Table, bound: BoundSymbol) -> None:
    """``transpose``."""
    a, *dimensions = arguments(bound, "input", "dim0", "dim1")
    if not a.ndim:
        raise CannotExpress("it has no dimensions")
    first, second = [d + a.ndim if d < 0 else d for d in _integers(dimensions)]
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    _reorder(table, a, order, bound.output)


def _reorder(table: Table, a: TensorProxy, order: list[int], output: TensorProxy) -> None:
    if sorted(order) != list(range(a.ndim)) or not a.ndim:
        raise CannotExpress("it is no order of dimensions")
    table.step("permuted", a.name, output.name, a.ndim, *order)


def shaped(operator: str) -> Row:
    """Return the row of ``view`` or ``reshape``."""

    def write(table: Table, bound: BoundSymbol) -> None:
        if bound.kwargs:
            raise CannotExpress("its arguments have names")
        a, shape = bound.args[0], list(bound.output.shape)
        elements = prod(shape)
        if not elements or prod(a.shape) != elements or a.dtype is not bound.output.dtype:
            raise CannotExpress("it is empty, or has another number of elements or another dtype")
        dispatch(table, bound, operator, "", (a, tuple(shape)))
        _, words = table.steps.pop()
        strides = tuple([prod(shape[d + 1 :]) for d in range(len(shape))])
        lies = Words(tuple(shape)), Words(strides)
        table.step("shaped", a.name, bound.output.name, len(shape), elements, *lies, Words(words))

    return write
