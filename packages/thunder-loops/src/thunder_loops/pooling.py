"""Pooling: windows of fixed sizes, whose elements are read one after the other at places that are index arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import thunder_prims as prims
from thunder_ir import BoundSymbol, DType, dtypes
from thunder_loops.build import Builder, computed_in
from thunder_loops.elementwise import operand_dtype
from thunder_loops.index import Index, bounds, row_major
from thunder_loops.rules import CannotLower, Elements, Place, Request, Wanted, lowering
from thunder_loops.shape import known

Ints = Sequence[int]

LARGEST = 32
"""Elements of a window, at most: each of them is statements of its own."""

POOLING = frozenset({prims.max_pool, prims.avg_pool})
"""Prims that are windows."""


def shared_by(bound: BoundSymbol) -> float:
    """Return how many windows have each element."""
    window, stride = bound.args[1:3]
    return math.prod([float(w) / float(s) for w, s in zip(window, stride, strict=True)])


@dataclass(frozen=True, slots=True)
class _Element:
    """One element of a window.

    Args:
        steps: from the begin of the window.
        value: of the element.
        inside: whether there is such an element; ``""`` where there always is.
    """

    steps: tuple[int, ...]
    value: str
    inside: str


def _starts(wanted: Wanted, stride: Ints, padding: Ints) -> list[Index]:
    """Return the place where a window begins, which may lie before its tensor does."""
    place = wanted.place[-len(stride) :]
    return [i * s + -p for i, s, p in zip(place, stride, padding, strict=True)]


def _elements(
    build: Builder, wanted: Wanted, stride: Ints, padding: Ints, dilation: Ints
) -> Generator[Request, str, list[_Element]]:
    """Write reads of the elements of a window, row by row."""
    a, window = wanted.args[:2]
    count = len(window)
    sizes = a.shape[-count:]
    known(*sizes, *window, *stride, *padding, *dilation)
    if math.prod(window) > LARGEST:
        raise CannotLower(f"a window of more than {LARGEST} elements has no loop nest")
    if any([p > 0 and d > n for p, d, n in zip(padding, dilation, sizes, strict=True)]):
        raise CannotLower("a window that may be without elements has no loop nest")
    around, starts = build.when, _starts(wanted, stride, padding)
    found = []
    for numbers in itertools.product(*[range(w) for w in window]):
        steps = tuple([n * d for n, d in zip(numbers, dilation, strict=True)])
        place = tuple([start + step for start, step in zip(starts, steps, strict=True)])
        inside = _inside(build, place, sizes)
        value = yield a, (*wanted.place[:-count], *place), build.both(around, inside)
        found.append(_Element(steps, value, inside))
    return found


@lowering(prims.max_pool)
def max_pool(build: Builder, wanted: Wanted) -> Elements:
    """The elements of the window in order: a greater one, or a NaN, takes the place of what was found before.

    The first element that there is counts as found, whatever it is.
    """
    a, window, stride, padding, dilation, _ = wanted.args
    dtype = operand_dtype(a)
    sizes = a.shape[-len(window) :]
    counts = _narrow(math.prod(sizes))
    first, *rest = yield from _elements(build, wanted, stride, padding, dilation)
    value, at, there = first.value, build.constant(_number(first.steps, sizes), counts), first.inside
    for element in rest:
        have, new = (build.to(v, computed_in(dtype)) for v in (value, element.value))
        takes = build.compute("gt", new, have, dtype=dtypes.bool8)
        if dtype.is_floating:
            takes = build.compute("bitwise_or", takes, build.compute("isnan", new, dtype=dtypes.bool8))
        if there:
            takes = build.compute("bitwise_or", takes, build.compute("bitwise_not", there))
            there = build.compute("bitwise_or", there, element.inside) if element.inside else ""
        takes = build.both(takes, element.inside)
        value = build.compute("where", takes, element.value, value)
        at = build.compute("where", takes, build.constant(_number(element.steps, sizes), counts), at)
    if wanted.output.name == wanted.bound.output[0].name:
        return value
    begin = build.position(row_major(_starts(wanted, stride, padding), sizes))
    return build.compute("add", begin, build.to(at, dtypes.int64))


@lowering(prims.avg_pool)
def avg_pool(build: Builder, wanted: Wanted) -> Elements:
    """The sum of the elements in order, divided by how many there are, or by a number that is given."""
    a, window, stride, padding, _, count_include_pad, divisor = wanted.args
    dtype = operand_dtype(a)
    if not dtype.is_floating:
        raise CannotLower(f"a mean of {dtype} has no loop nest")
    known(divisor)
    wide = computed_in(dtype)
    zero = build.constant(0, wide)
    total = zero
    for element in (yield from _elements(build, wanted, stride, padding, (1,) * len(window))):
        value = build.to(element.value, wide)
        total = build.compute(
            "add", total, build.compute("where", element.inside, value, zero) if element.inside else value
        )
    if divisor is None:
        count = _count(build, wanted, stride, padding, count_include_pad)
        divided_by = build.to(count, wide)
    else:
        divided_by = build.constant(divisor, wide)
    return build.to(build.compute("div", total, divided_by), dtype)


def _count(build: Builder, wanted: Wanted, stride: Ints, padding: Ints, with_padding: bool) -> str:
    """Write how many elements a window has, with those of the padding or without."""
    a, window = wanted.args[:2]
    starts = _starts(wanted, stride, padding)
    total = ""
    for start, w, p, size in zip(starts, window, padding, map(int, a.shape[-len(window) :]), strict=True):
        low, high = (-p, size + p) if with_padding else (0, size)
        least, most = bounds(start, build.extents) or (low - 1, high)
        if low <= least and most + w <= high:
            count = build.constant(w, dtypes.int64)
        else:
            begin = build.compute("maximum", build.position(start), build.constant(low, dtypes.int64))
            end = build.compute("minimum", build.position(start + w), build.constant(high, dtypes.int64))
            count = build.compute("sub", end, begin)
        total = build.compute("mul", total, count) if total else count
    return total


def _number(steps: Ints, sizes: tuple[Any, ...]) -> int:
    """Return how far steps lead in a tensor that is counted row by row."""
    return row_major([Index(constant=step) for step in steps], sizes).constant


def _narrow(size: int) -> DType:
    """Return the narrowest dtype in which places in a tensor, and a little around it, are counted."""
    return dtypes.int32 if size < 2**30 else dtypes.int64


def _inside(build: Builder, place: Place, sizes: tuple[Any, ...]) -> str:
    """Write whether a place is in a tensor; ``""`` if it must be."""
    found = ""
    for index, size in zip(place, map(int, sizes), strict=True):
        low, high = bounds(index, build.extents) or (-1, size)
        dtype = _narrow(size)
        for operation, limit, needed in (("ge", 0, low < 0), ("lt", size, high >= size)):
            if needed:
                at, end = build.position(index, dtype), build.constant(limit, dtype)
                found = build.both(found, build.compute(operation, at, end, dtype=dtypes.bool8))
    return found
