"""From dtype to dtype, as C does it on the machine."""

from __future__ import annotations

from thunder_executors_llvm.emitter import SCALARS, Emitter, Value, type_of
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes


def missing(target: Target, have: DType, want: DType) -> str | None:
    """Return why elements of a dtype cannot be converted to another one, or ``None``."""
    if dtypes.float16 in (have, want) and not target.converts_half:
        return "the processor has no instructions that convert float16"
    return None


def convert(emit: Emitter, a: Value, dtype: DType) -> Value:
    """Write a conversion."""
    if a.dtype is dtype:
        return a
    if a.dtype is dtypes.bfloat16:
        return convert(emit, from_bfloat16(emit, a), dtype)
    if a.dtype is dtypes.float16:
        return convert(emit, emit.convert("fpext", a, dtypes.float32), dtype)
    if dtype is dtypes.bool8:
        return _truth(emit, a)
    if dtype is dtypes.bfloat16:
        return to_bfloat16(emit, convert(emit, a, dtypes.float32))
    if dtype is dtypes.float16:
        return emit.convert("fptrunc", convert(emit, a, dtypes.float32), dtype)
    if dtype.is_floating:
        return _to_float(emit, a, dtype)
    return _from_float(emit, a, dtype) if a.dtype.is_floating else _integers(emit, a, dtype)


def _truth(emit: Emitter, a: Value) -> Value:
    return emit.compare("fcmp une" if a.dtype.is_floating else "icmp ne", a, emit.like(0, a))


def _to_float(emit: Emitter, a: Value, dtype: DType) -> Value:
    if a.dtype.is_floating:
        return emit.convert("fpext" if dtype.bits > a.dtype.bits else "fptrunc", a, dtype)
    signed = a.dtype.is_integer and a.dtype.signed
    return emit.convert("sitofp" if signed else "uitofp", a, dtype)


def _from_float(emit: Emitter, a: Value, dtype: DType) -> Value:
    """Through a wider integer, so that what does not fit is what the machine's instruction makes of it."""
    wide = dtypes.int64 if dtype in (dtypes.int64, dtypes.uint8) else dtypes.int32
    return _integers(emit, emit.convert("fptosi", a, wide), dtype)


def _integers(emit: Emitter, a: Value, dtype: DType) -> Value:
    have = 1 if a.dtype is dtypes.bool8 else a.dtype.bits
    if have == dtype.bits:
        return Value(a.text, dtype, a.lanes)
    if have > dtype.bits:
        return emit.convert("trunc", a, dtype)
    return emit.convert("sext" if a.dtype.is_integer and a.dtype.signed else "zext", a, dtype)


def from_bfloat16(emit: Emitter, a: Value) -> Value:
    """Write what makes ``float32`` of the bits of ``bfloat16``: exact."""
    bits = emit.define(f"zext {a} to {type_of('i32', a.lanes)}")
    shifted = emit.binary("shl", Value(bits, dtypes.int32, a.lanes), emit.constant(16, dtypes.int32, a.lanes))
    return emit.value(f"bitcast {shifted} to {type_of('float', a.lanes)}", dtypes.float32, a.lanes)


def to_bfloat16(emit: Emitter, a: Value, exact: bool = False, short_nans: bool = False) -> Value:
    """Write what rounds ``float32`` to the nearest ``bfloat16``, of two the even one; denormals are kept.

    Args:
        emit: where to.
        a: what is rounded.
        exact: whether ``bfloat16`` has it.
        short_nans: whether the lower half of a NaN is 0: then what is added to its bits does not make it a number.
    """
    bits = emit.value(f"bitcast {a} to {type_of('i32', a.lanes)}", dtypes.int32, a.lanes)
    if not exact:
        last = emit.binary("and", emit.binary("lshr", bits, emit.like(16, bits)), emit.like(1, bits))
        bits = emit.binary("add", emit.binary("add", bits, emit.like(0x7FFF, bits)), last)
    if not exact and not short_nans:
        bits = emit.select(emit.compare("fcmp uno", a, a), emit.like(0x7FC00000, bits), bits)
    high = emit.binary("lshr", bits, emit.like(16, bits))
    return emit.value(f"trunc {high} to {type_of(SCALARS[dtypes.bfloat16], a.lanes)}", dtypes.bfloat16, a.lanes)
