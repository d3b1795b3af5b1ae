"""Checks that many prims share. Each raises with the operation, what it was given and what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thunder_ir import (
    Device,
    DeviceError,
    DimensionError,
    DType,
    DTypeError,
    IntegerProxy,
    NumberProxy,
    ShapeError,
    TensorProxy,
    same_shape,
)
from thunder_ir.dtypes import Kind


@dataclass(frozen=True, slots=True, eq=False)
class Accepted:
    """The kinds of dtype that an operation takes.

    Args:
        description: for messages, ``"a floating-point dtype"``.
        kinds: those that it takes.
    """

    description: str
    kinds: tuple[Kind, ...]


ANY = Accepted("any dtype", (Kind.BOOL, Kind.INTEGER, Kind.FLOAT, Kind.COMPLEX))
NUMERIC = Accepted("a dtype other than bool8", (Kind.INTEGER, Kind.FLOAT, Kind.COMPLEX))
ORDERED = Accepted("a dtype that is not complex", (Kind.BOOL, Kind.INTEGER, Kind.FLOAT))
REAL = Accepted("an integer or floating-point dtype", (Kind.INTEGER, Kind.FLOAT))
INEXACT = Accepted("a floating-point or complex dtype", (Kind.FLOAT, Kind.COMPLEX))
FLOATING = Accepted("a floating-point dtype", (Kind.FLOAT,))
COMPLEX = Accepted("a complex dtype", (Kind.COMPLEX,))
EXACT = Accepted("an integer dtype or bool8", (Kind.BOOL, Kind.INTEGER))
INTEGER = Accepted("an integer dtype", (Kind.INTEGER,))

_KIND_OF = {bool: Kind.BOOL, int: Kind.INTEGER, float: Kind.FLOAT, complex: Kind.COMPLEX}


def described(value: Any) -> str:
    """Return how a message speaks of an argument: a tensor by its type, anything else by type and value."""
    if isinstance(value, TensorProxy):
        return value.type_string
    if isinstance(value, NumberProxy):
        return f"the {value.type_string} {value.name or value.value}"
    return f"the {type(value).__name__} {value!r}"


def kind_of_number(operation: str, number: Any) -> Kind:
    """Return the kind of a Python number or number proxy.

    Raises:
        TypeError: it is neither.
    """
    kind = _KIND_OF.get(number.python_type if isinstance(number, NumberProxy) else number.__class__)
    if kind is not None:
        return kind
    for python_type, of in _KIND_OF.items():  # subclasses: an IntEnum, a float of NumPy
        if isinstance(number, python_type):
            return of
    raise TypeError(f"{operation} takes tensors and numbers, got {described(number)}")


def check_tensor(operation: str, value: Any, argument: str = "an argument") -> None:
    """Check that ``value`` is a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, TensorProxy):
        raise TypeError(f"{operation} needs a tensor as {argument}, got {described(value)}")


def check_accepts(operation: str, a: TensorProxy, accepted: Accepted) -> None:
    """Check that the dtype of ``a`` is of an accepted kind.

    Raises:
        DTypeError: it is not.
        TypeError: ``a`` is not a tensor.
    """
    if not isinstance(a, TensorProxy):
        check_tensor(operation, a)
    if a.dtype.kind not in accepted.kinds:
        raise DTypeError(f"{operation} of {a.type_string} needs {accepted.description}; convert it first")


def check_number(operation: str, number: Any, dtype: DType) -> None:
    """Check that a number can be an element of ``dtype`` without losing its kind.

    Raises:
        DTypeError: it is of a higher kind: a float for integers, a complex number for reals.
        TypeError: it is not a number.
    """
    if kind_of_number(operation, number) > dtype.kind:
        raise DTypeError(f"{operation} of {dtype} cannot take {described(number)}; convert one of them first")


def check_same(operation: str, a: TensorProxy, b: TensorProxy, *, shape: bool = True, dtype: bool = True) -> None:
    """Check that two tensors have one device, and one shape and dtype unless told otherwise.

    Raises:
        ShapeError: the shapes differ.
        DTypeError: the dtypes differ.
        DeviceError: the devices differ.
    """
    if shape and a.shape is not b.shape and not same_shape(a.shape, b.shape):
        raise ShapeError(f"{operation} of {a.type_string} and {b.type_string} needs equal shapes; broadcast first")
    if dtype and a.dtype is not b.dtype:
        raise DTypeError(
            f"{operation} of {a.type_string} and {b.type_string} needs one dtype; convert one of them first"
        )
    if a.device is not b.device and a.device != b.device:
        raise DeviceError(
            f"{operation} of {a.type_string} on {a.device} and {b.type_string} on {b.device} needs one device; "
            "move one of them first"
        )


