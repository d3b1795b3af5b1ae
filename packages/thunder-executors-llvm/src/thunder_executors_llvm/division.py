"""Quotients of integers by numbers that are known; by others, PyTorch raises for 0, which a kernel does not."""

from __future__ import annotations

from thunder_executors_llvm.emitter import Emitter, Value
from thunder_executors_llvm.rows import INTEGER, lowering
from thunder_ir import dtypes

BY_NUMBERS = frozenset({"floor_divide", "fmod", "remainder", "trunc_divide"})
"""Operations on integers whose second operand must be a constant other than 0."""


def _truncated(emit: Emitter, a: Value, b: Value) -> Value:
    if a.dtype is dtypes.uint8:
        return emit.binary("udiv", a, b)
    if b.text == "-1":  # the least integer over -1 is itself, which the instruction does not say
        return emit.binary("sub", emit.like(0, a), a)
    return emit.binary("sdiv", a, b)


def _left(emit: Emitter, a: Value, b: Value, quotient: Value) -> Value:
    return emit.binary("sub", a, emit.binary("mul", quotient, b))


def _moves(emit: Emitter, left: Value, b: Value) -> Value | None:
    """Whether the quotient lies below the one without fraction; ``None`` if it never does."""
    if left.dtype is dtypes.uint8:
        return None
    beyond = "sgt" if int(b.text) < 0 else "slt"
    return emit.compare(f"icmp {beyond}", left, emit.like(0, left))


@lowering("trunc_divide", INTEGER)
def trunc_divide(emit: Emitter, a: Value, b: Value) -> Value:
    """Rounded towards 0."""
    return _truncated(emit, a, b)


@lowering("fmod", INTEGER)
def fmod(emit: Emitter, a: Value, b: Value) -> Value:
    """What is left of the quotient rounded towards 0."""
    return _left(emit, a, b, _truncated(emit, a, b))


@lowering("floor_divide", INTEGER)
def floor_divide(emit: Emitter, a: Value, b: Value) -> Value:
    """Rounded towards minus infinity."""
    quotient = _truncated(emit, a, b)
    moves = _moves(emit, _left(emit, a, b, quotient), b)
    return (
        quotient
        if moves is None
        else emit.select(moves, emit.binary("sub", quotient, emit.like(1, quotient)), quotient)
    )


@lowering("remainder", INTEGER)
def remainder(emit: Emitter, a: Value, b: Value) -> Value:
    """What is left has the sign of ``b``."""
    left = _left(emit, a, b, _truncated(emit, a, b))
    moves = _moves(emit, left, b)
    return left if moves is None else emit.select(moves, emit.binary("add", left, b), left)
