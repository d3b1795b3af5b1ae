"""Elementwise prims of two operands: tensors of one shape, dtype and device, or one of them a number."""

from __future__ import annotations

from thunder_ir import DTypeError, OpTags, TensorProxy, dtypes
from thunder_ir.proxies import Number
from thunder_prims.checks import (
    ANY,
    EXACT,
    FLOATING,
    INEXACT,
    INTEGER,
    NUMERIC,
    ORDERED,
    REAL,
    elementwise,
)
from thunder_prims.prim import prim

__all__ = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "complex",
    "copysign", "div", "floor_divide", "fmod", "gcd", "hypot", "lcm", "logaddexp", "logaddexp2", "maximum", "minimum",
    "mul", "nextafter", "pow", "remainder", "sub", "trunc_divide",
]  # fmt: skip

ELEMENTWISE, CONSTANT = OpTags.ELEMENTWISE, OpTags.CONSTANT_FOR_DERIVATIVE
Operand = TensorProxy | Number
COMPLEX_OF = (dtypes.float16, dtypes.float32, dtypes.float64)


@prim(ELEMENTWISE, method="add")
def add(a: Operand, b: Operand) -> TensorProxy:
    """``a + b``; of ``bool8``, whether one holds."""
    return elementwise("add", ANY, a, b)


@prim(ELEMENTWISE, method="sub")
def sub(a: Operand, b: Operand) -> TensorProxy:
    """``a - b``."""
    return elementwise("sub", NUMERIC, a, b)


@prim(ELEMENTWISE, method="mul")
def mul(a: Operand, b: Operand) -> TensorProxy:
    """``a * b``; of ``bool8``, whether both hold."""
    return elementwise("mul", ANY, a, b)


@prim(ELEMENTWISE, method=("div", "true_divide"))
def div(a: Operand, b: Operand) -> TensorProxy:
    """``a / b``; integers are converted first, or divided by :data:`floor_divide` or :data:`trunc_divide`."""
    return elementwise("div", INEXACT, a, b)


@prim(ELEMENTWISE, CONSTANT, method="floor_divide")
def floor_divide(a: Operand, b: Operand) -> TensorProxy:
    """``a / b`` rounded towards minus infinity, in the dtype of the operands."""
    return elementwise("floor_divide", REAL, a, b)


@prim(ELEMENTWISE, CONSTANT)
def trunc_divide(a: Operand, b: Operand) -> TensorProxy:
    """``a / b`` rounded towards 0, in the dtype of the operands."""
    return elementwise("trunc_divide", REAL, a, b)


@prim(ELEMENTWISE, method="remainder")
def remainder(a: Operand, b: Operand) -> TensorProxy:
    """``a - b * floor(a / b)``: what is left has the sign of ``b``, as in Python."""
    return elementwise("remainder", REAL, a, b)


@prim(ELEMENTWISE)
def fmod(a: Operand, b: Operand) -> TensorProxy:
    """``a - b * trunc(a / b)``: what is left has the sign of ``a``, as in C."""
    return elementwise("fmod", REAL, a, b)


@prim(ELEMENTWISE, method="pow")
def pow(a: Operand, b: Operand) -> TensorProxy:
    """``a ** b``."""
    return elementwise("pow", NUMERIC, a, b)


@prim(ELEMENTWISE)
def maximum(a: Operand, b: Operand) -> TensorProxy:
    """The greater of ``a`` and ``b``; nan if one is nan."""
    return elementwise("maximum", ORDERED, a, b)


@prim(ELEMENTWISE)
def minimum(a: Operand, b: Operand) -> TensorProxy:
    """The lesser of ``a`` and ``b``; nan if one is nan."""
    return elementwise("minimum", ORDERED, a, b)


@prim(ELEMENTWISE)
def atan2(a: Operand, b: Operand) -> TensorProxy:
    """Angle of the point ``(b, a)`` seen from the origin, in radians from -pi to pi."""
    return elementwise("atan2", FLOATING, a, b)


