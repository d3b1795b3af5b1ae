"""Elementwise operations of two operands: tensors, or a tensor and a number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import thunder_prims as prims
from thunder_ir import DTypeError, NumberProxy, ShapeError, Symbol, TensorProxy, dtypes, is_unknown
from thunder_lang.dims import as_tensor
from thunder_lang.language import core
from thunder_lang.operands import elementwise, matched
from thunder_lang.promotion import Promotion, kind_of

__all__ = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "complex",
    "copysign", "div", "floor_divide", "fmod", "gcd", "hypot", "lcm", "ldexp", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mul", "nextafter", "pow", "remainder", "sub",
    "true_divide",
]  # fmt: skip

Operand = Any  # a tensor, a number or a number proxy


def _numbers(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """The operation of two numbers, which gives a number."""
    kind_of(a)
    kind_of(b)
    return function(a, b)


def _no_tensor(a: Any, b: Any) -> bool:
    return not (isinstance(a, TensorProxy) or isinstance(b, TensorProxy))


def _is_bool(a: Any) -> bool:
    if isinstance(a, TensorProxy):
        return a.dtype.is_bool
    return a.__class__ is bool or (isinstance(a, NumberProxy) and a.python_type is bool)


def _scaled(b: Any, alpha: Any) -> Any:
    return mul(b, alpha) if isinstance(alpha, TensorProxy) or is_unknown(alpha) or alpha != 1 else b


@core.method("add")
def add(a: Operand, b: Operand, *, alpha: Any = 1) -> Any:
    """``a + alpha * b``.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import add, core
        >>> print(trace_of(lambda x, y: add(x, y), Tensor((2, 3)), Tensor((3,), "int64"), language=core))
        def program(x: "float32[2, 3]", y: "int64[3]"):
            t0 = prims.convert_element_type(y, dtypes.float32)  # float32[3]
            t1 = prims.broadcast_in_dim(t0, (2, 3), (1,))  # float32[2, 3]
            t2 = prims.add(x, t1)  # float32[2, 3]
            return t2
    """
    if alpha.__class__ is not int or alpha != 1:
        b = _scaled(b, alpha)
    return _numbers(operator.add, a, b) if _no_tensor(a, b) else elementwise(prims.add, a, b)


@core.method("sub", "subtract")
def sub(a: Operand, b: Operand, *, alpha: Any = 1) -> Any:
    """``a - alpha * b``.

    Raises:
        DTypeError: one is of booleans.
    """
    if alpha.__class__ is not int or alpha != 1:
        b = _scaled(b, alpha)
    if _no_tensor(a, b):
        return _numbers(operator.sub, a, b)
    if _is_bool(a) or _is_bool(b):
        raise DTypeError("subtraction, the `-` operator, with bool8 is not supported; use `^` or logical_xor")
    return elementwise(prims.sub, a, b)


@core.method("mul", "multiply")
def mul(a: Operand, b: Operand) -> Any:
    """``a * b``."""
    return _numbers(operator.mul, a, b) if _no_tensor(a, b) else elementwise(prims.mul, a, b)


@core.method("true_divide")
def true_divide(a: Operand, b: Operand) -> Any:
    """``a / b``; integers are divided in the default floating-point dtype."""
    if _no_tensor(a, b):
        return _numbers(operator.truediv, a, b)
    return elementwise(prims.div, a, b, promotion=Promotion.FLOAT)


@core.method("div", "divide")
def div(a: Operand, b: Operand, *, rounding_mode: str | None = None) -> Any:
    """``a / b``, rounded towards zero (``"trunc"``) or minus infinity (``"floor"``) if asked.

    Raises:
        ShapeError: ``rounding_mode`` is another one.
    """
    if rounding_mode is None:
        return true_divide(a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if rounding_mode == "trunc":
        return elementwise(prims.trunc_divide, a, b)
    raise ShapeError(f"div needs a rounding_mode of None, 'trunc' or 'floor', got {rounding_mode!r}")


@core.method("floor_divide")
def floor_divide(a: Operand, b: Operand) -> Any:
    """``a // b``, as Python rounds."""
    return _numbers(operator.floordiv, a, b) if _no_tensor(a, b) else elementwise(prims.floor_divide, a, b)


@core.method("remainder")
def remainder(a: Operand, b: Operand) -> Any:
    """``a % b``, with the sign of ``b``, as in Python."""
    return _numbers(operator.mod, a, b) if _no_tensor(a, b) else elementwise(prims.remainder, a, b)


@core.method("fmod")
def fmod(a: Operand, b: Operand) -> TensorProxy:
    """What division towards zero leaves, with the sign of ``a``, as in C."""
    return as_tensor(elementwise(prims.fmod, a, b))


@core.method("pow")
def pow(a: Operand, b: Operand) -> Any:
    """``a ** b``.

    Raises:
        DTypeError: ``a`` is of integers and ``b`` a negative integer.
    """
    if _no_tensor(a, b):
        return _numbers(operator.pow, a, b)
    if isinstance(b, int) and b < 0 and isinstance(a, TensorProxy) and a.dtype.is_exact:
        raise DTypeError("integers to negative integer powers are not allowed")
    return elementwise(prims.pow, a, b)


@core.method("maximum")
def maximum(a: Operand, b: Operand) -> TensorProxy:
    """The greater of ``a`` and ``b``; NaN where one is."""
    return as_tensor(elementwise(prims.maximum, a, b))


