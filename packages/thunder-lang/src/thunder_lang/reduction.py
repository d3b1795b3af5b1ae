"""Operations that reduce dimensions."""

from __future__ import annotations

import math
from typing import Any

import thunder_prims as prims
from thunder_ir import DimensionError, DType, DTypeError, OpTags, ShapeError, TensorProxy, current_builder, dtypes
from thunder_lang.dims import as_tensor, canonical_dim, canonical_dims, need_tensor
from thunder_lang.elementwise_unary import abs, isfinite
from thunder_lang.language import core
from thunder_lang.operands import convert
from thunder_lang.promotion import get_default_dtype
from thunder_lang.shape import unsqueeze
from thunder_prims.checks import count

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "mean", "norm", "prod", "std",
    "std_mean", "sum", "var", "var_mean",
]  # fmt: skip

Dims = Any  # an integer, several of them, or None for all


def _kept(reduced: TensorProxy, dims: tuple[int, ...], keepdim: bool) -> TensorProxy:
    """The result with the reduced dimensions back, of length 1."""
    return unsqueeze(reduced, dims) if keepdim and dims else reduced


def _dims(operation: str, a: TensorProxy, dim: Dims, empty_is_all: bool = True) -> tuple[int, ...]:
    """The dimensions to reduce; for most operations of PyTorch, ``()`` means all of them, as ``None`` does."""
    if empty_is_all and isinstance(dim, (tuple, list)) and not dim:
        dim = None
    return canonical_dims(operation, a.ndim, dim)


def exact_as_int64(a: TensorProxy, dtype: DType | None) -> DType:
    """The dtype of sums: the one asked for, or that of ``a``; ``int64`` of integers and booleans."""
    return dtype if dtype is not None else (dtypes.int64 if a.dtype.is_exact else a.dtype)


