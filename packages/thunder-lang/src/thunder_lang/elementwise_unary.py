"""Elementwise operations of one operand."""

from __future__ import annotations

import math
from typing import Any

import thunder_prims as prims
from thunder_ir import DTypeError, OpTags, TensorProxy, current_builder, dtypes
from thunder_lang.dims import as_tensor, need_tensor
from thunder_lang.language import core
from thunder_lang.operands import convert, elementwise
from thunder_lang.promotion import Promotion, get_default_dtype

__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "conj", "cos", "cosh", "deg2rad",
    "exp", "exp2", "expm1", "floor", "frac", "frexp", "imag",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "log", "log10", "log1p", "log2", "logical_not",
    "neg", "nan_to_num", "positive", "rad2deg", "real", "reciprocal", "relu", "round", "rsqrt",
    "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip


@core.method("abs", "absolute")
def abs(a: TensorProxy) -> TensorProxy:
    """Absolute value; of complex elements, in the dtype of their parts."""
    return as_tensor(prims.abs(need_tensor("abs", a)))


def _computed_in_float(symbol: Any, a: Any) -> TensorProxy:
    """Call ``symbol``; integers and booleans become the default floating-point dtype first."""
    a = need_tensor(symbol.name, a)
    return as_tensor(symbol(a) if a.dtype.is_inexact else elementwise(symbol, a, promotion=Promotion.FLOAT))


@core.method("acos", "arccos")
def acos(a: TensorProxy) -> TensorProxy:
    """Inverse cosine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.acos, a)


@core.method("acosh", "arccosh")
def acosh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic cosine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.acosh, a)


@core.method("asin", "arcsin")
def asin(a: TensorProxy) -> TensorProxy:
    """Inverse sine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.asin, a)


@core.method("asinh", "arcsinh")
def asinh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic sine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.asinh, a)


@core.method("atan", "arctan")
def atan(a: TensorProxy) -> TensorProxy:
    """Inverse tangent; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.atan, a)


@core.method("atanh", "arctanh")
def atanh(a: TensorProxy) -> TensorProxy:
    """Inverse hyperbolic tangent; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.atanh, a)


@core.method("cos")
def cos(a: TensorProxy) -> TensorProxy:
    """Cosine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.cos, a)


@core.method("cosh")
def cosh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic cosine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.cosh, a)


@core.method("exp")
def exp(a: TensorProxy) -> TensorProxy:
    """Exponential; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.exp, a)


@core.method("exp2")
def exp2(a: TensorProxy) -> TensorProxy:
    """Two to the power of each element; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.exp2, a)


@core.method("expm1")
def expm1(a: TensorProxy) -> TensorProxy:
    """Exponential minus one, exact near zero; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.expm1, a)


@core.method("log")
def log(a: TensorProxy) -> TensorProxy:
    """Natural logarithm; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.log, a)


@core.method("log10")
def log10(a: TensorProxy) -> TensorProxy:
    """Logarithm to base ten; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.log10, a)


@core.method("log1p")
def log1p(a: TensorProxy) -> TensorProxy:
    """Logarithm of one plus each element, exact near zero; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.log1p, a)


@core.method("log2")
def log2(a: TensorProxy) -> TensorProxy:
    """Logarithm to base two; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.log2, a)


@core.method("reciprocal")
def reciprocal(a: TensorProxy) -> TensorProxy:
    """One over each element; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.reciprocal, a)


@core.method("rsqrt")
def rsqrt(a: TensorProxy) -> TensorProxy:
    """One over the square root; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.rsqrt, a)


@core.method("sin")
def sin(a: TensorProxy) -> TensorProxy:
    """Sine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.sin, a)


@core.method("sinh")
def sinh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic sine; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.sinh, a)


@core.method("sqrt")
def sqrt(a: TensorProxy) -> TensorProxy:
    """Square root; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.sqrt, a)


@core.method("tan")
def tan(a: TensorProxy) -> TensorProxy:
    """Tangent; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.tan, a)


@core.method("tanh")
def tanh(a: TensorProxy) -> TensorProxy:
    """Hyperbolic tangent; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.tanh, a)


