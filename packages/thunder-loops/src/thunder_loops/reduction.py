"""Reductions: one value of many, added up in a wider dtype, and rounded once."""

from __future__ import annotations

import math
from typing import Any

import thunder_prims as prims
from thunder_ir import dtypes
from thunder_loops.build import Builder, computed_in
from thunder_loops.elementwise import operand_dtype
from thunder_loops.picking import picked
from thunder_loops.rules import CannotLower, Elements, Wanted, lowering
from thunder_loops.shape import known

REDUCING = frozenset({
    prims.sum, prims.prod, prims.amax, prims.amin, prims.argmax, prims.argmin, prims.var, prims.std, prims.var_mean,
})  # fmt: skip
"""Prims that need a nest with axes that are reduced."""


def reduced_dims(wanted_args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the dimensions that a call reduces."""
    a, dims = wanted_args[0], wanted_args[1]
    if dims is None:
        return tuple(range(a.ndim))
    return (dims,) if isinstance(dims, int) else tuple(sorted(dims))


@lowering(prims.sum, prims.prod)
def total(build: Builder, wanted: Wanted) -> Elements:
    """Elements of a dtype in which they are added up, and the result rounded."""
    a = wanted.args[0]
    dtype = operand_dtype(a)
    place, axes = build.reduced_place(wanted)
    wide = build.accumulate.get(dtype, dtype)
    value = build.to((yield a, place), wide)
    if not axes and wanted.bound.symbol is prims.sum and dtype.is_floating:
        value = build.compute("add", value, build.constant(0, wide))  # of -0.0 alone, the sum is 0.0
    found = (
        picked(build, value, axes[0]) if build.picks and wanted.bound.symbol is prims.sum and len(axes) == 1 else None
    )
    return build.to(found or build.reduce(wanted.bound.symbol.name, value, axes), dtype)


@lowering(prims.amax, prims.amin)
def extremum(build: Builder, wanted: Wanted) -> Elements:
    """The elements themselves."""
    a = wanted.args[0]
    dtype = operand_dtype(a)
    place, axes = build.reduced_place(wanted)
    value = build.to((yield a, place), computed_in(dtype))
    return build.to(build.reduce(wanted.bound.symbol.name.removeprefix("a"), value, axes), dtype)


@lowering(prims.argmax, prims.argmin)
def place_of_extremum(build: Builder, wanted: Wanted) -> Elements:
    """The first place, counted row by row."""
    a = wanted.args[0]
    dtype = operand_dtype(a)
    place, axes = build.reduced_place(wanted)
    value = build.to((yield a, place), computed_in(dtype))
    if not axes:
        return build.constant(0, dtypes.int64)
    return build.reduce(wanted.bound.symbol.name, value, axes, dtypes.int64)


@lowering(prims.var, prims.std, prims.var_mean)
def spread(build: Builder, wanted: Wanted) -> Elements:
    """The mean first, then the squares of what is left: no digits cancel."""
    a, _, correction = wanted.args
    dtype = operand_dtype(a)
    wide = build.accumulate.get(dtype, dtype)
    place, axes = build.reduced_place(wanted)
    sizes = [a.shape[d] for d in reduced_dims(wanted.args)]
    known(*sizes, correction)
    count = math.prod(sizes)
    if count == 0:
        raise CannotLower(f"{wanted.bound.symbol.id} of no element has no loop nest")
    value = build.to((yield a, place), wide)
    mean = build.compute("div", build.reduce("sum", value, axes), build.constant(count, wide))
    if wanted.bound.symbol is prims.var_mean and wanted.output.name == wanted.bound.output[1].name:
        return build.to(mean, dtype)
    off = build.compute("sub", value, mean)
    squares = build.reduce("sum", build.compute("mul", off, off), axes)
    result = build.compute("div", squares, build.constant(max(count - correction, 0), wide))
    return build.to(build.compute("sqrt", result) if wanted.bound.symbol is prims.std else result, dtype)
