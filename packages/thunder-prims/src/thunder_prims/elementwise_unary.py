"""Elementwise prims of one tensor: arithmetic, rounding, exponentials, trigonometry, parts of complex numbers.

Special functions stand in ``special.py``.
"""

from __future__ import annotations

from thunder_ir import DType, OpTags, TensorProxy, dtypes
from thunder_prims.checks import ANY, COMPLEX, EXACT, FLOATING, INEXACT, NUMERIC, REAL, unary
from thunder_prims.prim import prim

__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "conj", "cos", "cosh", "exp",
    "exp2", "expm1", "floor", "frexp", "imag", "log", "log10", "log1p", "log2", "neg", "real", "reciprocal", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip

ELEMENTWISE, CONSTANT = OpTags.ELEMENTWISE, OpTags.CONSTANT_FOR_DERIVATIVE


def _part_dtype(a: TensorProxy) -> DType | None:
    """The dtype of the parts of a complex tensor; ``None`` keeps the dtype of others."""
    return dtypes.float_of(a.dtype) if isinstance(a, TensorProxy) else None


@prim(ELEMENTWISE, method="abs")
def abs(a: TensorProxy) -> TensorProxy:
    """Absolute value of ``a``; for a complex dtype real, ``sqrt(re**2 + im**2)``."""
    return unary("abs", NUMERIC, a, _part_dtype(a))


@prim(ELEMENTWISE)
def acos(a: TensorProxy) -> TensorProxy:
    """Inverse cosine of ``a``."""
    return unary("acos", INEXACT, a)


@prim(ELEMENTWISE)
def acosh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic cosine of ``a``."""
    return unary("acosh", INEXACT, a)


@prim(ELEMENTWISE)
def asin(a: TensorProxy) -> TensorProxy:
    """Inverse sine of ``a``."""
    return unary("asin", INEXACT, a)


@prim(ELEMENTWISE)
def asinh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic sine of ``a``."""
    return unary("asinh", INEXACT, a)


@prim(ELEMENTWISE)
def atan(a: TensorProxy) -> TensorProxy:
    """Inverse tangent of ``a``."""
    return unary("atan", INEXACT, a)


@prim(ELEMENTWISE)
def atanh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic tangent of ``a``."""
    return unary("atanh", INEXACT, a)


@prim(ELEMENTWISE, CONSTANT, method="bitwise_not")
def bitwise_not(a: TensorProxy) -> TensorProxy:
    """All bits of ``a`` inverted; of a ``bool8``, its negation."""
    return unary("bitwise_not", EXACT, a)


@prim(ELEMENTWISE, CONSTANT)
def ceil(a: TensorProxy) -> TensorProxy:
    """The least integer not below ``a``, in the dtype of ``a``."""
    return unary("ceil", REAL, a)


@prim(ELEMENTWISE, method="conj")
def conj(a: TensorProxy) -> TensorProxy:
    """Complex conjugate of ``a``; a real ``a`` itself."""
    return unary("conj", ANY, a) if not isinstance(a, TensorProxy) or a.dtype.is_complex else a


@prim(ELEMENTWISE)
def cos(a: TensorProxy) -> TensorProxy:
    """Cosine of ``a``."""
    return unary("cos", INEXACT, a)


@prim(ELEMENTWISE)
def cosh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic cosine of ``a``."""
    return unary("cosh", INEXACT, a)


@prim(ELEMENTWISE)
def exp(a: TensorProxy) -> TensorProxy:
    """``e**a``."""
    return unary("exp", INEXACT, a)


@prim(ELEMENTWISE)
def exp2(a: TensorProxy) -> TensorProxy:
    """``2**a``."""
    return unary("exp2", INEXACT, a)


@prim(ELEMENTWISE)
def expm1(a: TensorProxy) -> TensorProxy:
    """``e**a - 1``, exact near 0."""
    return unary("expm1", INEXACT, a)


@prim(ELEMENTWISE, CONSTANT)
def floor(a: TensorProxy) -> TensorProxy:
    """The greatest integer not above ``a``, in the dtype of ``a``."""
    return unary("floor", REAL, a)


