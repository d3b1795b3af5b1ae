"""Elementwise functions under NumPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import DTypeError, Symbol, TensorProxy, dtypes
from thunder_lang.numpy.language import numpy
from thunder_lang.numpy.promotion import (
    array,
    as_array,
    elementwise,
    elementwise_in_float,
    float_for,
    matched,
    result_type,
)
from thunder_lang.operands import broadcast, convert

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "conjugate",
    "copysign", "cos", "cosh", "divide", "equal", "exp", "exp2", "expm1", "floor", "floor_divide", "fmod", "gcd",
    "greater", "greater_equal", "hypot", "imag", "invert", "isclose", "isfinite", "isinf", "isnan", "lcm",
    "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "negative", "nextafter",
    "not_equal", "positive", "pow", "power", "real", "reciprocal", "remainder", "right_shift", "rint", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc",
]  # fmt: skip


F = TypeVar("F", bound=Callable[..., Any])


def _in_float(symbol: Symbol, doc: str) -> Callable[[Any], TensorProxy]:
    def function(x: Any) -> TensorProxy:
        return elementwise_in_float(symbol, x)

    return _described(function, symbol.name, doc)


def _of_two(symbol: Symbol, doc: str, *methods: str, in_float: bool = False) -> Callable[[Any, Any], TensorProxy]:
    def function(x1: Any, x2: Any) -> TensorProxy:
        return elementwise_in_float(symbol, x1, x2) if in_float else elementwise(symbol, x1, x2)

    return numpy.method(*methods)(_described(function, symbol.name, doc))


def _described(function: F, name: str, doc: str) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


acos = _in_float(prims.acos, "Inverse cosine.")
acosh = _in_float(prims.acosh, "Inverse hyperbolic cosine.")
asin = _in_float(prims.asin, "Inverse sine.")
asinh = _in_float(prims.asinh, "Inverse hyperbolic sine.")
atan = _in_float(prims.atan, "Inverse tangent.")
atanh = _in_float(prims.atanh, "Inverse hyperbolic tangent.")
cos = _in_float(prims.cos, "Cosine.")
cosh = _in_float(prims.cosh, "Hyperbolic cosine.")
exp2 = _in_float(prims.exp2, "Two to the power of each element.")
expm1 = _in_float(prims.expm1, "Exponential minus one.")
log = _in_float(prims.log, "Natural logarithm.")
log10 = _in_float(prims.log10, "Logarithm to base ten.")
log1p = _in_float(prims.log1p, "Logarithm of one plus each element.")
log2 = _in_float(prims.log2, "Logarithm to base two.")
sin = _in_float(prims.sin, "Sine.")
sinh = _in_float(prims.sinh, "Hyperbolic sine.")
sqrt = _in_float(prims.sqrt, "Square root.")
tan = _in_float(prims.tan, "Tangent.")
tanh = _in_float(prims.tanh, "Hyperbolic tangent.")
exp = _in_float(prims.exp, "Exponential.")
add = _of_two(prims.add, "``x1 + x2``.", "add")
multiply = _of_two(prims.mul, "``x1 * x2``.", "mul")
floor_divide = _of_two(prims.floor_divide, "``x1 // x2``.", "floor_divide")
remainder = _of_two(prims.remainder, "``x1 % x2``, with the sign of ``x2``.", "remainder")
fmod = _of_two(prims.fmod, "What division towards zero leaves, with the sign of ``x1``.")
maximum = _of_two(prims.maximum, "The greater, or NaN.")
minimum = _of_two(prims.minimum, "The lesser, or NaN.")
bitwise_and = _of_two(prims.bitwise_and, "``x1 & x2``.", "bitwise_and")
bitwise_or = _of_two(prims.bitwise_or, "``x1 | x2``.", "bitwise_or")
bitwise_xor = _of_two(prims.bitwise_xor, "``x1 ^ x2``.", "bitwise_xor")
bitwise_left_shift = _of_two(prims.bitwise_left_shift, "``x1 << x2``.", "bitwise_left_shift")
bitwise_right_shift = _of_two(prims.bitwise_right_shift, "``x1 >> x2``.", "bitwise_right_shift")
equal = _of_two(prims.eq, "``x1 == x2``.", "eq")
not_equal = _of_two(prims.ne, "``x1 != x2``.", "ne")
less = _of_two(prims.lt, "``x1 < x2``.", "lt")
less_equal = _of_two(prims.le, "``x1 <= x2``.", "le")
greater = _of_two(prims.gt, "``x1 > x2``.", "gt")
greater_equal = _of_two(prims.ge, "``x1 >= x2``.", "ge")
gcd = _of_two(prims.gcd, "Greatest common divisor.")
lcm = _of_two(prims.lcm, "Least common multiple.")
atan2 = _of_two(prims.atan2, "The angle of the point ``(x2, x1)``.", in_float=True)
copysign = _of_two(prims.copysign, "The magnitude of ``x1`` with the sign of ``x2``.", in_float=True)
hypot = _of_two(prims.hypot, "``sqrt(x1**2 + x2**2)``.", in_float=True)
logaddexp = _of_two(prims.logaddexp, "``log(exp(x1) + exp(x2))``.", in_float=True)
logaddexp2 = _of_two(prims.logaddexp2, "``log2(2**x1 + 2**x2)``.", in_float=True)
nextafter = _of_two(prims.nextafter, "The number after ``x1`` in the direction of ``x2``.", in_float=True)
arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctanh, arctan2 = atan, atanh, atan2
mod, left_shift, right_shift = remainder, bitwise_left_shift, bitwise_right_shift


@numpy.method("sub")
def subtract(x1: Any, x2: Any) -> TensorProxy:
    """``x1 - x2``.

    Raises:
        TypeError: both are of booleans, for which NumPy has no ``-``.
    """
    x1, x2 = array(x1), array(x2)
    if result_type(x1, x2).is_bool:
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported; use bitwise_xor")
    return elementwise(prims.sub, x1, x2)


@numpy.method("true_divide")
def divide(x1: Any, x2: Any) -> TensorProxy:
    """``x1 / x2``; of integers in ``float64``."""
    x1, x2 = array(x1), array(x2)
    dtype = result_type(x1, x2)
    return elementwise(prims.div, x1, x2, dtype=dtype if dtype.is_inexact else dtypes.float64)


true_divide = divide


@numpy.method("pow")
def power(x1: Any, x2: Any) -> TensorProxy:
    """``x1 ** x2``.

    Raises:
        ValueError: an integer would be raised to a negative integer.
    """
    x1, x2 = array(x1), array(x2)
    dtype = result_type(x1, x2)
    if dtype.is_exact and isinstance(x2, int) and x2 < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    return elementwise(prims.pow, x1, x2, dtype=dtypes.int8 if dtype.is_bool else dtype)


pow = power


def _real(operation: str, x: Any) -> TensorProxy:
    x = as_array(x)
    if x.dtype.is_complex:
        raise TypeError(f"ufunc {operation!r} is not defined for complex numbers")
    return x  # type: ignore[no-any-return]


@numpy.method("abs")
def abs(x: Any) -> TensorProxy:
    """Absolute value."""
    x = as_array(x)
    return x if x.dtype.is_bool else lang.abs(x)


absolute = abs


@numpy.method("neg")
def negative(x: Any) -> TensorProxy:
    """``-x``.

    Raises:
        TypeError: ``x`` is of booleans.
    """
    x = as_array(x)
    if x.dtype.is_bool:
        raise TypeError("The numpy boolean negative, the `-` operator, is not supported")
    return lang.neg(x)


def positive(x: Any) -> TensorProxy:
    """``x`` itself.

    Raises:
        TypeError: ``x`` is of booleans.
    """
    x = as_array(x)
    if x.dtype.is_bool:
        raise TypeError("ufunc 'positive' did not contain a loop for booleans")
    return x  # type: ignore[no-any-return]


def ceil(x: Any) -> TensorProxy:
    """The least integer not below each element."""
    return _rounded(prims.ceil, x)  # type: ignore[no-any-return]


def floor(x: Any) -> TensorProxy:
    """The greatest integer not above each element."""
    return _rounded(prims.floor, x)  # type: ignore[no-any-return]


def trunc(x: Any) -> TensorProxy:
    """Each element without its fraction."""
    return _rounded(prims.trunc, x)  # type: ignore[no-any-return]


def _rounded(symbol: Symbol, x: Any) -> Any:
    x = _real(symbol.name, x)
    return x if x.dtype.is_exact else symbol(x)


def rint(x: Any) -> TensorProxy:
    """The nearest integer, the even one of two, in floating point."""
    return elementwise_in_float(prims.round, x)


@numpy.method("round")
def round(x: Any, decimals: int = 0) -> TensorProxy:
    """The nearest number with that many decimals."""
    x = as_array(x)
    if x.dtype.is_exact and decimals >= 0:
        return convert(x, dtypes.float16) if x.dtype.is_bool else x  # type: ignore[no-any-return]
    if x.dtype.is_complex:
        return prims.complex(round(prims.real(x), decimals), round(prims.imag(x), decimals))
    return lang.round(x, decimals=decimals)


def sign(x: Any) -> TensorProxy:
    """-1, 0 or 1; of complex numbers, the direction.

    Raises:
        TypeError: ``x`` is of booleans.
    """
    x = as_array(x)
    if x.dtype.is_bool:
        raise TypeError("ufunc 'sign' did not contain a loop for booleans")
    return lang.sgn(x)


def signbit(x: Any) -> TensorProxy:
    """Whether the sign bit is set."""
    x = _real("signbit", x)
    return lang.signbit(convert(x, float_for(x.dtype)))


def square(x: Any) -> TensorProxy:
    """``x * x``."""
    x = as_array(x)
    x = convert(x, dtypes.int8) if x.dtype.is_bool else x
    return prims.mul(x, x)


def reciprocal(x: Any) -> TensorProxy:
    """``1 / x``, of integers as integers divide.

    Raises:
        DTypeError: ``x`` is of booleans.
    """
    x = as_array(x)
    if x.dtype.is_bool:
        raise DTypeError("reciprocal of booleans is not supported; convert them")
    return prims.trunc_divide(1, x) if x.dtype.is_integer else prims.reciprocal(x)


def real(x: Any) -> TensorProxy:
    """The real part."""
    return lang.real(as_array(x))


def imag(x: Any) -> TensorProxy:
    """The imaginary part; zeros for what is real."""
    x = as_array(x)
    return lang.imag(x) if x.dtype.is_complex else lang.zeros_like(x)


def conj(x: Any) -> TensorProxy:
    """The complex conjugate."""
    x = as_array(x)
    return convert(x, dtypes.int8) if x.dtype.is_bool else lang.conj(x)


conjugate = conj


@numpy.method("bitwise_not")
def bitwise_invert(x: Any) -> TensorProxy:
    """``~x`` of integers or booleans."""
    return lang.bitwise_not(as_array(x))


bitwise_not = invert = bitwise_invert


def logical_not(x: Any) -> TensorProxy:
    """Whether each element is zero."""
    return lang.logical_not(as_array(x))


def _logical(symbol: Symbol, x1: Any, x2: Any) -> TensorProxy:
    x1, x2 = broadcast(as_array(x1), as_array(x2))
    truths = [x if x.dtype.is_bool else prims.ne(x, 0) for x in (x1, x2)]
    return symbol(*truths)  # type: ignore[no-any-return]


def logical_and(x1: Any, x2: Any) -> TensorProxy:
    """Whether neither is zero."""
    return _logical(prims.bitwise_and, x1, x2)


def logical_or(x1: Any, x2: Any) -> TensorProxy:
    """Whether one is not zero."""
    return _logical(prims.bitwise_or, x1, x2)


def logical_xor(x1: Any, x2: Any) -> TensorProxy:
    """Whether exactly one is not zero."""
    return _logical(prims.bitwise_xor, x1, x2)


def isfinite(x: Any) -> TensorProxy:
    """Whether each element is neither infinite nor NaN."""
    return lang.isfinite(as_array(x))


def isinf(x: Any) -> TensorProxy:
    """Whether each element is infinite."""
    return lang.isinf(as_array(x))


def isnan(x: Any) -> TensorProxy:
    """Whether each element is NaN."""
    return lang.isnan(as_array(x))


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> TensorProxy:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``, or both are equal (or NaN, if asked)."""
    a, b = matched(a, b)
    return lang.isclose(a, b, rtol, atol, equal_nan)


@numpy.method("clip")
def clip(x: Any, min: Any = None, max: Any = None) -> TensorProxy:
    """``x``, but ``min`` where it is below and ``max`` where it is above."""
    if min is None and max is None:
        return as_array(x)
    operands = iter(matched(*[o for o in (x, min, max) if o is not None]))
    first = next(operands)
    low = None if min is None else next(operands)
    return prims.clamp(first, low, None if max is None else next(operands))
