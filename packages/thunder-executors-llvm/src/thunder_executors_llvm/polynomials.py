"""Functions of ``float32`` by polynomials of our own, where these are faster than SLEEF's and as exact.

The coefficients are minimax fits, rounded to ``float32``; ``tools/accuracy.py`` of this package sweeps the functions
against ``float64``.
"""

from __future__ import annotations

from collections.abc import Sequence

from thunder_executors_llvm.emitter import Emitter, Value, joined, part, type_of
from thunder_executors_llvm.rows import SINGLE, lowering
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6
MAGIC = 1.5 * 2.0**23
"""Added to a small ``float32``, it leaves the nearest integer in the lowest bits."""

MAGIC_BITS = 0x4B400000
"""The bits of that number."""

EXP = (0.5, 0.1666651964187622, 0.04166839271783829, 0.008368780836462975, 0.0013814466074109077)
"""``(exp(r) - 1 - r) / r**2`` for ``abs(r) <= log(2) / 2``."""

ERF = (
    0.12837915122509003, -0.37612485885620117, 0.1128172054886818, -0.02676311507821083, 0.004987990949302912,
    -0.0005964185111224651,
)  # fmt: skip
"""``erf(x) / x - 1`` in ``x**2``, for ``abs(x) <= 0.9277``."""

LOG_ERFC = (
    0.00017672943067736924, -1.1295247077941895, -0.633327066898346, -0.10830187052488327, 0.025133496150374413,
    -0.004176400136202574, 0.00043556312448345125, -2.1190162442508154e-05,
)  # fmt: skip
"""``log(1 - erf(x))`` for ``0.9277 <= x <= 3.95``."""

TANH = (-0.33333277702331543, 0.13331331312656403, -0.053729984909296036, 0.020606106147170067, -0.00566689670085907)
"""``(tanh(x) / x - 1) / x**2`` in ``x**2``, for ``abs(x) <= 0.63``."""


def missing(target: Target, dtype: DType) -> str | None:
    """Return why a target has no use for polynomials, or ``None``."""
    return (
        None if not target.is_x86 or "fma" in target.machine.has else "the processor does not multiply and add at once"
    )


def fma(emit: Emitter, a: Value, b: Value, c: Value) -> Value:
    """Write ``a * b + c``, rounded once."""
    return emit.intrinsic("llvm.fma", a, b, c)