@prim(ELEMENTWISE)
def frexp(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Take ``a`` apart into mantissa and exponent, ``a == mantissa * 2**exponent``.

    Returns:
        the mantissa, 0 or ``0.5 <= abs(mantissa) < 1``, in the dtype of ``a``; the exponent, ``int32``.
    """
    mantissa = unary("frexp", FLOATING, a)
    return mantissa, a.like(dtype=dtypes.int32)


@prim(ELEMENTWISE)
def imag(a: TensorProxy) -> TensorProxy:
    """Imaginary part of a complex ``a``, in the dtype of its parts."""
    return unary("imag", COMPLEX, a, _part_dtype(a))


@prim(ELEMENTWISE)
def log(a: TensorProxy) -> TensorProxy:
    """Natural logarithm of ``a``."""
    return unary("log", INEXACT, a)


@prim(ELEMENTWISE)
def log10(a: TensorProxy) -> TensorProxy:
    """Logarithm of ``a`` to base 10."""
    return unary("log10", INEXACT, a)


@prim(ELEMENTWISE)
def log1p(a: TensorProxy) -> TensorProxy:
    """``log(1 + a)``, exact near 0."""
    return unary("log1p", INEXACT, a)


@prim(ELEMENTWISE)
def log2(a: TensorProxy) -> TensorProxy:
    """Logarithm of ``a`` to base 2."""
    return unary("log2", INEXACT, a)


@prim(ELEMENTWISE, method="neg")
def neg(a: TensorProxy) -> TensorProxy:
    """``-a``."""
    return unary("neg", NUMERIC, a)


@prim(ELEMENTWISE)
def real(a: TensorProxy) -> TensorProxy:
    """Real part of a complex ``a``, in the dtype of its parts; a real ``a`` itself."""
    return unary("real", ANY, a, _part_dtype(a)) if not isinstance(a, TensorProxy) or a.dtype.is_complex else a


@prim(ELEMENTWISE)
def reciprocal(a: TensorProxy) -> TensorProxy:
    """``1 / a``."""
    return unary("reciprocal", INEXACT, a)


@prim(ELEMENTWISE, CONSTANT)
def round(a: TensorProxy) -> TensorProxy:
    """The integer nearest to ``a``, of two the even one, in the dtype of ``a``."""
    return unary("round", REAL, a)


@prim(ELEMENTWISE)
def rsqrt(a: TensorProxy) -> TensorProxy:
    """``1 / sqrt(a)``."""
    return unary("rsqrt", INEXACT, a)


@prim(ELEMENTWISE)
def sigmoid(a: TensorProxy) -> TensorProxy:
    """``1 / (1 + e**-a)``."""
    return unary("sigmoid", INEXACT, a)


@prim(ELEMENTWISE)
def sign(a: TensorProxy) -> TensorProxy:
    """-1, 0 or 1 by the sign of ``a``; for a complex dtype ``a / abs(a)``, and 0 at 0."""
    return unary("sign", NUMERIC, a)


@prim(ELEMENTWISE)
def sin(a: TensorProxy) -> TensorProxy:
    """Sine of ``a``."""
    return unary("sin", INEXACT, a)


@prim(ELEMENTWISE)
def sinc(a: TensorProxy) -> TensorProxy:
    """``sin(pi*a) / (pi*a)``, and 1 at 0."""
    return unary("sinc", INEXACT, a)


@prim(ELEMENTWISE)
def sinh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic sine of ``a``."""
    return unary("sinh", INEXACT, a)


@prim(ELEMENTWISE)
def sqrt(a: TensorProxy) -> TensorProxy:
    """Square root of ``a``; of a complex ``a`` that in the right half plane."""
    return unary("sqrt", INEXACT, a)


@prim(ELEMENTWISE)
def tan(a: TensorProxy) -> TensorProxy:
    """Tangent of ``a``."""
    return unary("tan", INEXACT, a)


@prim(ELEMENTWISE)
def tanh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic tangent of ``a``."""
    return unary("tanh", INEXACT, a)


@prim(ELEMENTWISE, CONSTANT)
def trunc(a: TensorProxy) -> TensorProxy:
    """``a`` without its fraction, rounded towards 0, in the dtype of ``a``."""
    return unary("trunc", REAL, a)
