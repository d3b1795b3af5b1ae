"""Functions of numbers that were ``bfloat16`` and are rounded to it at once: with as many digits as that needs.

There are 65,536 such numbers, and the tests try all of them: the results are those of PyTorch's kernels.
"""

from __future__ import annotations

from thunder_executors_llvm import mathematics, polynomials
from thunder_executors_llvm.emitter import Emitter, Value, type_of
from thunder_executors_llvm.polynomials import MAGIC, fma, horner
from thunder_executors_llvm.rows import BRIEF, Write, lowering
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes

HALF_PI_HIGH, HALF_PI_LOW = 1.570796251296997, 7.549790126404332e-08
"""Both positive, so that -0 stays what it is."""

SIN = (1.0, -0.1666666716337204, 0.008332809433341026, -0.0001958799985004589)
"""``sin(r) / r`` in ``r**2``, for ``abs(r) <= pi / 4``."""

COS = (1.0, -0.5, 0.04166196286678314, -0.0013661292614415288)
"""``cos(r)`` in ``r**2``, for the same."""

FARTHEST = 2.0**21
"""From here on it takes more digits to find how far the next multiple of ``pi / 2`` is."""


def of_quarters(function: str, ahead: int) -> Write:
    """Return what writes the sine of a number, so many quarters of a turn ahead; far out it is SLEEF's function."""
    far = mathematics.call_of(function)

    def write(emit: Emitter, a: Value) -> Value:
        near = _near(emit, a, ahead)
        beyond = emit.compare("fcmp ogt", emit.intrinsic("llvm.fabs", a), emit.like(FARTHEST, a))
        return emit.replaced(near, beyond, lambda: far(emit, a))

    return write


def _near(emit: Emitter, a: Value, ahead: int) -> Value:
    shifted = fma(emit, a, emit.like(0.6366197723675814, a), emit.like(MAGIC, a))
    quarters = emit.binary("fsub", shifted, emit.like(MAGIC, a))
    rest = fma(emit, quarters, emit.like(-HALF_PI_LOW, a), fma(emit, quarters, emit.like(-HALF_PI_HIGH, a), a))
    square = emit.binary("fmul", rest, rest)
    sine, cosine = emit.binary("fmul", rest, horner(emit, SIN, square)), horner(emit, COS, square)
    number = _bits(emit, shifted)
    number = emit.binary("add", number, emit.like(ahead, number)) if ahead else number
    odd = emit.compare("icmp ne", emit.binary("and", number, emit.like(1, number)), emit.like(0, number))
    sign = emit.binary("shl", emit.binary("and", number, emit.like(2, number)), emit.like(30, number))
    bits = emit.binary("xor", _bits(emit, emit.select(odd, cosine, sine)), sign)
    return emit.value(f"bitcast {bits} to {type_of('float', a.lanes)}", dtypes.float32, a.lanes)


def _bits(emit: Emitter, a: Value) -> Value:
    return emit.value(f"bitcast {a} to {type_of('i32', a.lanes)}", dtypes.int32, a.lanes)


def _missing(target: Target, dtype: DType) -> str | None:
    return polynomials.missing(target, dtype) or mathematics.missing("sin")(target, dtypes.float32)


lowering("sin", BRIEF, _missing)(of_quarters("sin", 0))
lowering("cos", BRIEF, _missing)(of_quarters("cos", 1))
