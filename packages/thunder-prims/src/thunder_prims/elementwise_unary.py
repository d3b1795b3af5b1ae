"""Elementwise prims of one tensor: arithmetic, rounding, exponentials, trigonometry, parts of complex numbers.

Special functions stand in ``special.py``.
"""

from __future__ import annotations

import math
from typing import Any

from thunder_autograd import ZERO, Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, TensorProxy, dtypes
from thunder_prims.batching import elementwise_prim
from thunder_prims.checks import EXACT, FLOATING, INEXACT, NUMERIC, REAL, unary
from thunder_prims.complex_numbers import conj, part_dtype, real, widened
from thunder_prims.conditional import where
from thunder_prims.conversion import convert_element_type
from thunder_prims.derivatives import Map, constant_in_pieces, derivatives

__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "exp",
    "exp2", "expm1", "floor", "frexp", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip

CONSTANT = OpTags.CONSTANT_FOR_DERIVATIVE


@elementwise_prim(method="abs")
def abs(a: TensorProxy) -> TensorProxy:
    """Absolute value of ``a``; for a complex dtype real, ``sqrt(re**2 + im**2)``."""
    return unary("abs", NUMERIC, a, part_dtype(a))


@vjp_rule(abs)
def abs_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = dy * sign(a)``."""
    return abs(a), lambda dy: widened(dy, a) * sign(a)


@jvp_rule(abs)
def abs_jvp(a: TensorProxy, da: TensorProxy | None) -> tuple[TensorProxy, TensorProxy | None]:
    """``dy = real(conj(sign(a)) * da)``."""
    return abs(a), None if da is None else real(conj(sign(a)) * da)


@elementwise_prim()
def acos(a: TensorProxy) -> TensorProxy:
    """Inverse cosine of ``a``."""
    return unary("acos", INEXACT, a)


@derivatives(acos)
def acos_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d / sqrt(1 - a**2)``."""
    return lambda d: d * -rsqrt(1 - a * a)


@elementwise_prim()
def acosh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic cosine of ``a``."""
    return unary("acosh", INEXACT, a)


@derivatives(acosh)
def acosh_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / sqrt(a**2 - 1)``, and ``d / sqrt(a - 1) / sqrt(a + 1)`` of complex ``a``, whose roots have branches."""
    return lambda d: d * (rsqrt(a - 1) * rsqrt(a + 1) if a.dtype.is_complex else rsqrt(a * a - 1))


@elementwise_prim()
def asin(a: TensorProxy) -> TensorProxy:
    """Inverse sine of ``a``."""
    return unary("asin", INEXACT, a)


@derivatives(asin)
def asin_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / sqrt(1 - a**2)``."""
    return lambda d: d * rsqrt(1 - a * a)


@elementwise_prim()
def asinh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic sine of ``a``."""
    return unary("asinh", INEXACT, a)


@derivatives(asinh)
def asinh_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / sqrt(a**2 + 1)``."""
    return lambda d: d * rsqrt(a * a + 1)


@elementwise_prim()
def atan(a: TensorProxy) -> TensorProxy:
    """Inverse tangent of ``a``."""
    return unary("atan", INEXACT, a)


@derivatives(atan)
def atan_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / (1 + a**2)``."""
    return lambda d: d / (1 + a * a)


@elementwise_prim()
def atanh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic tangent of ``a``."""
    return unary("atanh", INEXACT, a)


@derivatives(atanh)
def atanh_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / (1 - a**2)``."""
    return lambda d: d / (1 - a * a)


@elementwise_prim(CONSTANT, method="bitwise_not")
def bitwise_not(a: TensorProxy) -> TensorProxy:
    """All bits of ``a`` inverted; of a ``bool8``, its negation."""
    return unary("bitwise_not", EXACT, a)


@elementwise_prim()
def ceil(a: TensorProxy) -> TensorProxy:
    """The least integer not below ``a``, in the dtype of ``a``."""
    return unary("ceil", REAL, a)


constant_in_pieces(ceil)


