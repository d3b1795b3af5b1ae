"""Products of matrices that sum nothing up; all others are left to libraries."""

from __future__ import annotations

import thunder_prims as prims
from thunder_loops.build import Builder, computed_in
from thunder_loops.elementwise import operand_dtype
from thunder_loops.index import Index
from thunder_loops.rules import CannotLower, Elements, Wanted, lowering
from thunder_loops.shape import is_one


@lowering(prims.matmul)
def matmul(build: Builder, wanted: Wanted) -> Elements:
    """The product of an element of a column and one of a row."""
    a, b = wanted.args
    if not is_one(a.shape[-1]):
        raise CannotLower("products of matrices are the library's")
    dtype = computed_in(operand_dtype(a, b))
    *batch, row, column = wanted.place
    first = build.to((yield a, (*batch, row, Index())), dtype)
    second = build.to((yield b, (*batch, Index(), column)), dtype)
    return build.to(build.compute("mul", first, second), a.dtype)