@prim(ELEMENTWISE)
def copysign(a: Operand, b: Operand) -> TensorProxy:
    """The magnitude of ``a`` with the sign of ``b``."""
    return elementwise("copysign", FLOATING, a, b)


@prim(ELEMENTWISE, CONSTANT)
def nextafter(a: Operand, b: Operand) -> TensorProxy:
    """The next number after ``a`` towards ``b`` that the dtype has."""
    return elementwise("nextafter", FLOATING, a, b)


@prim(ELEMENTWISE)
def hypot(a: Operand, b: Operand) -> TensorProxy:
    """``sqrt(a**2 + b**2)`` without overflow on the way."""
    return elementwise("hypot", FLOATING, a, b)


@prim(ELEMENTWISE)
def logaddexp(a: Operand, b: Operand) -> TensorProxy:
    """``log(exp(a) + exp(b))`` without overflow on the way."""
    return elementwise("logaddexp", FLOATING, a, b)


@prim(ELEMENTWISE)
def logaddexp2(a: Operand, b: Operand) -> TensorProxy:
    """``log2(2**a + 2**b)`` without overflow on the way."""
    return elementwise("logaddexp2", FLOATING, a, b)


@prim(ELEMENTWISE, CONSTANT)
def gcd(a: Operand, b: Operand) -> TensorProxy:
    """Greatest common divisor of ``a`` and ``b``, not negative."""
    return elementwise("gcd", INTEGER, a, b)


@prim(ELEMENTWISE, CONSTANT)
def lcm(a: Operand, b: Operand) -> TensorProxy:
    """Least common multiple of ``a`` and ``b``, not negative."""
    return elementwise("lcm", INTEGER, a, b)


@prim(ELEMENTWISE, CONSTANT, method="bitwise_and")
def bitwise_and(a: Operand, b: Operand) -> TensorProxy:
    """Bits that are set in ``a`` and in ``b``; of ``bool8``, whether both hold."""
    return elementwise("bitwise_and", EXACT, a, b)


@prim(ELEMENTWISE, CONSTANT, method="bitwise_or")
def bitwise_or(a: Operand, b: Operand) -> TensorProxy:
    """Bits that are set in ``a`` or in ``b``; of ``bool8``, whether one holds."""
    return elementwise("bitwise_or", EXACT, a, b)


@prim(ELEMENTWISE, CONSTANT, method="bitwise_xor")
def bitwise_xor(a: Operand, b: Operand) -> TensorProxy:
    """Bits that are set in one of ``a`` and ``b`` only; of ``bool8``, whether they differ."""
    return elementwise("bitwise_xor", EXACT, a, b)


@prim(ELEMENTWISE, CONSTANT, method="bitwise_left_shift")
def bitwise_left_shift(a: Operand, b: Operand) -> TensorProxy:
    """``a * 2**b``, bits beyond the dtype dropped."""
    return elementwise("bitwise_left_shift", INTEGER, a, b)


@prim(ELEMENTWISE, CONSTANT, method="bitwise_right_shift")
def bitwise_right_shift(a: Operand, b: Operand) -> TensorProxy:
    """``floor(a / 2**b)``: a signed dtype keeps its sign."""
    return elementwise("bitwise_right_shift", INTEGER, a, b)


@prim(ELEMENTWISE)
def complex(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a + b*1j``: a complex tensor of its real and imaginary parts.

    Args:
        a, b: ``float16``, ``float32`` or ``float64``, of one dtype.

    Returns:
        the complex dtype with parts of that dtype.
    """
    result = elementwise("complex", FLOATING, a, b)
    if result.dtype not in COMPLEX_OF:
        raise DTypeError(f"complex of {result.type_string} needs float16, float32 or float64; convert it first")
    return result.like(dtype=dtypes.complex_of(result.dtype))
