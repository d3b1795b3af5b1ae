"""Checks of several operands, of indices and of matrices; and arithmetic of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import DTypeError, ShapeError, TensorProxy, same_shape
from thunder_prims.checks import check_same, check_tensor


def check_operands(operation: str, *operands: TensorProxy | None) -> None:
    """Check that the tensors among ``operands`` have one dtype and one device.

    Raises:
        DTypeError, DeviceError: two of them differ.
        TypeError: one is neither a tensor nor ``None``.
    """
    first: TensorProxy | None = None
    for operand in operands:
        if operand is None:
            continue
        check_tensor(operation, operand)
        if first is None:
            first = operand
        else:
            check_same(operation, first, operand, shape=False)


def check_device_of(operation: str, a: TensorProxy, b: TensorProxy) -> None:
    """Check that both tensors have one device.

    Raises:
        DeviceError: they differ.
    """
    check_same(operation, a, b, shape=False, dtype=False)


def check_indices(operation: str, a: TensorProxy, indices: TensorProxy) -> None:
    """Check that ``indices`` are integers on the device of ``a``.

    Raises:
        DTypeError, DeviceError: they are not.
    """
    check_tensor(operation, indices, "indices")
    if not indices.dtype.is_integer:
        raise DTypeError(f"{operation} needs indices of an integer dtype, got {indices.type_string}")
    check_device_of(operation, a, indices)


def check_has_shape(operation: str, what: str, a: TensorProxy, shape: Sequence[Any]) -> None:
    """Check that ``a``, called ``what`` in the message, has ``shape``.

    Raises:
        ShapeError: it has another.
    """
    check_tensor(operation, a, what)
    if not same_shape(a.shape, tuple(shape)):
        raise ShapeError(f"{operation} needs {what} of shape {shape_text(shape)}, got {a.type_string}")


def check_matrices(operation: str, a: TensorProxy, square: bool = False) -> None:
    """Check that ``a`` is a matrix or a batch of them, square ones if asked.

    Raises:
        ShapeError: it is not.
    """
    check_tensor(operation, a)
    if len(a.shape) < 2:
        raise ShapeError(f"{operation} needs matrices, got {a.type_string}")
    if square and a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{operation} needs square matrices, got {a.type_string}")


def shape_text(shape: Sequence[Any]) -> str:
    """Return a shape as messages print it, symbolic dimensions by name."""
    return f"({', '.join(getattr(d, 'name', '') or str(d) for d in shape)}{',' if len(shape) == 1 else ''})"


def without(shape: Sequence[Any], dims: Sequence[int]) -> tuple[Any, ...]:
    """Return ``shape`` with the dimensions ``dims`` left out."""
    return tuple([d for i, d in enumerate(shape) if i not in dims])


def replaced(shape: Sequence[Any], dim: int, *lengths: Any) -> tuple[Any, ...]:
    """Return ``shape`` with the dimension ``dim`` replaced by ``lengths``."""
    return (*shape[:dim], *lengths, *shape[dim + 1 :])


def any_requires_grad(a: TensorProxy, *others: Any) -> bool:
    """Return whether derivatives through a result of the dtype of ``a`` are wanted for any of the operands."""
    return a.dtype.is_inexact and (
        a.requires_grad or any([isinstance(o, TensorProxy) and o.requires_grad for o in others])
    )
