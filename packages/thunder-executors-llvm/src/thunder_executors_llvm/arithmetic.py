"""Sums, products, quotients, extrema, bits, and rounding."""

from __future__ import annotations

from thunder_executors_llvm.emitter import Emitter, Value
from thunder_executors_llvm.rows import (
    ANY,
    BOOL,
    EXACT,
    FLOATING,
    INTEGER,
    SIGNED,
    UNSIGNED,
    instruction,
    intrinsic,
    lowering,
    predicate,
    unchanged,
)
from thunder_ir import dtypes

lowering("add", FLOATING)(instruction("fadd"))
lowering("add", INTEGER)(instruction("add"))
lowering("add", BOOL)(instruction("or"))
lowering("sub", FLOATING)(instruction("fsub"))
lowering("sub", INTEGER)(instruction("sub"))
lowering("mul", FLOATING)(instruction("fmul"))
lowering("mul", INTEGER)(instruction("mul"))
lowering("mul", BOOL)(instruction("and"))
lowering("div", FLOATING)(instruction("fdiv"))
lowering("bitwise_and", EXACT)(instruction("and"))
lowering("bitwise_or", EXACT)(instruction("or"))
lowering("bitwise_xor", EXACT)(instruction("xor"))
for _name, _instruction in (("ceil", "ceil"), ("floor", "floor"), ("round", "roundeven"), ("trunc", "trunc")):
    lowering(_name, FLOATING)(intrinsic(f"llvm.{_instruction}"))
    lowering(_name, EXACT)(unchanged)
lowering("abs", FLOATING)(intrinsic("llvm.fabs"))
lowering("abs", UNSIGNED)(unchanged)
lowering("sqrt", FLOATING)(intrinsic("llvm.sqrt"))
lowering("copysign", FLOATING)(intrinsic("llvm.copysign"))


@lowering("abs", SIGNED)
def abs_signed(emit: Emitter, a: Value) -> Value:
    """The least integer is its own absolute value."""
    return emit.intrinsic("llvm.abs", a, flags="i1 false")


@lowering("neg", FLOATING)
def neg(emit: Emitter, a: Value) -> Value:
    """The sign changes, that of NaN and 0 included."""
    return emit.value(f"fneg {a}", a.dtype, a.lanes)


@lowering("neg", INTEGER)
def neg_integer(emit: Emitter, a: Value) -> Value:
    """0 minus it."""
    return emit.binary("sub", emit.like(0, a), a)


@lowering("bitwise_not", INTEGER)
def bitwise_not(emit: Emitter, a: Value) -> Value:
    """All bits changed."""
    return emit.binary("xor", a, emit.like(-1, a))


@lowering("bitwise_not", BOOL)
def logical_not(emit: Emitter, a: Value) -> Value:
    """The other one."""
    return emit.binary("xor", a, emit.like(1, a))


@lowering("reciprocal", FLOATING)
def reciprocal(emit: Emitter, a: Value) -> Value:
    """1 over it."""
    return emit.binary("fdiv", emit.like(1, a), a)


@lowering("rsqrt", FLOATING)
def rsqrt(emit: Emitter, a: Value) -> Value:
    """1 over the root; no estimate."""
    return emit.binary("fdiv", emit.like(1, a), emit.intrinsic("llvm.sqrt", a))


@lowering("sign", FLOATING)
def sign(emit: Emitter, a: Value) -> Value:
    """1, -1, or 0: of NaN, 0."""
    zero = emit.like(0, a)
    below = emit.select(emit.compare("fcmp olt", a, zero), emit.like(-1, a), zero)
    return emit.select(emit.compare("fcmp ogt", a, zero), emit.like(1, a), below)


@lowering("sign", INTEGER)
def sign_integer(emit: Emitter, a: Value) -> Value:
    """1, -1, or 0."""
    zero, one = emit.like(0, a), emit.like(1, a)
    if a.dtype is dtypes.uint8:
        return emit.select(emit.compare("icmp ne", a, zero), one, zero)
    below = emit.select(emit.compare("icmp slt", a, zero), emit.like(-1, a), zero)
    return emit.select(emit.compare("icmp sgt", a, zero), one, below)


@lowering("maximum", FLOATING)
def maximum(emit: Emitter, a: Value, b: Value) -> Value:
    """The greater; the second of equal ones; NaN if one is NaN."""
    greater = emit.select(emit.compare("fcmp ogt", a, b), a, b)
    return emit.select(emit.compare("fcmp uno", a, a), a, greater)