@core.method("sigmoid")
def sigmoid(a: TensorProxy) -> TensorProxy:
    """``1 / (1 + exp(-a))``; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.sigmoid, a)


@core.method("sinc")
def sinc(a: TensorProxy) -> TensorProxy:
    """``sin(pi a) / (pi a)``; of integers, in the default floating-point dtype."""
    return _computed_in_float(prims.sinc, a)


@core.method("relu")
def relu(a: TensorProxy) -> TensorProxy:
    """``a`` where it is positive or NaN, zero elsewhere."""
    a = need_tensor("relu", a)
    if a.dtype.is_bool or a.dtype.is_complex:
        raise DTypeError(f"relu needs a real tensor, got {a.type_string}")
    with current_builder().tagged(OpTags.CONSTANT_FOR_DERIVATIVE):  # at 0, too: that of a maximum would be 1/2
        flat = prims.clamp(a, 0, None)  # and no zero: it leaves -0.0 as it is
    return as_tensor(prims.where(prims.le(a, 0), flat, a))


def _float(operation: str, a: Any) -> TensorProxy:
    a = need_tensor(operation, a)
    if a.dtype.is_complex:
        raise DTypeError(f"{operation} needs a real tensor, got {a.type_string}")
    return as_tensor(a if a.dtype.is_inexact else convert(a, get_default_dtype()))


@core.method("neg", "negative")
def neg(a: TensorProxy) -> TensorProxy:
    """Each element with its sign changed.

    Raises:
        DTypeError: ``a`` is ``bool8``.
    """
    a = need_tensor("neg", a)
    if a.dtype.is_bool:
        raise DTypeError("negation, the `-` operator, of a bool8 tensor is not supported; use `~` or logical_not")
    return as_tensor(prims.neg(a))


@core.method("positive")
def positive(a: TensorProxy) -> TensorProxy:
    """``a`` itself.

    Raises:
        DTypeError: ``a`` is ``bool8``.
    """
    a = need_tensor("positive", a)
    if a.dtype.is_bool:
        raise DTypeError("the `+` operator on a bool8 tensor is not supported")
    return a


@core.method("sign")
def sign(a: TensorProxy) -> TensorProxy:
    """-1, 0 or 1; of a boolean tensor, itself."""
    a = need_tensor("sign", a)
    if a.dtype.is_complex:
        raise DTypeError(f"sign needs a real tensor, got {a.type_string}; use sgn")
    return a if a.dtype.is_bool else as_tensor(prims.sign(a))


@core.method("sgn")
def sgn(a: TensorProxy) -> TensorProxy:
    """``sign``; of complex numbers, the number of absolute value 1 in the same direction, or 0."""
    a = need_tensor("sgn", a)
    return a if a.dtype.is_bool else as_tensor(prims.sign(a))


@core.method("signbit")
def signbit(a: TensorProxy) -> TensorProxy:
    """Whether the sign bit is set."""
    return as_tensor(prims.signbit(need_tensor("signbit", a)))


def _rounded(symbol: Any, a: Any) -> TensorProxy:
    a = need_tensor(symbol.name, a)
    if a.dtype.is_bool or a.dtype.is_complex:
        raise DTypeError(f"{symbol.name} needs a real tensor, got {a.type_string}")
    return a if a.dtype.is_integer else as_tensor(symbol(a))


@core.method("ceil")
def ceil(a: TensorProxy) -> TensorProxy:
    """The least integer not below each element; integers are returned as they are."""
    return _rounded(prims.ceil, a)


@core.method("floor")
def floor(a: TensorProxy) -> TensorProxy:
    """The greatest integer not above each element; integers are returned as they are."""
    return _rounded(prims.floor, a)


@core.method("trunc", "fix")
def trunc(a: TensorProxy) -> TensorProxy:
    """Each element without its fraction; integers are returned as they are."""
    return _rounded(prims.trunc, a)


@core.method("round")
def round(a: TensorProxy, *, decimals: int = 0) -> TensorProxy:
    """The nearest number with that many decimals, the even one of two; integers are returned as they are."""
    a = need_tensor("round", a)
    if decimals == 0 or a.dtype.is_integer:
        return _rounded(prims.round, a)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals > 0:
        return as_tensor(prims.div(_rounded(prims.round, prims.mul(a, scale)), scale))
    return as_tensor(prims.mul(_rounded(prims.round, prims.div(a, scale)), scale))


@core.method("frac")
def frac(a: TensorProxy) -> TensorProxy:
    """The fraction of each element, with its sign."""
    return as_tensor(prims.sub(a, trunc(a)))


@core.method("frexp")
def frexp(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """The mantissa in ``[0.5, 1)``, with its sign, and the exponent of two as ``int32``, of each element."""
    mantissa, exponent = prims.frexp(need_tensor("frexp", a))
    return mantissa, exponent


@core.method("square")
def square(a: TensorProxy) -> TensorProxy:
    """``a * a``."""
    a = need_tensor("square", a)
    if a.dtype.is_bool:
        a = convert(a, dtypes.int64)
    return as_tensor(prims.mul(a, a))


@core.method("deg2rad")
def deg2rad(a: TensorProxy) -> TensorProxy:
    """Degrees as radians."""
    a = _float("deg2rad", a)
    return as_tensor(prims.mul(a, math.pi / 180))


@core.method("rad2deg")
def rad2deg(a: TensorProxy) -> TensorProxy:
    """Radians as degrees."""
    a = _float("rad2deg", a)
    return as_tensor(prims.mul(a, 180 / math.pi))


@core.method("bitwise_not")
def bitwise_not(a: TensorProxy) -> TensorProxy:
    """Each bit changed; of booleans, the logical negation.

    Raises:
        DTypeError: ``a`` is neither of integers nor of booleans.
    """
    a = need_tensor("bitwise_not", a)
    if not a.dtype.is_exact:
        raise DTypeError(f"bitwise_not needs integers or booleans, got {a.type_string}")
    return as_tensor(prims.bitwise_not(a))


@core.method("logical_not")
def logical_not(a: TensorProxy) -> TensorProxy:
    """Whether each element is zero."""
    a = need_tensor("logical_not", a)
    return as_tensor(prims.bitwise_not(a) if a.dtype.is_bool else prims.eq(a, 0))


def _constant(a: TensorProxy, value: bool) -> TensorProxy:
    return as_tensor(prims.full(a.shape, value, dtypes.bool8, a.device))


@core.method("isfinite")
def isfinite(a: TensorProxy) -> TensorProxy:
    """Whether each element is neither infinite nor NaN."""
    a = need_tensor("isfinite", a)
    return _constant(a, True) if a.dtype.is_exact else as_tensor(prims.isfinite(a))


@core.method("isnan")
def isnan(a: TensorProxy) -> TensorProxy:
    """Whether each element is NaN, in one of its parts if it is complex."""
    a = need_tensor("isnan", a)
    return _constant(a, False) if a.dtype.is_exact else as_tensor(prims.isnan(a))


@core.method("isinf")
def isinf(a: TensorProxy) -> TensorProxy:
    """Whether each element is infinite, in one of its parts if it is complex."""
    a = need_tensor("isinf", a)
    return _constant(a, False) if a.dtype.is_exact else as_tensor(prims.isinf(a))


@core.method("isposinf")
def isposinf(a: TensorProxy) -> TensorProxy:
    """Whether each element is positive infinity."""
    a = need_tensor("isposinf", a)
    if a.dtype.is_complex:
        raise DTypeError(f"isposinf needs a real tensor, got {a.type_string}")
    return _constant(a, False) if a.dtype.is_exact else as_tensor(prims.eq(a, math.inf))


@core.method("isneginf")
def isneginf(a: TensorProxy) -> TensorProxy:
    """Whether each element is negative infinity."""
    a = need_tensor("isneginf", a)
    if a.dtype.is_complex:
        raise DTypeError(f"isneginf needs a real tensor, got {a.type_string}")
    return _constant(a, False) if a.dtype.is_exact else as_tensor(prims.eq(a, -math.inf))


@core.method("nan_to_num")
def nan_to_num(
    a: TensorProxy, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> TensorProxy:
    """Replace NaN and infinities by numbers: by default zero and the greatest and least of the dtype."""
    a = need_tensor("nan_to_num", a)
    if a.dtype.is_exact:
        return a
    if a.dtype.is_complex:
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (prims.real(a), prims.imag(a))]
        return as_tensor(prims.complex(*parts))
    largest = dtypes.largest(a.dtype)
    clean = prims.where(prims.isnan(a), float(nan), a)
    clean = prims.where(prims.eq(a, math.inf), largest if posinf is None else float(posinf), clean)
    return as_tensor(prims.where(prims.eq(a, -math.inf), -largest if neginf is None else float(neginf), clean))


@core.method("real")
def real(a: TensorProxy) -> TensorProxy:
    """The real part; of a real tensor, itself."""
    a = need_tensor("real", a)
    return as_tensor(prims.real(a)) if a.dtype.is_complex else a


@core.method("imag")
def imag(a: TensorProxy) -> TensorProxy:
    """The imaginary part.

    Raises:
        DTypeError: ``a`` is not complex.
    """
    a = need_tensor("imag", a)
    if not a.dtype.is_complex:
        raise DTypeError(f"imag is not implemented for tensors that are not complex, got {a.type_string}")
    return as_tensor(prims.imag(a))


@core.method("conj")
def conj(a: TensorProxy) -> TensorProxy:
    """The complex conjugate; of a real tensor, itself."""
    a = need_tensor("conj", a)
    return as_tensor(prims.conj(a)) if a.dtype.is_complex else a
