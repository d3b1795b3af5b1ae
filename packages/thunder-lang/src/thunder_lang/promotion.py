"""Type promotion, exactly as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, auto
from typing import Any

from thunder_ir import DType, DTypeError, NumberProxy, TensorProxy, dtypes
from thunder_ir.dtypes import Kind

__all__ = [
    "Promotion", "compute_dtype", "default_dtype", "get_default_dtype", "kind_of", "promote_types", "result_type",
]  # fmt: skip

_DEFAULT: ContextVar[DType] = ContextVar("thunder_default_dtype", default=dtypes.float32)
_FEW_PROMOTIONS = frozenset({dtypes.uint16, dtypes.uint32, dtypes.uint64})


class Promotion(Enum):
    """The dtype in which an elementwise operation computes, given the common dtype of its operands."""

    DEFAULT = auto()  # the common dtype
    FLOAT = auto()  # the default floating-point dtype where the common dtype is an integer or bool8
    INTEGER = auto()  # int64 where the common dtype is bool8


def get_default_dtype() -> DType:
    """Return the dtype of Python floats, and of what integers become where only floats will do."""
    return _DEFAULT.get()


@contextmanager
def default_dtype(dtype: DType) -> Iterator[None]:
    """Make ``dtype`` the one of Python floats, within a ``with`` block.

    Raises:
        DTypeError: ``dtype`` is not a floating-point type.
    """
    if not dtype.is_floating:
        raise DTypeError(f"only a floating-point type can be the default dtype, got {dtype}")
    token = _DEFAULT.set(dtype)
    try:
        yield
    finally:
        _DEFAULT.reset(token)


def promote_types(a: DType, b: DType) -> DType:
    """Return the least dtype to which both promote.

    Raises:
        DTypeError: PyTorch promotes neither to the other: eight-bit floats, and most pairs with ``uint16``,
            ``uint32`` or ``uint64``.

    Example:
        >>> from thunder_ir import dtypes
        >>> promote_types(dtypes.int64, dtypes.float16)
        float16

    Source:
        ``torch.promote_types``.
    """
    if a is b:
        return a
    if "8_" in a.name or "8_" in b.name:
        raise DTypeError(f"eight-bit floats do not promote; convert {a} or {b}")
    if (a in _FEW_PROMOTIONS or b in _FEW_PROMOTIONS) and not (a.is_floating or b.is_floating):
        raise DTypeError(f"uint16, uint32 and uint64 promote with floats only; convert {a} or {b}")
    return dtypes.join(a, b)


def kind_of(number: Any) -> Kind:
    """Return the kind of a Python number or number proxy.

    Raises:
        TypeError: it is not a number.
    """
    cls = number.python_type if isinstance(number, NumberProxy) else number.__class__
    kind = _KINDS.get(cls)
    if kind is None:
        for base, of_base in _KINDS.items():
            if issubclass(cls, base):
                return of_base
        raise TypeError(f"an operand must be a tensor or a number, not {cls.__name__}")
    return kind


_KINDS = {bool: Kind.BOOL, int: Kind.INTEGER, float: Kind.FLOAT, complex: Kind.COMPLEX}


def _dtype_of_number(kind: Kind) -> DType:
    if kind is Kind.BOOL:
        return dtypes.bool8
    if kind is Kind.INTEGER:
        return dtypes.int64
    default = _DEFAULT.get()
    return default if kind is Kind.FLOAT else dtypes.complex_of(default)


def result_type(*operands: Any) -> DType:
    """Return the dtype to which tensors and numbers promote.

    Tensors with dimensions decide; tensors without only where their kind is higher, and numbers likewise after them.

    Raises:
        DTypeError: the dtypes have no common one.
        TypeError: an operand is neither a tensor nor a number.

    Example:
        >>> from thunder_ir import Tensor
        >>> result_type(Tensor((2,), "int32"), Tensor((), "int64")), result_type(Tensor((2,), "int32"), 1.5)
        (int32, float32)

    Source:
        ``torch.result_type``.
    """
    with_dimensions: DType | None = None
    without: DType | None = None
    kind: Kind | None = None
    for operand in operands:
        if isinstance(operand, TensorProxy):
            if operand.shape:
                with_dimensions = _join(with_dimensions, operand.dtype)
            else:
                without = _join(without, operand.dtype)
        else:
            of_number = kind_of(operand)
            kind = of_number if kind is None or of_number > kind else kind
    number = None if kind is None else _dtype_of_number(kind)
    found = _combine(with_dimensions, _combine(without, number))
    if found is None:
        raise TypeError("a common dtype needs at least one operand")
    return found


def _join(a: DType | None, b: DType) -> DType:
    return b if a is None or a is b else promote_types(a, b)


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """The dtype of a category that has priority together with that of one that has not."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.is_complex:
        return higher
    if higher.is_floating:
        return dtypes.complex_of(higher) if lower.is_complex else higher
    if lower.is_complex:
        return lower
    return promote_types(higher, lower) if higher.is_bool or lower.is_floating else higher


def compute_dtype(promotion: Promotion, *operands: Any) -> DType:
    """Return the dtype in which an operation of that promotion computes."""
    common = result_type(*operands)
    if promotion is Promotion.FLOAT and common.is_exact:
        return _DEFAULT.get()
    if promotion is Promotion.INTEGER and common.is_bool:
        return dtypes.int64
    return common
