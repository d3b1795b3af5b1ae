"""Type promotion, exactly as NumPy's: Python numbers are weak, arrays without dimensions are not."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import DType, DTypeError, Symbol, TensorProxy, devices, dtypes
from thunder_ir.dtypes import Kind
from thunder_lang.creation import tensor
from thunder_lang.dims import as_tensor
from thunder_lang.operands import broadcast, convert
from thunder_lang.promotion import kind_of

__all__ = ["result_type"]

_OF_NUMBERS = (dtypes.bool8, dtypes.int64, dtypes.float64, dtypes.complex128)


def dtype_of(what: Any) -> DType:
    """Return the dtype that a user means: ours, a name, or a Python type.

    Raises:
        DTypeError: it is none of these.
    """
    if isinstance(what, type):
        what = {bool: dtypes.bool8, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}.get(
            what, what
        )
    if not isinstance(what, (DType, str)):
        raise DTypeError(f"{what!r} is no dtype")
    return dtypes.dtype(what)


def promote(a: DType, b: DType) -> DType:
    """Return NumPy's common dtype of two arrays' dtypes.

    Example:
        >>> from thunder_ir import dtypes
        >>> promote(dtypes.int32, dtypes.float32), promote(dtypes.uint64, dtypes.int8)
        (float64, float64)

    Source:
        ``numpy.promote_types``.
    """
    if a is b:
        return a
    low, high = (a, b) if a.kind <= b.kind else (b, a)
    if low.is_bool:
        return high
    if low.is_integer and high.is_integer:
        return _join_integers(low, high)
    if low.is_integer:
        low = float_for(low, least=dtypes.float16)
    return dtypes.join(low, high)


def _join_integers(a: DType, b: DType) -> DType:
    if a.signed == b.signed:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return dtypes.float64 if unsigned.bits == 64 else dtypes.dtype(f"int{2 * unsigned.bits}")


def float_for(dtype: DType, least: DType = dtypes.float16) -> DType:
    """Return the floating-point dtype in which NumPy computes for integers: the first with room for all of them."""
    if dtype.is_inexact:
        return dtype
    if dtype.is_bool or dtype.bits == 8:
        return least
    return dtypes.float32 if dtype.bits == 16 else dtypes.float64


def result_type(*operands: Any) -> DType:
    """Return the dtype to which arrays, dtypes and Python numbers promote.

    Raises:
        TypeError: there is none.

    Source:
        ``numpy.result_type``.
    """
    strong: DType | None = None
    kind: Kind | None = None
    for operand in operands:
        if isinstance(operand, (TensorProxy, DType)):
            dtype = operand.dtype if isinstance(operand, TensorProxy) else operand
            strong = dtype if strong is None else promote(strong, dtype)
        else:
            of_number = kind_of(operand)
            kind = of_number if kind is None or of_number > kind else kind
    if strong is None:
        if kind is None:
            raise TypeError("a common dtype needs at least one operand")
        return _OF_NUMBERS[kind]
    if kind is None or kind <= strong.kind:
        return strong
    if kind is Kind.COMPLEX and strong.is_floating:
        return dtypes.complex128 if strong is dtypes.float64 else dtypes.complex64
    return _OF_NUMBERS[kind]


def array(value: Any) -> Any:
    """Return what an operand is: a tensor, a number, or a tensor of the numbers in a sequence."""
    if not isinstance(value, (tuple, list)):
        return value
    made = tensor(value)
    return convert(made, dtypes.float64 if made.dtype is dtypes.float32 else made.dtype)


def matched(*operands: Any, dtype: DType | None = None) -> tuple[Any, ...]:
    """Return the operands in one dtype, that of their promotion if not given, and broadcast."""
    operands = tuple([array(o) for o in operands])
    common = result_type(*operands) if dtype is None else dtype
    converted = [_number(o, common) if not isinstance(o, TensorProxy) else convert(o, common) for o in operands]
    if not any([isinstance(o, TensorProxy) for o in converted]):
        converted[0] = prims.full((), converted[0], common, devices.cpu)
    return broadcast(*converted)


def as_array(x: Any) -> TensorProxy:
    """Return an operand as a tensor; a number becomes one without dimensions."""
    return as_tensor(matched(x)[0])


def _number(value: Any, dtype: DType) -> Any:
    """A Python number that fits an integer dtype."""
    if value.__class__ is int and dtype.is_integer and not dtypes.smallest(dtype) <= value <= dtypes.largest(dtype):
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return value


def elementwise(symbol: Symbol, *operands: Any, dtype: DType | None = None) -> TensorProxy:
    """Call a strict elementwise prim on operands brought to one dtype and shape."""
    return symbol(*matched(*operands, dtype=dtype))  # type: ignore[no-any-return]


def elementwise_in_float(symbol: Symbol, *operands: Any) -> TensorProxy:
    """Call a prim that computes in floating point: integers become the float that NumPy takes for them."""
    operands = tuple([array(o) for o in operands])
    floats = [float_for(o.dtype) if isinstance(o, TensorProxy) else o for o in operands]
    return elementwise(symbol, *operands, dtype=float_for(result_type(*floats)))
