"""Elementwise comparisons; they give booleans."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import thunder_prims as prims
from thunder_ir import DTypeError, NumberProxy, Symbol, TensorProxy, dtypes
from thunder_lang.elementwise_binary import Operand, mul
from thunder_lang.elementwise_unary import abs, isfinite, isnan
from thunder_lang.language import core
from thunder_lang.operands import elementwise, matched

__all__ = ["eq", "ge", "gt", "isclose", "le", "lt", "ne"]

_COMPARABLE = (TensorProxy, NumberProxy, bool, int, float, complex)


def _compared(symbol: Symbol, function: Callable[[Any, Any], Any], a: Operand, b: Operand, ordered: bool = True) -> Any:
    if not (isinstance(a, TensorProxy) or isinstance(b, TensorProxy)):
        return function(a, b)
    if ordered and any([isinstance(o, TensorProxy) and o.dtype.is_complex for o in (a, b)]):
        raise DTypeError(f"{symbol.name} needs real operands: complex numbers have no order")
    return elementwise(symbol, a, b)


@core.method("eq", "equal")
def eq(a: Operand, b: Operand) -> Any:
    """``a == b``; ``NotImplemented`` where one is neither tensor nor number, for Python to say that they differ."""
    if not (isinstance(a, _COMPARABLE) and isinstance(b, _COMPARABLE)):
        return NotImplemented
    return _compared(prims.eq, operator.eq, a, b, ordered=False)


@core.method("ne", "not_equal")
def ne(a: Operand, b: Operand) -> Any:
    """``a != b``; ``NotImplemented`` where one is neither tensor nor number, for Python to say that they differ."""
    if not (isinstance(a, _COMPARABLE) and isinstance(b, _COMPARABLE)):
        return NotImplemented
    return _compared(prims.ne, operator.ne, a, b, ordered=False)


@core.method("lt", "less")
def lt(a: Operand, b: Operand) -> Any:
    """``a < b``."""
    return _compared(prims.lt, operator.lt, a, b)


@core.method("le", "less_equal")
def le(a: Operand, b: Operand) -> Any:
    """``a <= b``."""
    return _compared(prims.le, operator.le, a, b)


@core.method("gt", "greater")
def gt(a: Operand, b: Operand) -> Any:
    """``a > b``."""
    return _compared(prims.gt, operator.gt, a, b)


@core.method("ge", "greater_equal")
def ge(a: Operand, b: Operand) -> Any:
    """``a >= b``."""
    return _compared(prims.ge, operator.ge, a, b)


@core.method("isclose")
def isclose(
    a: TensorProxy, b: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> TensorProxy:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``, or both are equal (or NaN, if asked)."""
    a, b = matched("isclose", a, b)
    same = eq(a, b)
    if a.dtype.is_exact and rtol == 0 and atol == 0:
        return same  # type: ignore[no-any-return]
    if a.dtype.is_bool:
        a = prims.convert_element_type(a, dtypes.int64)
        b = prims.convert_element_type(b, dtypes.int64) if isinstance(b, TensorProxy) else b
    distance = abs(prims.sub(a, b))
    allowed = mul(abs(b), rtol) if isinstance(b, TensorProxy) else float(b.__abs__()) * rtol
    close = prims.bitwise_and(isfinite(distance), le(distance, allowed + atol))
    if equal_nan:
        both = isnan(a)
        other = isnan(b) if isinstance(b, TensorProxy) else prims.full(a.shape, b != b, both.dtype, a.device)
        same = prims.bitwise_or(same, prims.bitwise_and(both, other))
    return prims.bitwise_or(same, close)
