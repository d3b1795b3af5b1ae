"""Prims that read at places which tensors of indices tell, and writes of a few elements per row, which are choices."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import BoundSymbol, TensorProxy, are_one_number, dtypes
from thunder_loops.build import Builder, computed_in
from thunder_loops.elementwise import operand_dtype
from thunder_loops.index import Index
from thunder_loops.rules import CannotLower, Elements, Place, Wanted, lowering
from thunder_loops.shape import known

WRITES = 4
"""Writes to a row that are as many choices for each of its elements."""

Bounded = tuple[TensorProxy, Any]
"""Indices, and the number that each of them must be below."""


def bounded_by(bound: BoundSymbol) -> list[Bounded]:
    """Return the indices of a call, each with the size of the dimension that they lead into."""
    if bound.symbol is prims.embedding:
        indices, weight = bound.args[:2]
        return [(indices, weight.shape[0])]
    if bound.symbol is prims.index:
        a, several = bound.args
        return [(indices, a.shape[dim]) for dim, indices in enumerate(several) if indices is not None]
    if bound.symbol is prims.take:
        a, indices, dim = bound.args
        return [(indices, a.shape[dim])]
    if bound.symbol is prims.embedding_backward:
        return [(bound.args[1], bound.args[2])]
    if bound.symbol in (prims.gather, prims.take_along_axis, prims.scatter, prims.scatter_add):
        a, indices, dim = bound.args[0], bound.args[1], bound.args[-1]
        return [(indices, a.shape[dim])]
    return []


def index_at(build: Builder, indices: TensorProxy, place: Place) -> Elements:
    """Write the read of an index, and return its value in the dtype in which places are counted."""
    operand_dtype(indices)
    return build.to((yield indices, place), dtypes.int64)


@lowering(prims.take)
def take(build: Builder, wanted: Wanted) -> Elements:
    """The index in place of the dimensions that it has."""
    a, indices, dim = wanted.args
    after = dim + indices.ndim
    at = yield from index_at(build, indices, wanted.place[dim:after])
    return (yield a, (*wanted.place[:dim], Index.of(at), *wanted.place[after:]))


@lowering(prims.embedding)
def embedding(build: Builder, wanted: Wanted) -> Elements:
    """A row of the weight."""
    indices, weight = wanted.args[:2]
    at = yield from index_at(build, indices, wanted.place[:-1])
    return (yield weight, (Index.of(at), wanted.place[-1]))


@lowering(prims.gather, prims.take_along_axis)
def gather(build: Builder, wanted: Wanted) -> Elements:
    """The index in place of one dimension."""
    a, indices, dim = wanted.args
    at = yield from index_at(build, indices, wanted.place)
    return (yield a, (*wanted.place[:dim], Index.of(at), *wanted.place[dim + 1 :]))


@lowering(prims.index)
def index(build: Builder, wanted: Wanted) -> Elements:
    """An index for each dimension that has one; what they have in common stands in place of the first, or in front."""
    a, several = wanted.args
    given = [dim for dim, indices in enumerate(several) if indices is not None]
    count = several[given[0]].ndim
    start = given[0] if given[-1] - given[0] == len(given) - 1 else 0
    rest = iter((*wanted.place[:start], *wanted.place[start + count :]))
    place = []
    for dim in range(a.ndim):
        if dim in given:
            at = yield from index_at(build, several[dim], wanted.place[start : start + count])
            place.append(Index.of(at))
        else:
            place.append(next(rest))
    return (yield a, tuple(place))


@lowering(prims.scatter, prims.scatter_add)
def scatter(build: Builder, wanted: Wanted) -> Elements:
    """What is written where an index of the row leads, the last of them, and what was there elsewhere."""
    a, indices, source, dim = wanted.args
    dtype = operand_dtype(a)
    known(indices.shape[dim], a.shape[dim])
    if indices.shape[dim] > WRITES:
        raise CannotLower(f"more than {WRITES} writes to a row have no loop nest")
    sizes = enumerate(zip(indices.shape, a.shape, strict=True))
    if not all([d == dim or are_one_number(size, own) for d, (size, own) in sizes]):
        raise CannotLower("writes to some of the rows have no loop nest")
    value = yield a, wanted.place
    for number in range(indices.shape[dim]):
        row = tuple([Index(constant=number) if d == dim else i for d, i in enumerate(wanted.place)])
        at = yield from index_at(build, indices, row)
        here = _is_at(build, wanted.place[dim], at, a.shape[dim])
        put = (yield source, row) if isinstance(source, TensorProxy) else build.constant(source, dtype)
        if wanted.bound.symbol is prims.scatter_add:
            wide = computed_in(dtype)
            put = build.to(build.compute("add", build.to(value, wide), build.to(put, wide)), dtype)
        value = build.compute("where", here, put, value)
    return value


def _is_at(build: Builder, place: Index, at: str, size: int) -> str:
    """Write whether an index leads to a place, compared in the narrowest dtype that has all places."""
    if size < 2**31:
        zero, end, nowhere = (build.constant(n, dtypes.int64) for n in (0, size, -1))
        low, high = (build.compute(o, at, n, dtype=dtypes.bool8) for o, n in (("ge", zero), ("lt", end)))
        within = build.compute("bitwise_and", low, high)
        at = build.to(build.compute("where", within, at, nowhere), dtypes.int32)
    return build.compute("eq", build.position(place, build.dtype(at)), at, dtype=dtypes.bool8)
