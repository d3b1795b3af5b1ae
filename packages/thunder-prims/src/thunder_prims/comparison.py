"""Prims that compare, and those that classify numbers. The results are ``bool8``."""

from __future__ import annotations

from thunder_ir import OpTags, TensorProxy, dtypes
from thunder_ir.number_proxies import Number
from thunder_prims.batching import elementwise_prim
from thunder_prims.checks import ANY, ORDERED, elementwise, unary

__all__ = ["eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "lt", "ne", "signbit"]

CONSTANT = OpTags.CONSTANT_FOR_DERIVATIVE
Operand = TensorProxy | Number


@elementwise_prim(CONSTANT, method="eq")
def eq(a: Operand, b: Operand) -> TensorProxy:
    """``a == b``."""
    return elementwise("eq", ANY, a, b, dtype=dtypes.bool8)


@elementwise_prim(CONSTANT, method="ne")
def ne(a: Operand, b: Operand) -> TensorProxy:
    """``a != b``."""
    return elementwise("ne", ANY, a, b, dtype=dtypes.bool8)


@elementwise_prim(CONSTANT, method="lt")
def lt(a: Operand, b: Operand) -> TensorProxy:
    """``a < b``."""
    return elementwise("lt", ORDERED, a, b, dtype=dtypes.bool8)


@elementwise_prim(CONSTANT, method="le")
def le(a: Operand, b: Operand) -> TensorProxy:
    """``a <= b``."""
    return elementwise("le", ORDERED, a, b, dtype=dtypes.bool8)


@elementwise_prim(CONSTANT, method="gt")
def gt(a: Operand, b: Operand) -> TensorProxy:
    """``a > b``."""
    return elementwise("gt", ORDERED, a, b, dtype=dtypes.bool8)


@elementwise_prim(CONSTANT, method="ge")
def ge(a: Operand, b: Operand) -> TensorProxy:
    """``a >= b``."""
    return elementwise("ge", ORDERED, a, b, dtype=dtypes.bool8)


@elementwise_prim(CONSTANT)
def isfinite(a: TensorProxy) -> TensorProxy:
    """Whether ``a`` is neither infinite nor nan."""
    return unary("isfinite", ANY, a, dtypes.bool8)


@elementwise_prim(CONSTANT)
def isinf(a: TensorProxy) -> TensorProxy:
    """Whether ``a`` is infinite; if complex, one of its parts."""
    return unary("isinf", ANY, a, dtypes.bool8)


@elementwise_prim(CONSTANT)
def isnan(a: TensorProxy) -> TensorProxy:
    """Whether ``a`` is nan; if complex, one of its parts."""
    return unary("isnan", ANY, a, dtypes.bool8)


@elementwise_prim(CONSTANT)
def signbit(a: TensorProxy) -> TensorProxy:
    """Whether the sign of ``a`` is minus, that of ``-0.0`` included."""
    return unary("signbit", ORDERED, a, dtypes.bool8)