@elementwise_prim()
def cos(a: TensorProxy) -> TensorProxy:
    """Cosine of ``a``."""
    return unary("cos", INEXACT, a)


@derivatives(cos)
def cos_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * sin(a)``."""
    return lambda d: d * -sin(a)


@elementwise_prim()
def cosh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic cosine of ``a``."""
    return unary("cosh", INEXACT, a)


@derivatives(cosh)
def cosh_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * sinh(a)``."""
    return lambda d: d * sinh(a)


@elementwise_prim()
def exp(a: TensorProxy) -> TensorProxy:
    """``e**a``."""
    return unary("exp", INEXACT, a)


@derivatives(exp)
def exp_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * y``."""
    return lambda d: d * y


@elementwise_prim()
def exp2(a: TensorProxy) -> TensorProxy:
    """``2**a``."""
    return unary("exp2", INEXACT, a)


@derivatives(exp2)
def exp2_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * y * log(2)``."""
    return lambda d: d * y * math.log(2)


@elementwise_prim()
def expm1(a: TensorProxy) -> TensorProxy:
    """``e**a - 1``, exact near 0."""
    return unary("expm1", INEXACT, a)


@derivatives(expm1)
def expm1_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (y + 1)``."""
    return lambda d: d * (y + 1)


@elementwise_prim()
def floor(a: TensorProxy) -> TensorProxy:
    """The greatest integer not above ``a``, in the dtype of ``a``."""
    return unary("floor", REAL, a)


constant_in_pieces(floor)