def horner(emit: Emitter, coefficients: Sequence[float], x: Value) -> Value:
    """Write a polynomial, lowest coefficient first."""
    found = emit.like(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        found = fma(emit, found, x, emit.like(coefficient, x))
    return found


@lowering("exp", SINGLE, missing)
def exp(emit: Emitter, a: Value) -> Value:
    """``2**n * exp(r)`` with ``a = n * log(2) + r``; the result is rounded once more where it is denormal."""
    bounded = emit.select(emit.compare("fcmp olt", a, emit.like(-104.0, a)), emit.like(-104.0, a), a)
    bounded = emit.select(emit.compare("fcmp ogt", bounded, emit.like(89.0, a)), emit.like(89.0, a), bounded)
    shifted, whole, value = _reduced(emit, bounded)
    if a.lanes % 16 == 0 and emit.target.is_x86 and emit.target.bits == 512:
        return _scaled(emit, value, whole)
    power = emit.binary("sub", _bits(emit, shifted), emit.constant(MAGIC_BITS, dtypes.int32, a.lanes))
    half = emit.binary("ashr", power, emit.like(1, power))  # in two steps, for denormals and what overflows
    for exponent in (half, emit.binary("sub", power, half)):
        value = emit.binary("fmul", value, _power_of_two(emit, exponent))
    return value


@lowering("sigmoid", SINGLE, missing)
def sigmoid(emit: Emitter, a: Value) -> Value:
    """``1 / (1 + exp(0 - a))``, as PyTorch's kernel computes it."""
    one = emit.like(1, a)
    return emit.binary("fdiv", one, emit.binary("fadd", one, exp(emit, emit.binary("fsub", emit.like(0, a), a))))


def exp_in_range(emit: Emitter, a: Value) -> Value:
    """Write ``exp`` of what is known to lie from -87 to 88: neither the result nor ``2**n`` is denormal or infinite."""
    shifted, _, value = _reduced(emit, a)
    bits = emit.binary("add", _bits(emit, value), _shifted(emit, _bits(emit, shifted)))
    return emit.value(f"bitcast {bits} to {type_of('float', a.lanes)}", dtypes.float32, a.lanes)


def _reduced(emit: Emitter, a: Value) -> tuple[Value, Value, Value]:
    """Write ``n``, as the lowest bits of a number and as a number, and ``exp(r)``."""
    shifted = fma(emit, a, emit.like(LOG2_E, a), emit.like(MAGIC, a))
    whole = emit.binary("fsub", shifted, emit.like(MAGIC, a))
    rest = fma(emit, whole, emit.like(-LN2_LOW, a), fma(emit, whole, emit.like(-LN2_HIGH, a), a))
    square = emit.binary("fmul", rest, rest)
    return shifted, whole, emit.binary("fadd", emit.like(1, a), fma(emit, square, horner(emit, EXP, rest), rest))


def _scaled(emit: Emitter, value: Value, power: Value) -> Value:
    """Write ``value * 2**power``, rounded once, in registers of 16 lanes."""
    if value.lanes > 16:
        starts = range(0, value.lanes, 16)
        return joined(emit, [_scaled(emit, part(emit, value, i, 16), part(emit, power, i, 16)) for i in starts])
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    vector = value.type
    emit.declare(f"{vector} @{name}({vector}, {vector}, {vector}, i16, i32)")
    return emit.value(
        f"call {vector} @{name}({value}, {power}, {vector} zeroinitializer, i16 -1, i32 4)", value.dtype, value.lanes
    )


def _bits(emit: Emitter, a: Value) -> Value:
    return emit.value(f"bitcast {a} to {type_of('i32', a.lanes)}", dtypes.int32, a.lanes)


def _shifted(emit: Emitter, a: Value) -> Value:
    """Write an integer where the exponent of a number stands."""
    return emit.binary("shl", a, emit.like(23, a))


def _power_of_two(emit: Emitter, exponent: Value) -> Value:
    biased = _shifted(emit, emit.binary("add", exponent, emit.like(127, exponent)))
    return emit.value(f"bitcast {biased} to {type_of('float', exponent.lanes)}", dtypes.float32, exponent.lanes)


@lowering("erf", SINGLE, missing)
def erf(emit: Emitter, a: Value) -> Value:
    """A polynomial near 0, and ``1 - exp(polynomial)`` beyond."""
    size = emit.intrinsic("llvm.fabs", a)
    near = fma(emit, horner(emit, ERF, emit.binary("fmul", a, a)), a, a)
    bounded = emit.select(emit.compare("fcmp ogt", size, emit.like(3.95, a)), emit.like(3.95, a), size)
    far = emit.binary("fsub", emit.like(1, a), exp_in_range(emit, horner(emit, LOG_ERFC, bounded)))
    far = emit.intrinsic("llvm.copysign", far, a)
    return emit.select(emit.compare("fcmp ogt", size, emit.like(0.9277, a)), far, near)


@lowering("tanh", SINGLE, missing)
def tanh(emit: Emitter, a: Value) -> Value:
    """A polynomial near 0, and ``1 - 2 / (exp(2 * a) + 1)`` beyond."""
    size = emit.intrinsic("llvm.fabs", a)
    square = emit.binary("fmul", a, a)
    near = fma(emit, emit.binary("fmul", horner(emit, TANH, square), square), a, a)
    one = emit.like(1, a)
    bounded = emit.select(emit.compare("fcmp ogt", size, emit.like(10, a)), emit.like(10, a), size)
    grown = emit.binary("fadd", exp_in_range(emit, emit.binary("fadd", bounded, bounded)), one)
    far = emit.binary("fsub", one, emit.binary("fdiv", emit.like(2, a), grown))
    return emit.intrinsic(
        "llvm.copysign", emit.select(emit.compare("fcmp ogt", size, emit.like(0.63, a)), far, near), a
    )
