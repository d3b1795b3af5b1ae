"""Elementwise prims of two operands: tensors of one shape, dtype and device, or one of them a number."""

from __future__ import annotations

import math
from typing import Any

from thunder_ir import NumberProxy, OpTags, TensorProxy
from thunder_ir.number_proxies import Number
from thunder_prims.batching import elementwise_prim
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
from thunder_prims.comparison import signbit
from thunder_prims.complex_numbers import real
from thunder_prims.conditional import where
from thunder_prims.creation import full
from thunder_prims.derivatives import Map, constant_in_pieces, derivatives
from thunder_prims.elementwise_unary import log, sigmoid

__all__ = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "copysign", "div", "floor_divide", "fmod", "gcd", "hypot", "lcm", "logaddexp", "logaddexp2", "maximum", "minimum",
    "mul", "nextafter", "pow", "remainder", "sub", "trunc_divide",
]  # fmt: skip

CONSTANT = OpTags.CONSTANT_FOR_DERIVATIVE
Operand = TensorProxy | Number


@elementwise_prim(method="add")
def add(a: Operand, b: Operand) -> TensorProxy:
    """``a + b``; of ``bool8``, whether one holds."""
    return elementwise("add", ANY, a, b)


@derivatives(add)
def add_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d and d``."""
    return lambda d: d, lambda d: d


@elementwise_prim(method="sub")
def sub(a: Operand, b: Operand) -> TensorProxy:
    """``a - b``."""
    return elementwise("sub", NUMERIC, a, b)


@derivatives(sub)
def sub_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d and -d``."""
    return lambda d: d, lambda d: -d


@elementwise_prim(method="mul")
def mul(a: Operand, b: Operand) -> TensorProxy:
    """``a * b``; of ``bool8``, whether both hold."""
    return elementwise("mul", ANY, a, b)


@derivatives(mul)
def mul_maps(a: Any, b: Any, y: TensorProxy) -> Map | tuple[Map, Map]:
    """``d * b and d * a``; of a square ``2 * d * a``, all at once."""
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy) and (a is b or a.name == b.name != ""):
        return lambda d: d * a * 2
    return lambda d: d * b, lambda d: d * a


@elementwise_prim(method=("div", "true_divide"))
def div(a: Operand, b: Operand) -> TensorProxy:
    """``a / b``; integers are converted first, or divided by :data:`floor_divide` or :data:`trunc_divide`."""
    return elementwise("div", INEXACT, a, b)


@derivatives(div)
def div_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d / b`` and ``-d * (a / b) / b``, which does not keep the result: its owner may write to it."""
    return lambda d: d / b, lambda d: -d * (a / b / b)


@elementwise_prim(method="floor_divide")
def floor_divide(a: Operand, b: Operand) -> TensorProxy:
    """``a / b`` rounded towards minus infinity, in the dtype of the operands."""
    return elementwise("floor_divide", REAL, a, b)


constant_in_pieces(floor_divide)


@elementwise_prim()
def trunc_divide(a: Operand, b: Operand) -> TensorProxy:
    """``a / b`` rounded towards 0, in the dtype of the operands."""
    return elementwise("trunc_divide", REAL, a, b)


constant_in_pieces(trunc_divide)


@elementwise_prim(method="remainder")
def remainder(a: Operand, b: Operand) -> TensorProxy:
    """``a - b * floor(a / b)``: what is left has the sign of ``b``, as in Python."""
    return elementwise("remainder", REAL, a, b)


@derivatives(remainder)
def remainder_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d and -d * floor(a / b)``."""
    return lambda d: d, lambda d: -d * floor_divide(a, b)


@elementwise_prim()
def fmod(a: Operand, b: Operand) -> TensorProxy:
    """``a - b * trunc(a / b)``: what is left has the sign of ``a``, as in C."""
    return elementwise("fmod", REAL, a, b)


@derivatives(fmod)
def fmod_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d and -d * trunc(a / b)``."""
    return lambda d: d, lambda d: -d * trunc_divide(a, b)


@elementwise_prim(method="pow")
def pow(a: Operand, b: Operand) -> TensorProxy:
    """``a ** b``."""
    return elementwise("pow", NUMERIC, a, b)


@derivatives(pow)
def pow_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d * b * a**(b-1)``, 0 where ``b`` is 0; and ``d * y * log(a)``, 0 where ``a`` is 0 and ``b >= 0``."""
    return lambda d: _by_base(a, b, d), lambda d: d * _exponent_slope(a, b, y)


def _by_base(a: TensorProxy, b: Any, d: TensorProxy) -> TensorProxy:
    if isinstance(b, (NumberProxy, TensorProxy)):
        exponent = _spread(b, a)
        return where(exponent == 0, 0, d * (exponent * pow(a, exponent - 1)))
    if b == 0:
        return full(d.shape, 0, d.dtype, d.device)
    return d * (b * a if b == 2 else b * pow(a, b - 1))  # type: ignore[no-any-return]


def _exponent_slope(a: Any, b: TensorProxy, y: TensorProxy) -> Any:
    base = _spread(a, b)
    exponent = real(b) if b.dtype.is_complex else b
    return where((base == 0) & (exponent >= 0), 0, y * log(base))


def _spread(number: Any, like: TensorProxy) -> TensorProxy:
    """A number as a tensor of that shape; a tensor as it is."""
    return number if isinstance(number, TensorProxy) else full(like.shape, number, like.dtype, like.device)


@elementwise_prim()
def maximum(a: Operand, b: Operand) -> TensorProxy:
    """The greater of ``a`` and ``b``; nan if one is nan."""
    return elementwise("maximum", ORDERED, a, b)