@core.method("sum")
def sum(a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> TensorProxy:
    """Add up the elements along dimensions.

    Args:
        a: any dtype; integers and booleans are added as ``int64`` unless ``dtype`` says otherwise.
        dim: one dimension, or several; all if not given.
        keepdim: keep the reduced dimensions, with length 1.
        dtype: of the sum.

    Raises:
        DimensionError: there is no such dimension.
        ShapeError: a dimension comes twice.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import core
        >>> print(trace_of(lambda x: x.sum(-1, keepdim=True), Tensor((2, 3)), language=core))
        def program(x: "float32[2, 3]"):
            t0 = prims.sum(x, (1,))  # float32[2]
            t1 = prims.broadcast_in_dim(t0, (2, 1), (0,))  # float32[2, 1]
            return t1

    Source:
        ``torch.sum``.
    """
    a = need_tensor("sum", a)
    if dtype is dtypes.bool8:
        return any(convert(a, dtype), dim, keepdim)
    dims = _dims("sum", a, dim)
    return _kept(as_tensor(prims.sum(convert(a, exact_as_int64(a, dtype)), dims)), dims, keepdim)


@core.method("prod")
def prod(a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> TensorProxy:
    """Multiply the elements along dimensions; integers and booleans as ``int64``."""
    a = need_tensor("prod", a)
    if dtype is dtypes.bool8:
        return all(convert(a, dtype), dim, keepdim)
    if dtype is None and a.dtype.is_floating and a.dtype.bits < 32:  # rounded once, not for each dimension
        return convert(prod(convert(a, dtypes.float32), dim, keepdim), a.dtype)  # type: ignore[no-any-return]
    dims = canonical_dims("prod", a.ndim, dim)
    return _kept(as_tensor(prims.prod(convert(a, exact_as_int64(a, dtype)), dims)), dims, keepdim)


def _extremum(symbol: Any, a: Any, dim: Dims, keepdim: bool) -> TensorProxy:
    a = need_tensor(symbol.name, a)
    dims = _dims(symbol.name, a, dim)
    for d in dims:
        if a.shape[d] == 0:
            raise DimensionError(f"{symbol.name}: expected reduction dim {d} of {a.type_string} to have non-zero size")
    return _kept(as_tensor(symbol(a, dims)), dims, keepdim)


@core.method("amax")
def amax(a: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    """The largest element along dimensions; NaN where there is one.

    Raises:
        DimensionError: a reduced dimension is empty.
    """
    return _extremum(prims.amax, a, dim, keepdim)


@core.method("amin")
def amin(a: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    """The smallest element along dimensions; NaN where there is one.

    Raises:
        DimensionError: a reduced dimension is empty.
    """
    return _extremum(prims.amin, a, dim, keepdim)


def _place(symbol: Any, a: Any, dim: int | None, keepdim: bool) -> TensorProxy:
    a = need_tensor(symbol.name, a)
    if dim is None:
        dims = tuple(range(a.ndim))
        if a.numel == 0:
            raise DimensionError(f"{symbol.name}: {a.type_string} has no elements; name a dimension that is not empty")
        return _kept(as_tensor(symbol(a, None)), dims, keepdim)
    place = canonical_dim(symbol.name, a.ndim, dim)
    if not a.shape:
        return as_tensor(symbol(a, None))
    if a.shape[place] == 0:
        raise DimensionError(f"{symbol.name}: expected reduction dim {place} of {a.type_string} to have non-zero size")
    return _kept(as_tensor(symbol(a, place)), (place,), keepdim)


@core.method("argmax")
def argmax(a: TensorProxy, dim: int | None = None, keepdim: bool = False) -> TensorProxy:
    """Where the largest element stands along a dimension, or in all elements in one."""
    return _place(prims.argmax, a, dim, keepdim)


@core.method("argmin")
def argmin(a: TensorProxy, dim: int | None = None, keepdim: bool = False) -> TensorProxy:
    """Where the smallest element stands along a dimension, or in all elements in one."""
    return _place(prims.argmin, a, dim, keepdim)


def _truth(a: TensorProxy) -> TensorProxy:
    return a if a.dtype.is_bool else as_tensor(prims.ne(a, 0))


def _as_truth(a: TensorProxy, found: TensorProxy) -> TensorProxy:
    """``uint8`` was PyTorch's dtype of truth before there was ``bool8``, and stays it in ``any`` and ``all``."""
    return convert(found, dtypes.uint8) if a.dtype is dtypes.uint8 else found


@core.method("any")
def any(a: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    """Whether an element along dimensions is not zero; of none, none is."""
    a = need_tensor("any", a)
    dims = canonical_dims("any", a.ndim, dim)
    counted = prims.sum(convert(_truth(a), dtypes.int64), dims)
    return _kept(_as_truth(a, prims.ne(counted, 0)), dims, keepdim)


@core.method("all")
def all(a: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    """Whether no element along dimensions is zero."""
    a = need_tensor("all", a)
    dims = canonical_dims("all", a.ndim, dim)
    zeros = prims.bitwise_not(a) if a.dtype.is_bool else prims.eq(a, 0)
    counted = prims.sum(convert(zeros, dtypes.int64), dims)
    return _kept(_as_truth(a, prims.eq(counted, 0)), dims, keepdim)


@core.method("count_nonzero")
def count_nonzero(a: TensorProxy, dim: Dims = None) -> TensorProxy:
    """How many elements along dimensions are not zero, as ``int64``."""
    a = need_tensor("count_nonzero", a)
    dims = canonical_dims("count_nonzero", a.ndim, dim)
    return as_tensor(prims.sum(convert(_truth(a), dtypes.int64), dims))


@core.method("mean")
def mean(a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> TensorProxy:
    """The mean along dimensions.

    Raises:
        DTypeError: ``a`` is of integers or booleans, and no ``dtype`` is given.
    """
    a = need_tensor("mean", a)
    dtype = dtype if dtype is not None else a.dtype
    if not dtype.is_inexact:
        raise DTypeError(f"mean needs a floating-point or complex dtype; got {a.type_string} and no other dtype")
    dims = _dims("mean", a, dim)
    averaged = count([a.shape[d] for d in dims])
    half = dtype.is_floating and dtype.bits < 32  # which may not hold the sum
    total = prims.sum(convert(convert(a, dtype), dtypes.float32 if half else dtype), dims)
    mean = prims.mul(total, math.nan) if averaged == 0 else prims.div(total, averaged)
    return _kept(convert(as_tensor(mean), dtype), dims, keepdim)


def _correction(unbiased: bool | None, correction: Any) -> Any:
    if correction is not None:
        return correction
    return 1 if unbiased is None or unbiased else 0


def _inexact(operation: str, a: Any) -> TensorProxy:
    a = need_tensor(operation, a)
    if not a.dtype.is_inexact:
        raise DTypeError(f"{operation} needs a floating-point or complex tensor, got {a.type_string}")
    return as_tensor(a)


@core.method("var")
def var(
    a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, correction: Any = None, unbiased: bool | None = None
) -> TensorProxy:
    """The variance along dimensions.

    Args:
        a: floating-point or complex.
        dim: one dimension, or several; all if not given.
        keepdim: keep the reduced dimensions, with length 1.
        correction: subtracted from the number of elements in the divisor; 1 if nothing is said.
        unbiased: a correction of 1 or 0.

    Raises:
        DTypeError: ``a`` is of integers or booleans.
    """
    a = _inexact("var", a)
    dims = _dims("var", a, dim)
    return _kept(as_tensor(prims.var(a, dims, _correction(unbiased, correction))), dims, keepdim)


@core.method("std")
def std(
    a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, correction: Any = None, unbiased: bool | None = None
) -> TensorProxy:
    """The standard deviation along dimensions; arguments as for :func:`var`."""
    a = _inexact("std", a)
    dims = _dims("std", a, dim)
    return _kept(as_tensor(prims.std(a, dims, _correction(unbiased, correction))), dims, keepdim)


@core.method("var_mean")
def var_mean(
    a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, correction: Any = None, unbiased: bool | None = None
) -> tuple[TensorProxy, TensorProxy]:
    """The variance and the mean along dimensions; arguments as for :func:`var`."""
    a = _inexact("var_mean", a)
    dims = _dims("var_mean", a, dim)
    variance, average = prims.var_mean(a, dims, _correction(unbiased, correction))
    return _kept(variance, dims, keepdim), _kept(average, dims, keepdim)


@core.method("std_mean")
def std_mean(
    a: TensorProxy, dim: Dims = None, keepdim: bool = False, *, correction: Any = None, unbiased: bool | None = None
) -> tuple[TensorProxy, TensorProxy]:
    """The standard deviation and the mean along dimensions; arguments as for :func:`var`."""
    if isinstance(a, TensorProxy) and a.dtype.is_floating and a.dtype.bits < 32:  # which may not hold the variance
        deviation, average = std_mean(
            convert(a, dtypes.float32), dim, keepdim, correction=correction, unbiased=unbiased
        )
        return convert(deviation, a.dtype), convert(average, a.dtype)
    variance, average = var_mean(a, dim, keepdim, correction=correction, unbiased=unbiased)
    return _root(variance, 2), average


@core.method("logsumexp")
def logsumexp(a: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    """``log(sum(exp(a)))`` along dimensions, without overflow on the way; of integers, in the default dtype."""
    a = need_tensor("logsumexp", a)
    a = a if a.dtype.is_inexact else convert(a, get_default_dtype())
    dims = _dims("logsumexp", a, dim)
    if a.numel == 0:
        return _kept(as_tensor(prims.log(prims.sum(prims.exp(a), dims))), dims, keepdim)
    real = as_tensor(prims.real(a)) if a.dtype.is_complex else a
    with current_builder().tagged(OpTags.CONSTANT_FOR_DERIVATIVE):  # the result does not depend on what is subtracted
        largest = as_tensor(prims.amax(real, dims))
        largest = as_tensor(prims.where(isfinite(largest), largest, 0.0))
    wide = prims.broadcast_in_dim(largest, a.shape, tuple([d for d in range(a.ndim) if d not in dims]))
    total = prims.log(prims.sum(prims.exp(prims.sub(a, convert(wide, a.dtype))), dims))
    return _kept(as_tensor(prims.add(total, convert(largest, a.dtype))), dims, keepdim)


@core.method("norm")
def norm(a: TensorProxy, ord: float = 2.0, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    """The vector norm of an order along dimensions.

    Args:
        a: any dtype; integers in the default floating-point dtype.
        ord: a number; ``inf`` and ``-inf`` give the largest and smallest absolute value, 0 counts what is not zero.
        dim: one dimension, or several; all if not given.
        keepdim: keep the reduced dimensions, with length 1.

    Raises:
        ShapeError: a dimension is empty and an empty vector has no such norm.

    Source:
        ``torch.linalg.vector_norm``.
    """
    a = need_tensor("norm", a)
    a = a if a.dtype.is_inexact else convert(a, get_default_dtype())
    dims = _dims("norm", a, dim)
    size = abs(a)
    if math.isinf(ord):
        if count([a.shape[d] for d in dims]) == 0:
            raise ShapeError(f"norm of order {ord} of {a.type_string} along {dims}: an empty vector has none")
        return _kept(as_tensor((prims.amax if ord > 0 else prims.amin)(size, dims)), dims, keepdim)
    if ord == 0:
        counted = prims.sum(convert(prims.ne(size, 0), size.dtype), dims)
        return _kept(as_tensor(counted), dims, keepdim)
    if ord == 1:
        return _kept(as_tensor(prims.sum(size, dims)), dims, keepdim)
    if ord == 2:
        return _kept(_root(prims.sum(prims.mul(size, size), dims), 2), dims, keepdim)
    return _kept(_root(prims.sum(_power(size, ord), dims), ord), dims, keepdim)


def _power(size: TensorProxy, ord: float) -> TensorProxy:
    """The power of sizes, with derivative 0 where the size is 0 and that of the power is infinite."""
    if ord >= 1:
        return as_tensor(prims.pow(size, ord))
    zero = prims.eq(size, 0)
    power = prims.pow(prims.where(zero, 1.0, size), ord)
    return as_tensor(prims.where(zero, 0.0 if ord > 0 else math.inf, power))


def _root(total: TensorProxy, ord: float) -> TensorProxy:
    """The root of a sum of powers, with derivative 0 where the sum is 0 and that of the root is infinite."""
    if ord <= 1:
        return as_tensor(prims.pow(total, 1.0 / ord))
    zero = prims.eq(total, 0)
    positive = prims.where(zero, 1.0, total)
    root = prims.sqrt(positive) if ord == 2 else prims.pow(positive, 1.0 / ord)
    return as_tensor(prims.where(zero, 0.0, root))
