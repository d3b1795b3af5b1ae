"""Functions of ``float32`` by polynomials of our own, where these are faster than SLEEF's and as exact.

The coefficients are minimax fits, rounded to ``float32``; ``tools/accuracy.py`` of this package sweeps the functions
against ``float64``.
"""

from __future__ import annotations

from collections.abc import Sequence

from thunder_executors_llvm.emitter import Emitter, Value, type_of
from thunder_executors_llvm.rows import SINGLE, lowering
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6
MAGIC = 1.5 * 2.0**23
"""Added to a small ``float32``, it leaves the nearest integer in the lowest bits."""

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
    """``2**n * exp(r)`` with ``a = n * log(2) + r``; the power in two steps, for denormals and what overflows."""
    bounded = emit.select(emit.compare("fcmp olt", a, emit.like(-104.0, a)), emit.like(-104.0, a), a)
    bounded = emit.select(emit.compare("fcmp ogt", a, emit.like(89.0, a)), emit.like(89.0, a), bounded)
    shifted = fma(emit, bounded, emit.like(LOG2_E, a), emit.like(MAGIC, a))
    whole = emit.binary("fsub", shifted, emit.like(MAGIC, a))
    rest = fma(emit, whole, emit.like(-LN2_HIGH, a), bounded)  # exact
    low = emit.binary("fmul", whole, emit.like(LN2_LOW, a))
    short = emit.binary("fsub", rest, low)
    tail = emit.binary("fsub", emit.binary("fmul", emit.binary("fmul", short, short), horner(emit, EXP, short)), low)
    one = emit.like(1, a)
    total = emit.binary("fadd", one, rest)
    lost = emit.binary("fsub", rest, emit.binary("fsub", total, one))
    value = emit.binary("fadd", total, emit.binary("fadd", lost, tail))
    bits = emit.value(f"bitcast {shifted} to {type_of('i32', a.lanes)}", dtypes.int32, a.lanes)
    power = emit.binary("sub", bits, emit.like(0x4B400000, bits))
    half = emit.binary("ashr", power, emit.like(1, power))
    for part in (half, emit.binary("sub", power, half)):
        value = emit.binary("fmul", value, _power_of_two(emit, part))
    return value


def _power_of_two(emit: Emitter, exponent: Value) -> Value:
    biased = emit.binary("shl", emit.binary("add", exponent, emit.like(127, exponent)), emit.like(23, exponent))
    return emit.value(f"bitcast {biased} to {type_of('float', exponent.lanes)}", dtypes.float32, exponent.lanes)


@lowering("erf", SINGLE, missing)
def erf(emit: Emitter, a: Value) -> Value:
    """A polynomial near 0, and ``1 - exp(polynomial)`` beyond."""
    size = emit.intrinsic("llvm.fabs", a)
    near = fma(emit, horner(emit, ERF, emit.binary("fmul", a, a)), a, a)
    bounded = emit.select(emit.compare("fcmp ogt", size, emit.like(3.95, a)), emit.like(3.95, a), size)
    far = emit.binary("fsub", emit.like(1, a), exp(emit, horner(emit, LOG_ERFC, bounded)))
    far = emit.intrinsic("llvm.copysign", far, a)
    return emit.select(emit.compare("fcmp ogt", size, emit.like(0.9277, a)), far, near)


@lowering("tanh", SINGLE, missing)
def tanh(emit: Emitter, a: Value) -> Value:
    """A polynomial near 0, and ``1 - 2 / (exp(2 * a) + 1)`` beyond."""
    size = emit.intrinsic("llvm.fabs", a)
    square = emit.binary("fmul", a, a)
    near = fma(emit, emit.binary("fmul", horner(emit, TANH, square), square), a, a)
    one = emit.like(1, a)
    grown = emit.binary("fadd", exp(emit, emit.binary("fadd", size, size)), one)
    far = emit.binary("fsub", one, emit.binary("fdiv", emit.like(2, a), grown))
    return emit.intrinsic(
        "llvm.copysign", emit.select(emit.compare("fcmp ogt", size, emit.like(0.63, a)), far, near), a
    )
