"""Prims that add rows to places which indices tell: the first nest writes what is there before, the second one adds."""

from __future__ import annotations

import thunder_prims as prims
from thunder_ir import BoundSymbol, DType, dtypes
from thunder_loops.build import Builder, Elsewhere
from thunder_loops.elementwise import operand_dtype
from thunder_loops.index import Index
from thunder_loops.nest import Add, Buffer, Constant, Nest, Store
from thunder_loops.rules import CannotLower, Elements, Place, Wanted, lowering
from thunder_loops.space import space_of

ADDING = frozenset({prims.embedding_backward})
"""Prims that need two nests of their own."""


@lowering(prims.embedding_backward)
def sum_of_rows(build: Builder, wanted: Wanted) -> Elements:
    """No element is known before all are added up."""
    raise Elsewhere(wanted.output)
    yield  # a rule is a generator


def check_addable(bound: BoundSymbol) -> None:
    """Refuse a call whose elements are no plain sums.

    Raises:
        CannotLower: it is such a one.
    """
    operand_dtype(bound.args[0])
    if bound.args[4]:
        raise CannotLower("rows that are divided by how often their index comes have no loop nest")


def added_dims(bound: BoundSymbol) -> tuple[int, ...]:
    """Return the dimensions of what is added along which two elements may come to one place."""
    return tuple(range(bound.args[0].ndim - 1))


def write_addition(build: Builder, bound: BoundSymbol, place: Place, over: tuple[str, ...], buffer: Buffer) -> None:
    """Write what adds an element of ``dy`` to the row of the result that its index tells."""
    dy, indices, _, padding, _ = bound.args
    at = build.to(build.value(indices, place[:-1]), dtypes.int64)
    value = build.to(build.value(dy, place), buffer.dtype)
    when = build.compute("ne", at, build.constant(padding, dtypes.int64), dtype=dtypes.bool8) if padding >= 0 else ""
    to = tuple([build.plain(i) for i in (Index.of(at), place[-1])])
    build.statements.append(Add(buffer.name, to, value, buffer.dtype, over, when))


def zeros(buffer: Buffer) -> Nest:
    """Return the nest that writes zeros to a buffer."""
    space = space_of(buffer.shape, {})
    return Nest(space.axes, (_zero("v0", buffer.dtype), Store(buffer.name, space.place, "v0")))


def _zero(name: str, dtype: DType) -> Constant:
    return Constant(name, "0.0" if dtype.is_floating else "0", dtype)
