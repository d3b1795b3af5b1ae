"""Elementwise prims: one operation each, in ``float32`` for dtypes of low precision."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import DType, NumberProxy, Symbol, TensorProxy, dtypes
from thunder_loops.build import LOW_PRECISION, Builder, computed_in
from thunder_loops.operations import OPERATIONS
from thunder_loops.rules import CannotLower, Elements, Wanted, lowering

ROUNDS_NUMBERS = frozenset({
    prims.eq, prims.ne, prims.lt, prims.le, prims.gt, prims.ge, prims.maximum, prims.minimum, prims.where, prims.clamp,
})  # fmt: skip
"""Prims whose numbers are elements of the tensor's dtype; others compute with the number as ``float32`` has it."""

ELEMENTWISE: tuple[Symbol, ...] = tuple([getattr(prims, name) for name in OPERATIONS if name not in ("pow", "where")])
"""Prims that are the operation of their name; powers and choices have rules of their own."""


def operand_dtype(*operands: Any) -> DType:
    """Return the dtype that the tensors among operands share."""
    found: DType = next(o.dtype for o in operands if isinstance(o, TensorProxy))
    if found.is_complex or found not in NATIVE:
        raise CannotLower(f"elements of {found} have no loop nest")
    return found


NATIVE = frozenset({
    dtypes.bool8, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16,
    dtypes.float32, dtypes.float64,
})  # fmt: skip
"""The dtypes that values of loop programs can have."""


def operand(build: Builder, wanted: Wanted, value: Any, dtype: DType) -> Elements:
    """Return an operand at the wanted place, in the dtype that elements of ``dtype`` are computed in."""
    if isinstance(value, TensorProxy):
        return build.to((yield value, wanted.place), computed_in(dtype))
    if dtype in LOW_PRECISION and wanted.bound.symbol in ROUNDS_NUMBERS:
        return build.to(build.constant(value, dtype), computed_in(dtype))
    return build.constant(value, computed_in(dtype))


@lowering(*ELEMENTWISE)
def elementwise(build: Builder, wanted: Wanted) -> Elements:
    """The operation of the prim's own name."""
    dtype = operand_dtype(*wanted.args)
    operands = []
    for value in wanted.args:
        operands.append((yield from operand(build, wanted, value, dtype)))
    result = wanted.output.dtype
    return build.to(build.compute(wanted.bound.symbol.name, *operands, dtype=computed_in(result)), result)


@lowering(prims.where)
def where(build: Builder, wanted: Wanted) -> Elements:
    """A choice, for which nothing is rounded."""
    pred, a, b = wanted.args
    dtype = operand_dtype(a, b)
    chosen = yield pred, wanted.place
    sides = []
    for side in (a, b):
        made = (yield side, wanted.place) if isinstance(side, TensorProxy) else build.constant(side, dtype)
        sides.append(made)
    return build.compute("where", chosen, *sides, dtype=dtype)


@lowering(prims.clamp)
def clamp(build: Builder, wanted: Wanted) -> Elements:
    """The greater of value and lower bound, then the lesser of that and the upper one.

    The second of equal operands is taken: as in PyTorch, -0.0 stays where a bound is a number 0, and not a tensor.
    """
    a, low, high = wanted.args
    dtype = operand_dtype(a)
    value = yield from operand(build, wanted, a, dtype)
    for bound, operation in ((low, "maximum"), (high, "minimum")):
        if bound is not None:
            limit = yield from operand(build, wanted, bound, dtype)
            pair = (value, limit) if isinstance(bound, TensorProxy) else (limit, value)
            value = build.compute(operation, *pair)
    return build.to(value, dtype)


POWERS: dict[float, tuple[str, ...]] = {
    0.5: ("sqrt",), -0.5: ("rsqrt",), 1.0: (), 2.0: ("square",), 3.0: ("cube",), -1.0: ("reciprocal",),
    -2.0: ("square", "reciprocal"),
}  # fmt: skip
"""What powers with these exponents are computed by: the steps that PyTorch takes."""


@lowering(prims.pow)
def pow(build: Builder, wanted: Wanted) -> Elements:
    """A few products where the exponent is a small number, and the function otherwise."""
    a, b = wanted.args
    dtype = operand_dtype(a, b)
    exponent = b if isinstance(b, (int, float)) and not isinstance(b, bool) else None
    if dtype.is_exact and (exponent is None or exponent not in (1, 2, 3)):
        raise CannotLower(f"a power of {dtype} with another exponent than 1, 2 or 3 has no loop nest")
    steps = POWERS.get(float(exponent)) if exponent is not None else None
    base = yield from operand(build, wanted, a, dtype)
    if steps is None:
        value = build.compute("pow", base, (yield from operand(build, wanted, b, dtype)))
    else:
        value = base
        for step in steps:
            value = _step(build, step, value)
    return build.to(value, dtype)


def _step(build: Builder, step: str, value: str) -> str:
    if step == "square":
        return build.compute("mul", value, value)
    if step == "cube":
        return build.compute("mul", build.compute("mul", value, value), value)
    return build.compute(step, value)


@lowering(prims.convert_element_type)
def convert_element_type(build: Builder, wanted: Wanted) -> Elements:
    """A conversion."""
    operand_dtype(wanted.args[0])
    operand_dtype(wanted.output)
    return build.to((yield wanted.args[0], wanted.place), wanted.output.dtype)


@lowering(prims.lerp)
def lerp(build: Builder, wanted: Wanted) -> Elements:
    """From the nearer of the two ends, so that both are met."""
    start, end, weight = wanted.args
    dtype = operand_dtype(start, end, weight)
    a = yield from operand(build, wanted, start, dtype)
    b = yield from operand(build, wanted, end, dtype)
    w = yield from operand(build, wanted, weight, dtype)
    half, one = build.constant(0.5, build.dtype(w)), build.constant(1, build.dtype(w))
    near = build.compute("lt", build.compute("abs", w), half, dtype=dtypes.bool8)
    gap = build.compute("sub", b, a)
    from_start = build.compute("add", a, build.compute("mul", w, gap))
    from_end = build.compute("sub", b, build.compute("mul", gap, build.compute("sub", one, w)))
    return build.to(build.compute("where", near, from_start, from_end), dtype)


@lowering(prims.clone)
def clone(build: Builder, wanted: Wanted) -> Elements:
    """The element itself."""
    operand_dtype(wanted.args[0])
    return (yield wanted.args[0], wanted.place)


@lowering(prims.full)
def full(build: Builder, wanted: Wanted) -> Elements:
    """The number."""
    operand_dtype(wanted.output)
    return build.constant(wanted.args[1], wanted.output.dtype)
    yield


@lowering(prims.iota)
def iota(build: Builder, wanted: Wanted) -> Elements:
    """Start and step from the index; floating-point ones as PyTorch computes them, in one dtype."""
    _, start, step, dtype, _ = wanted.args
    if not dtype.is_integer or any([isinstance(n, NumberProxy) for n in (start, step)]):
        raise CannotLower("a range of floats, or of numbers that the call tells, has no loop nest")
    operand_dtype(wanted.output)
    return build.position(wanted.place[0] * step + start, dtype)
    yield