def elementwise(operation: str, accepted: Accepted, *operands: Any, dtype: DType | None = None) -> TensorProxy:
    """Check the operands of an elementwise operation and return its result.

    Args:
        operation: its name.
        accepted: the kinds of dtype that it takes.
        operands: tensors of one shape, dtype and device, or numbers that fit the dtype; at least one tensor.
        dtype: of the result, if not the operands'.

    Raises:
        ShapeError, DTypeError, DeviceError: the operands do not fit together.
        TypeError: none is a tensor, or one is neither tensor nor number.
    """
    first: TensorProxy | None = None
    requires_grad = False
    for operand in operands:
        if isinstance(operand, TensorProxy):
            if first is None:
                first = operand
            else:
                check_same(operation, first, operand)
            requires_grad = requires_grad or operand.requires_grad
    if first is None:
        raise TypeError(f"{operation} needs a tensor among its operands, got {', '.join(map(described, operands))}")
    if first.dtype.kind not in accepted.kinds:
        check_accepts(operation, first, accepted)
    for operand in operands:
        if not isinstance(operand, TensorProxy):
            check_number(operation, operand, first.dtype)
    result = first.dtype if dtype is None else dtype
    return TensorProxy(first.shape, result, first.device, requires_grad and result.is_inexact)


def unary(operation: str, accepted: Accepted, a: Any, dtype: DType | None = None) -> TensorProxy:
    """Check the operand of an elementwise operation of one tensor and return its result; see :func:`elementwise`."""
    check_accepts(operation, a, accepted)
    result: TensorProxy = a.like(dtype=dtype)
    return result


def check_dim(operation: str, a: TensorProxy, dim: Any) -> None:
    """Check that ``dim`` is a dimension of ``a``, counted from 0.

    Raises:
        DimensionError: it is not.
        TypeError: it is no integer.
    """
    if not isinstance(dim, int):
        raise TypeError(f"{operation} of {described(a)} needs an int as a dimension, got {described(dim)}")
    if not isinstance(a, TensorProxy):
        check_tensor(operation, a)
    if not 0 <= dim < len(a.shape):
        expected = f"one of 0..{a.ndim - 1}" if a.ndim else "none, as it has no dimensions"
        raise DimensionError(f"{operation} of {a.type_string} has no dimension {dim}; expected {expected}")


def check_dims(operation: str, a: TensorProxy, dims: Sequence[int]) -> None:
    """Check that ``dims`` are different dimensions of ``a``, counted from 0.

    Raises:
        DimensionError: one is none of them.
        ShapeError: one appears twice.
        TypeError: ``dims`` is not a sequence of integers.
    """
    if not isinstance(dims, (tuple, list)):
        raise TypeError(f"{operation} of {described(a)} needs a tuple of dimensions, got {described(dims)}")
    for dim in dims:
        check_dim(operation, a, dim)
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{operation} of {a.type_string} needs different dimensions, got {tuple(dims)}")


def check_shape(operation: str, shape: Sequence[Any]) -> None:
    """Check that ``shape`` is a sequence of sizes.

    Raises:
        ShapeError: a size is negative.
        TypeError: it is not a sequence of integers.
    """
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"{operation} needs a tuple of sizes as shape, got {described(shape)}")
    for size in shape:
        if isinstance(size, int):
            if size < 0:
                raise ShapeError(f"{operation} needs sizes that are not negative, got {tuple(shape)}")
        elif not isinstance(size, IntegerProxy):
            raise TypeError(f"{operation} needs an int for each size, got {described(size)} in {tuple(shape)}")


def check_integer(operation: str, value: Any, argument: str) -> None:
    """Check that ``value`` is an integer or stands for one.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, (int, IntegerProxy)):
        raise TypeError(f"{operation} needs an int as {argument}, got {described(value)}")


def check_dtype(operation: str, dtype: Any) -> None:
    """Check that ``dtype`` is a dtype that tensors can have.

    Raises:
        TypeError: it is no dtype.
        DTypeError: it is a weak one.
    """
    if not isinstance(dtype, DType):
        raise TypeError(f"{operation} needs a dtype, got {described(dtype)}")
    if dtype.weak:
        raise DTypeError(f"{operation} needs the dtype of a tensor, got {dtype}, that of a Python number")


def check_device(operation: str, device: Any) -> None:
    """Check that ``device`` is a device.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(device, Device):
        raise TypeError(f"{operation} needs a device, got {described(device)}")


def windows_in(length: Any, reach: Any, stride: Any) -> Any:
    """Return how many windows of ``reach`` elements lie within ``length``, each ``stride`` after the one before."""
    return (length - reach) // stride + 1


def count(shape: Sequence[Any]) -> Any:
    """Return the number of elements of a tensor of that shape."""
    total: Any = 1
    for size in shape:
        total = total * size
    return total