@elementwise_prim()
def frexp(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Take ``a`` apart into mantissa and exponent, ``a == mantissa * 2**exponent``.

    Returns:
        the mantissa, 0 or ``0.5 <= abs(mantissa) < 1``, in the dtype of ``a``; the exponent, ``int32``.
    """
    mantissa = unary("frexp", FLOATING, a)
    return mantissa, a.like(dtype=dtypes.int32)


@vjp_rule(frexp)
def frexp_vjp(a: TensorProxy) -> tuple[tuple[TensorProxy, TensorProxy], Pullback]:
    """``da = dmantissa / 2**exponent``."""
    mantissa, exponent = frexp(a)
    return (mantissa, exponent), lambda d, _: None if d is None else d * _power_of_two(-exponent, a)


@jvp_rule(frexp)
def frexp_jvp(a: TensorProxy, da: TensorProxy | None) -> Any:
    """``dmantissa = da / 2**exponent``; the exponent has no derivative."""
    mantissa, exponent = frexp(a)
    return (mantissa, exponent), (None if da is None else da * _power_of_two(-exponent, a), None)


def _power_of_two(exponent: TensorProxy, a: TensorProxy) -> TensorProxy:
    return exp2(convert_element_type(exponent, a.dtype))


@elementwise_prim()
def log(a: TensorProxy) -> TensorProxy:
    """Natural logarithm of ``a``."""
    return unary("log", INEXACT, a)


@derivatives(log)
def log_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / a``."""
    return lambda d: d / a


@elementwise_prim()
def log10(a: TensorProxy) -> TensorProxy:
    """Logarithm of ``a`` to base 10."""
    return unary("log10", INEXACT, a)


@derivatives(log10)
def log10_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / (a * log(10))``."""
    return lambda d: d / (a * math.log(10))


@elementwise_prim()
def log1p(a: TensorProxy) -> TensorProxy:
    """``log(1 + a)``, exact near 0."""
    return unary("log1p", INEXACT, a)


@derivatives(log1p)
def log1p_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / (1 + a)``."""
    return lambda d: d / (1 + a)


@elementwise_prim()
def log2(a: TensorProxy) -> TensorProxy:
    """Logarithm of ``a`` to base 2."""
    return unary("log2", INEXACT, a)


@derivatives(log2)
def log2_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / (a * log(2))``."""
    return lambda d: d / (a * math.log(2))


@elementwise_prim(method="neg")
def neg(a: TensorProxy) -> TensorProxy:
    """``-a``."""
    return unary("neg", NUMERIC, a)


@derivatives(neg)
def neg_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d``."""
    return lambda d: -d


@elementwise_prim()
def reciprocal(a: TensorProxy) -> TensorProxy:
    """``1 / a``."""
    return unary("reciprocal", INEXACT, a)


@derivatives(reciprocal)
def reciprocal_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * y**2``."""
    return lambda d: -d * y * y


@elementwise_prim()
def round(a: TensorProxy) -> TensorProxy:
    """The integer nearest to ``a``, of two the even one, in the dtype of ``a``."""
    return unary("round", REAL, a)


constant_in_pieces(round)


@elementwise_prim()
def rsqrt(a: TensorProxy) -> TensorProxy:
    """``1 / sqrt(a)``."""
    return unary("rsqrt", INEXACT, a)


@derivatives(rsqrt)
def rsqrt_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * y**3 / 2``."""
    return lambda d: -0.5 * d * y * y * y


@elementwise_prim()
def sigmoid(a: TensorProxy) -> TensorProxy:
    """``1 / (1 + e**-a)``."""
    return unary("sigmoid", INEXACT, a)


@derivatives(sigmoid)
def sigmoid_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * y * (1 - y)``."""
    return lambda d: d * y * (1 - y)


@elementwise_prim()
def sign(a: TensorProxy) -> TensorProxy:
    """-1, 0 or 1 by the sign of ``a``; for a complex dtype ``a / abs(a)``, and 0 at 0."""
    return unary("sign", NUMERIC, a)


@vjp_rule(sign)
def sign_vjp(a: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = (dy - y * real(conj(y) * dy)) / abs(a)`` for a complex dtype, and 0 at 0; otherwise 0."""
    y = sign(a)
    return y, lambda dy: _turned(a, y, dy) if a.dtype.is_complex else ZERO


@jvp_rule(sign)
def sign_jvp(a: TensorProxy, da: TensorProxy | None) -> tuple[TensorProxy, TensorProxy | None]:
    """``dy = (da - y * real(conj(y) * da)) / abs(a)`` for a complex dtype, and 0 at 0; otherwise none."""
    y = sign(a)
    return y, _turned(a, y, da) if da is not None and a.dtype.is_complex else None


def _turned(a: TensorProxy, y: TensorProxy, d: TensorProxy) -> TensorProxy:
    """The part of ``d`` at right angles to ``y``, which alone turns ``a``; over ``abs(a)``."""
    zero = a == 0
    across = d - y * widened(real(conj(y) * d), a)
    return where(zero, 0, across / where(zero, 1, widened(abs(a), a)))


@elementwise_prim()
def sin(a: TensorProxy) -> TensorProxy:
    """Sine of ``a``."""
    return unary("sin", INEXACT, a)


@derivatives(sin)
def sin_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * cos(a)``."""
    return lambda d: d * cos(a)


@elementwise_prim()
def sinh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic sine of ``a``."""
    return unary("sinh", INEXACT, a)


@derivatives(sinh)
def sinh_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * cosh(a)``."""
    return lambda d: d * cosh(a)


@elementwise_prim()
def sqrt(a: TensorProxy) -> TensorProxy:
    """Square root of ``a``; of a complex ``a`` that in the right half plane."""
    return unary("sqrt", INEXACT, a)


@derivatives(sqrt)
def sqrt_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d / (2 * y)``."""
    return lambda d: d / (2 * y)


@elementwise_prim()
def tan(a: TensorProxy) -> TensorProxy:
    """Tangent of ``a``."""
    return unary("tan", INEXACT, a)


@derivatives(tan)
def tan_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (1 + y**2)``."""
    return lambda d: d * (1 + y * y)


@elementwise_prim()
def tanh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic tangent of ``a``."""
    return unary("tanh", INEXACT, a)


@derivatives(tanh)
def tanh_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (1 - y**2)``."""
    return lambda d: d * (1 - y * y)


@elementwise_prim()
def trunc(a: TensorProxy) -> TensorProxy:
    """``a`` without its fraction, rounded towards 0, in the dtype of ``a``."""
    return unary("trunc", REAL, a)


constant_in_pieces(trunc)
