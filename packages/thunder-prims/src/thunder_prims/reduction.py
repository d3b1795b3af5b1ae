"""Prims that reduce dimensions: sums, products, extrema and their places, variances."""

from __future__ import annotations

from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_prims.checks import INEXACT, NUMERIC, ORDERED, check_accepts, check_dim, check_dims
from thunder_prims.operands import without
from thunder_prims.prim import prim

__all__ = ["amax", "amin", "argmax", "argmin", "prod", "std", "sum", "var", "var_mean"]


@prim(OpTags.REDUCTION, method="sum")
def sum(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Add up the elements along ``dims``.

    Args:
        a: any dtype but ``bool8``; integers are added in their own dtype.
        dims: different dimensions of ``a``; none gives ``a``'s values.

    Returns:
        The shape of ``a`` without ``dims``, dtype of ``a``.

    Raises:
        DTypeError: ``a`` is ``bool8``, in which sums do not fit.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import sum
        >>> def program(x):
        ...     return sum(x, (0, 2))
        >>> print(trace_of(program, Tensor((2, 3, 4))))
        def program(x: "float32[2, 3, 4]"):
            t0 = prims.sum(x, (0, 2))  # float32[3]
            return t0

    Source:
        ``torch.sum``, without its promotion of integers.
    """
    check_accepts("sum", a, NUMERIC)
    check_dims("sum", a, dims)
    return a.like(shape=without(a.shape, dims))


@prim(OpTags.REDUCTION, method="prod")
def prod(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Multiply the elements along ``dims``; integers in their own dtype."""
    check_accepts("prod", a, NUMERIC)
    check_dims("prod", a, dims)
    return a.like(shape=without(a.shape, dims))


def _extremum(operation: str, a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    check_accepts(operation, a, ORDERED)
    check_dims(operation, a, dims)
    for dim in dims:
        if a.shape[dim] == 0:
            raise ShapeError(f"{operation} of {a.type_string} along dimension {dim}, which is empty, has no value")
    return a.like(shape=without(a.shape, dims))


@prim(OpTags.REDUCTION, method="amax")
def amax(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Return the largest element along ``dims``; NaN where there is one.

    Raises:
        ShapeError: one of ``dims`` is empty.
        DTypeError: ``a`` is complex.
    """
    return _extremum("amax", a, dims)


@prim(OpTags.REDUCTION, method="amin")
def amin(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Return the smallest element along ``dims``; NaN where there is one.

    Raises:
        ShapeError: one of ``dims`` is empty.
        DTypeError: ``a`` is complex.
    """
    return _extremum("amin", a, dims)


def _place_of_extremum(operation: str, a: TensorProxy, dim: int | None) -> TensorProxy:
    check_accepts(operation, a, ORDERED)
    if dim is None:
        if a.numel == 0:
            raise ShapeError(f"{operation} of {a.type_string}, which is empty, has no value")
        return a.like(shape=(), dtype=dtypes.int64)
    check_dim(operation, a, dim)
    if a.shape[dim] == 0:
        raise ShapeError(f"{operation} of {a.type_string} along dimension {dim}, which is empty, has no value")
    return a.like(shape=without(a.shape, (dim,)), dtype=dtypes.int64)


@prim(OpTags.REDUCTION, OpTags.CONSTANT_FOR_DERIVATIVE, method="argmax")
def argmax(a: TensorProxy, dim: int | None) -> TensorProxy:
    """Return where the largest element along ``dim`` stands, or in the flattened tensor if ``dim`` is ``None``.

    Returns:
        ``int64``; the shape of ``a`` without ``dim``, or ``()``.
    """
    return _place_of_extremum("argmax", a, dim)


@prim(OpTags.REDUCTION, OpTags.CONSTANT_FOR_DERIVATIVE, method="argmin")
def argmin(a: TensorProxy, dim: int | None) -> TensorProxy:
    """Return where the smallest element along ``dim`` stands, or in the flattened tensor if ``dim`` is ``None``.

    Returns:
        ``int64``; the shape of ``a`` without ``dim``, or ``()``.
    """
    return _place_of_extremum("argmin", a, dim)


def _spread(operation: str, a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    check_accepts(operation, a, INEXACT)
    check_dims(operation, a, dims)
    return a.like(shape=without(a.shape, dims), dtype=dtypes.float_of(a.dtype))


@prim(OpTags.REDUCTION, method="var")
def var(a: TensorProxy, dims: tuple[int, ...], correction: float) -> TensorProxy:
    """Return the variance along ``dims``.

    Args:
        a: floating-point or complex.
        dims: different dimensions of ``a``.
        correction: subtracted from the number of elements in the divisor; 1 gives the unbiased estimate.

    Returns:
        The shape of ``a`` without ``dims``; real even for complex ``a``.
    """
    return _spread("var", a, dims)


@prim(OpTags.REDUCTION, method="std")
def std(a: TensorProxy, dims: tuple[int, ...], correction: float) -> TensorProxy:
    """Return the standard deviation along ``dims``; arguments as for ``var``."""
    return _spread("std", a, dims)


@prim(OpTags.REDUCTION, method="var_mean")
def var_mean(a: TensorProxy, dims: tuple[int, ...], correction: float) -> tuple[TensorProxy, TensorProxy]:
    """Return the variance and the mean along ``dims``, in one go; arguments as for ``var``."""
    return _spread("var_mean", a, dims), a.like(shape=without(a.shape, dims))