@derivatives(maximum)
def maximum_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d`` for the greater, half of it for each where they are equal."""
    return lambda d: _share(a, b, d), lambda d: _share(b, a, d)


def _share(winner: Any, other: Any, d: TensorProxy) -> Any:
    return where(winner == other, d / 2, where(winner < other, 0, d))


@elementwise_prim()
def minimum(a: Operand, b: Operand) -> TensorProxy:
    """The lesser of ``a`` and ``b``; nan if one is nan."""
    return elementwise("minimum", ORDERED, a, b)


@derivatives(minimum)
def minimum_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d`` for the lesser, half of it for each where they are equal."""
    return lambda d: _share(-a, -b, d), lambda d: _share(-b, -a, d)


@elementwise_prim()
def atan2(a: Operand, b: Operand) -> TensorProxy:
    """Angle of the point ``(b, a)`` seen from the origin, in radians from -pi to pi."""
    return elementwise("atan2", FLOATING, a, b)


@derivatives(atan2)
def atan2_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d * b / (a**2 + b**2)`` and ``-d * a / (a**2 + b**2)``, 0 at the origin."""
    return lambda d: _over_square(d * b, a, b), lambda d: _over_square(-d * a, a, b)


def _over_square(d: TensorProxy, a: Any, b: Any) -> TensorProxy:
    square = a * a + b * b
    origin = square == 0
    return where(origin, 0, d / where(origin, 1, square))


@elementwise_prim()
def copysign(a: Operand, b: Operand) -> TensorProxy:
    """The magnitude of ``a`` with the sign of ``b``."""
    return elementwise("copysign", FLOATING, a, b)


@derivatives(copysign)
def copysign_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, None]:
    """``d`` with the sign changed where that of ``a`` was, and 0 where ``a`` is 0; 0 for ``b``."""
    return lambda d: where(a == 0, 0, where(signbit(a) ^ signbit(y), -d, d)), None


@elementwise_prim()
def nextafter(a: Operand, b: Operand) -> TensorProxy:
    """The next number after ``a`` towards ``b`` that the dtype has."""
    return elementwise("nextafter", FLOATING, a, b)


@derivatives(nextafter)
def nextafter_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map | None]:
    """``d``, and 0 where ``a`` is ``b``; 0 for ``b``."""
    return lambda d: where(a == b, 0, d), None


@elementwise_prim()
def hypot(a: Operand, b: Operand) -> TensorProxy:
    """``sqrt(a**2 + b**2)`` without overflow on the way."""
    return elementwise("hypot", FLOATING, a, b)


@derivatives(hypot)
def hypot_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d * a / y and d * b / y``."""
    return lambda d: d * a / y, lambda d: d * b / y


@elementwise_prim()
def logaddexp(a: Operand, b: Operand) -> TensorProxy:
    """``log(exp(a) + exp(b))`` without overflow on the way."""
    return elementwise("logaddexp", FLOATING, a, b)


@derivatives(logaddexp)
def logaddexp_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d * sigmoid(a - b)`` and ``d * sigmoid(b - a)``, half of ``d`` each where both are the same infinity."""
    return lambda d: d * _part(a, b, 1), lambda d: d * _part(b, a, 1)


def _part(a: Any, b: Any, scale: float) -> TensorProxy:
    gap = a - b
    return sigmoid(where((a == b) & (gap != gap), 0, gap) * scale)


@elementwise_prim()
def logaddexp2(a: Operand, b: Operand) -> TensorProxy:
    """``log2(2**a + 2**b)`` without overflow on the way."""
    return elementwise("logaddexp2", FLOATING, a, b)


@derivatives(logaddexp2)
def logaddexp2_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """As for :data:`logaddexp`, with the differences times ``log(2)``."""
    return lambda d: d * _part(a, b, math.log(2)), lambda d: d * _part(b, a, math.log(2))


@elementwise_prim(CONSTANT)
def gcd(a: Operand, b: Operand) -> TensorProxy:
    """Greatest common divisor of ``a`` and ``b``, not negative."""
    return elementwise("gcd", INTEGER, a, b)


@elementwise_prim(CONSTANT)
def lcm(a: Operand, b: Operand) -> TensorProxy:
    """Least common multiple of ``a`` and ``b``, not negative."""
    return elementwise("lcm", INTEGER, a, b)


@elementwise_prim(CONSTANT, method="bitwise_and")
def bitwise_and(a: Operand, b: Operand) -> TensorProxy:
    """Bits that are set in ``a`` and in ``b``; of ``bool8``, whether both hold."""
    return elementwise("bitwise_and", EXACT, a, b)


@elementwise_prim(CONSTANT, method="bitwise_or")
def bitwise_or(a: Operand, b: Operand) -> TensorProxy:
    """Bits that are set in ``a`` or in ``b``; of ``bool8``, whether one holds."""
    return elementwise("bitwise_or", EXACT, a, b)


@elementwise_prim(CONSTANT, method="bitwise_xor")
def bitwise_xor(a: Operand, b: Operand) -> TensorProxy:
    """Bits that are set in one of ``a`` and ``b`` only; of ``bool8``, whether they differ."""
    return elementwise("bitwise_xor", EXACT, a, b)


@elementwise_prim(CONSTANT, method="bitwise_left_shift")
def bitwise_left_shift(a: Operand, b: Operand) -> TensorProxy:
    """``a * 2**b``, bits beyond the dtype dropped."""
    return elementwise("bitwise_left_shift", INTEGER, a, b)


@elementwise_prim(CONSTANT, method="bitwise_right_shift")
def bitwise_right_shift(a: Operand, b: Operand) -> TensorProxy:
    """``floor(a / 2**b)``: a signed dtype keeps its sign."""
    return elementwise("bitwise_right_shift", INTEGER, a, b)
