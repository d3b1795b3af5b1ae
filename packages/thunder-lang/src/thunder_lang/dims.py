"""Dimensions as users give them: negative ones, one or several, in one argument or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_ir import DimensionError, NumberProxy, ShapeError, TensorProxy

__all__ = ["canonical_dim", "canonical_dims", "shape_text", "spread"]


def canonical_dim(operation: str, ndim: int, dim: int, extra: int = 0) -> int:
    """Return ``dim`` counted from the front.

    Args:
        operation: named in the message.
        ndim: number of dimensions; a tensor without any still has ``0`` and ``-1``.
        dim: counted from the end where negative.
        extra: dimensions that the result has more, for operations that insert one.

    Raises:
        DimensionError: there is no such dimension.
        TypeError: ``dim`` is no integer.
    """
    if dim.__class__ is not int and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        raise TypeError(f"{operation} needs a dimension as an integer, not {type(dim).__name__}")
    count = max(1, ndim + extra)
    if not -count <= dim < count:
        raise DimensionError(
            f"{operation}: dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
        )
    return int(dim) % count


def canonical_dims(operation: str, ndim: int, dims: Any) -> tuple[int, ...]:
    """Return the dimensions counted from the front, in the order given; all of them for ``None``.

    Raises:
        DimensionError: one does not exist.
        ShapeError: one comes twice.
    """
    if dims is None:
        return tuple(range(ndim))
    if not isinstance(dims, (tuple, list)):
        dims = (dims,)
    found = tuple([canonical_dim(operation, ndim, dim) for dim in dims])
    if len(set(found)) != len(found):
        raise ShapeError(f"{operation}: a dimension appears multiple times in {tuple(dims)}")
    return found if ndim else ()


def spread(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return what was given as ``f(2, 3)`` or ``f((2, 3))`` as one tuple."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return tuple(values)


def shape_text(shape: Sequence[Any]) -> str:
    """Return a shape as a message shows it, without fixing symbolic dimensions."""
    return f"[{', '.join([(d.name or '?') if isinstance(d, NumberProxy) else str(d) for d in shape])}]"


def need_tensor(operation: str, value: Any, argument: str = "the argument") -> TensorProxy:
    """Return ``value`` if it is a tensor.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, TensorProxy):
        raise TypeError(f"{operation}: {argument} must be a tensor, not {type(value).__name__}")
    return value


def as_tensor(a: Any) -> TensorProxy:
    """Return what a symbol returned, where that is known to be one tensor: only its declared type changes."""
    return a  # type: ignore[no-any-return]