@core.method("minimum")
def minimum(a: Operand, b: Operand) -> TensorProxy:
    """The lesser of ``a`` and ``b``; NaN where one is."""
    return as_tensor(elementwise(prims.minimum, a, b))


@core.method("atan2", "arctan2")
def atan2(a: Operand, b: Operand) -> TensorProxy:
    """The angle of the point ``(b, a)``; of integers, in the default floating-point dtype."""
    return as_tensor(elementwise(prims.atan2, a, b, promotion=Promotion.FLOAT))


@core.method("copysign")
def copysign(a: Operand, b: Operand) -> TensorProxy:
    """The magnitude of ``a`` with the sign of ``b``; of integers, in the default floating-point dtype."""
    return as_tensor(elementwise(prims.copysign, a, b, promotion=Promotion.FLOAT))


@core.method("nextafter")
def nextafter(a: Operand, b: Operand) -> TensorProxy:
    """The number after ``a`` in the direction of ``b``."""
    return as_tensor(elementwise(prims.nextafter, a, b))


@core.method("hypot")
def hypot(a: Operand, b: Operand) -> TensorProxy:
    """``sqrt(a**2 + b**2)``, without overflow on the way."""
    return as_tensor(elementwise(prims.hypot, a, b, promotion=Promotion.FLOAT))


@core.method("logaddexp")
def logaddexp(a: Operand, b: Operand) -> TensorProxy:
    """``log(exp(a) + exp(b))``, without overflow on the way."""
    return as_tensor(elementwise(prims.logaddexp, a, b, promotion=Promotion.FLOAT))


@core.method("logaddexp2")
def logaddexp2(a: Operand, b: Operand) -> TensorProxy:
    """``log2(2**a + 2**b)``, without overflow on the way."""
    return as_tensor(elementwise(prims.logaddexp2, a, b, promotion=Promotion.FLOAT))


@core.method("gcd")
def gcd(a: Operand, b: Operand) -> TensorProxy:
    """The greatest common divisor of integers."""
    return as_tensor(elementwise(prims.gcd, a, b))


@core.method("lcm")
def lcm(a: Operand, b: Operand) -> TensorProxy:
    """The least common multiple of integers."""
    return as_tensor(elementwise(prims.lcm, a, b))


@core.method("ldexp")
def ldexp(a: Operand, b: Operand) -> Any:
    """``a * 2**b``; of integers, in the default floating-point dtype."""
    (exponent,) = matched("ldexp", b, promotion=Promotion.FLOAT) if isinstance(b, TensorProxy) else (b,)
    return mul(a, prims.exp2(exponent) if isinstance(exponent, TensorProxy) else 2.0**exponent)


@core.method("complex")
def complex(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """``a + 1j * b`` of tensors of one floating-point dtype."""
    return as_tensor(elementwise(prims.complex, a, b))


def _of_bits(symbol: Symbol, a: Operand, b: Operand) -> TensorProxy:
    for operand in (a, b):
        kind = operand.dtype.kind if isinstance(operand, TensorProxy) else kind_of(operand)
        if kind > dtypes.Kind.INTEGER:
            shown = operand.type_string if isinstance(operand, TensorProxy) else type(operand).__name__
            raise DTypeError(f"{symbol.name} needs integers or booleans, got {shown}")
    return as_tensor(elementwise(symbol, a, b))


@core.method("bitwise_and")
def bitwise_and(a: Operand, b: Operand) -> TensorProxy:
    """``a & b`` of integers or booleans."""
    return _of_bits(prims.bitwise_and, a, b)


@core.method("bitwise_or")
def bitwise_or(a: Operand, b: Operand) -> TensorProxy:
    """``a | b`` of integers or booleans."""
    return _of_bits(prims.bitwise_or, a, b)


@core.method("bitwise_xor")
def bitwise_xor(a: Operand, b: Operand) -> TensorProxy:
    """``a ^ b`` of integers or booleans."""
    return _of_bits(prims.bitwise_xor, a, b)


@core.method("bitwise_left_shift")
def bitwise_left_shift(a: Operand, b: Operand) -> TensorProxy:
    """``a << b`` of integers."""
    return _of_bits(prims.bitwise_left_shift, a, b)


@core.method("bitwise_right_shift")
def bitwise_right_shift(a: Operand, b: Operand) -> TensorProxy:
    """``a >> b`` of integers, keeping the sign."""
    return _of_bits(prims.bitwise_right_shift, a, b)


def _truth(a: Operand) -> Any:
    """Whether it is not zero."""
    if isinstance(a, TensorProxy):
        return a if a.dtype.is_bool else prims.ne(a, 0)
    kind_of(a)
    return a != 0


@core.method("logical_and")
def logical_and(a: Operand, b: Operand) -> TensorProxy:
    """Whether neither is zero."""
    return as_tensor(elementwise(prims.bitwise_and, _truth(a), _truth(b)))


@core.method("logical_or")
def logical_or(a: Operand, b: Operand) -> TensorProxy:
    """Whether one is not zero."""
    return as_tensor(elementwise(prims.bitwise_or, _truth(a), _truth(b)))


@core.method("logical_xor")
def logical_xor(a: Operand, b: Operand) -> TensorProxy:
    """Whether exactly one is not zero."""
    return as_tensor(elementwise(prims.bitwise_xor, _truth(a), _truth(b)))