@lowering("minimum", FLOATING)
def minimum(emit: Emitter, a: Value, b: Value) -> Value:
    """The lesser; the second of equal ones; NaN if one is NaN."""
    lesser = emit.select(emit.compare("fcmp olt", a, b), a, b)
    return emit.select(emit.compare("fcmp uno", a, a), a, lesser)


for _name, _choice in (("maximum", "max"), ("minimum", "min")):
    lowering(_name, SIGNED)(intrinsic(f"llvm.s{_choice}"))
    lowering(_name, UNSIGNED)(intrinsic(f"llvm.u{_choice}"))
lowering("maximum", BOOL)(instruction("or"))
lowering("minimum", BOOL)(instruction("and"))


@lowering("where", ANY)
def where(emit: Emitter, condition: Value, a: Value, b: Value) -> Value:
    """No arithmetic: a NaN on the side not taken must not leak."""
    return emit.select(condition, a, b)


@lowering("bitwise_left_shift", INTEGER)
def shift_left(emit: Emitter, a: Value, b: Value) -> Value:
    """0 where the bits are shifted out, or the number of places is negative."""
    fits = emit.compare("icmp ult", b, emit.like(a.dtype.bits, b))
    shifted = emit.binary("shl", a, emit.select(fits, b, emit.like(0, b)))
    return emit.select(fits, shifted, emit.like(0, shifted))


@lowering("bitwise_right_shift", INTEGER)
def shift_right(emit: Emitter, a: Value, b: Value) -> Value:
    """The sign where the bits are shifted out, or the number of places is negative."""
    unsigned = a.dtype is dtypes.uint8
    fits = emit.compare("icmp ult", b, emit.like(a.dtype.bits, b))
    places = emit.select(fits, b, emit.like(a.dtype.bits - 1, b))
    shifted = emit.binary("lshr" if unsigned else "ashr", a, places)
    return emit.select(fits, shifted, emit.like(0, shifted)) if unsigned else shifted


@lowering("trunc_divide", FLOATING)
def trunc_divide(emit: Emitter, a: Value, b: Value) -> Value:
    """The quotient without its fraction."""
    return emit.intrinsic("llvm.trunc", emit.binary("fdiv", a, b))


for _name, _float, _signed, _unsigned in (
    ("eq", "oeq", "eq", "eq"), ("ne", "une", "ne", "ne"), ("lt", "olt", "slt", "ult"), ("le", "ole", "sle", "ule"),
    ("gt", "ogt", "sgt", "ugt"), ("ge", "oge", "sge", "uge"),
):  # fmt: skip
    lowering(_name, FLOATING)(predicate(f"fcmp {_float}"))
    lowering(_name, SIGNED)(predicate(f"icmp {_signed}"))
    lowering(_name, UNSIGNED)(predicate(f"icmp {_unsigned}"))
    lowering(_name, BOOL)(predicate(f"icmp {_unsigned}"))


@lowering("isnan", FLOATING)
def isnan(emit: Emitter, a: Value) -> Value:
    """Whether it does not equal itself."""
    return emit.compare("fcmp uno", a, a)


@lowering("isinf", FLOATING)
def isinf(emit: Emitter, a: Value) -> Value:
    """Whether its magnitude is infinite."""
    return emit.compare("fcmp oeq", emit.intrinsic("llvm.fabs", a), emit.like(float("inf"), a))


@lowering("isfinite", FLOATING)
def isfinite(emit: Emitter, a: Value) -> Value:
    """Whether its magnitude is below infinity."""
    return emit.compare("fcmp olt", emit.intrinsic("llvm.fabs", a), emit.like(float("inf"), a))


@lowering("signbit", FLOATING)
def signbit(emit: Emitter, a: Value) -> Value:
    """The sign of a number of magnitude 1, as that of 0 and NaN does not compare."""
    return emit.compare("fcmp olt", emit.intrinsic("llvm.copysign", emit.like(1, a), a), emit.like(0, a))


@lowering("signbit", SIGNED)
def signbit_integer(emit: Emitter, a: Value) -> Value:
    """Whether it is negative."""
    return emit.compare("icmp slt", a, emit.like(0, a))


for _name, _answer in (("isnan", 0), ("isinf", 0), ("isfinite", 1)):
    lowering(_name, EXACT)(lambda emit, a, answer=_answer: emit.constant(answer, dtypes.bool8, a.lanes))
lowering("signbit", EXACT)(lambda emit, a: emit.constant(0, dtypes.bool8, a.lanes))
