"""Prims that reduce dimensions: sums, products, extrema and their places, variances."""

from __future__ import annotations

import math
from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, Symbol, TensorProxy, dtypes, is_unknown
from thunder_prims.axes import conjugate, of_dtype, restored, shifted, shifted_dims
from thunder_prims.checks import INEXACT, NUMERIC, ORDERED, check_accepts, check_dim, check_dims
from thunder_prims.comparison import eq
from thunder_prims.conditional import where
from thunder_prims.conversion import convert_element_type
from thunder_prims.derivatives import linear
from thunder_prims.elementwise_unary import sqrt
from thunder_prims.operands import without
from thunder_prims.prim import prim
from thunder_prims.scan import cumprod
from thunder_prims.shape import batch_first, flip, pad, reshape, transpose
from thunder_vmap import batching_rule

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


@vjp_rule(sum)
def sum_vjp(a: TensorProxy, dims: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
    """``da = dy``, repeated along ``dims``."""
    return sum(a, dims), lambda dy: restored(dy, a.shape, dims)


linear(sum)


@prim(OpTags.REDUCTION)
def prod(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Multiply the elements along ``dims``; integers in their own dtype."""
    check_accepts("prod", a, NUMERIC)
    check_dims("prod", a, dims)
    return a.like(shape=without(a.shape, dims))


def _products_of_others(a: Any, dims: tuple[int, ...]) -> Any:
    """For each element, the product of the others along ``dims``: right where some are zero, too."""
    if len(dims) != 1:
        order = (*[i for i in range(a.ndim) if i not in dims], *dims)
        last = transpose(a, order)
        flat = reshape(last, (*last.shape[: a.ndim - len(dims)], math.prod(last.shape[a.ndim - len(dims) :])))
        others = reshape(_products_of_others(flat, (flat.ndim - 1,)), last.shape)
        return transpose(others, tuple([order.index(i) for i in range(a.ndim)]))
    config = tuple([(1, -1, 0) if i in dims else (0, 0, 0) for i in range(a.ndim)])
    before = cumprod(pad(a, 1, config), dims[0])
    behind = flip(cumprod(pad(flip(a, dims), 1, config), dims[0]), dims)
    return before * behind


@vjp_rule(prod)
def prod_vjp(a: TensorProxy, dims: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
    """``da_i = dy * prod_{j != i} a_j``, the products being cumulative ones from both ends."""
    y = prod(a, dims)
    if not dims or a.numel == 0:
        return y, lambda dy: restored(dy, a.shape, dims)
    return y, lambda dy: restored(dy, a.shape, dims) * conjugate(_products_of_others(a, dims))


@jvp_rule(prod)
def prod_jvp(a: TensorProxy, dims: tuple[int, ...], da: TensorProxy, _: None) -> tuple[TensorProxy, Any]:
    """``dy = sum_i da_i * prod_{j != i} a_j``."""
    y = prod(a, dims)
    if not dims or a.numel == 0:
        return y, sum(da, dims)
    return y, sum(da * _products_of_others(a, dims), dims)


def _extremum(operation: str, a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    check_accepts(operation, a, ORDERED)
    check_dims(operation, a, dims)
    for dim in dims:
        if a.shape[dim] == 0:
            raise ShapeError(f"{operation} of {a.type_string} along dimension {dim}, which is empty, has no value")
    return a.like(shape=without(a.shape, dims))


@prim(OpTags.REDUCTION)
def amax(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Return the largest element along ``dims``; NaN where there is one.

    Raises:
        ShapeError: one of ``dims`` is empty.
        DTypeError: ``a`` is complex.
    """
    return _extremum("amax", a, dims)


@prim(OpTags.REDUCTION)
def amin(a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    """Return the smallest element along ``dims``; NaN where there is one.

    Raises:
        ShapeError: one of ``dims`` is empty.
        DTypeError: ``a`` is complex.
    """
    return _extremum("amin", a, dims)


def _extremum_rules(symbol: Symbol) -> None:
    """Give the largest or smallest element its rules: the elements that are share ``dy``, and ``dy`` is their mean."""

    @vjp_rule(symbol)
    def vjp(a: TensorProxy, dims: tuple[int, ...]) -> tuple[TensorProxy, Pullback]:
        y = symbol(a, dims)
        return y, lambda dy: _shared(dy, a, y, dims)

    @jvp_rule(symbol)
    def jvp(a: TensorProxy, dims: tuple[int, ...], da: TensorProxy, _: None) -> tuple[TensorProxy, Any]:
        y = symbol(a, dims)
        return y, _mean_where_equal(da, a, y, dims)


def _shared(dy: Any, a: TensorProxy, y: TensorProxy, dims: tuple[int, ...]) -> Any:
    chosen = convert_element_type(eq(a, restored(y, a.shape, dims)), a.dtype)
    return restored(dy / sum(chosen, dims), a.shape, dims) * chosen  # NaN where ``y`` is: nothing was chosen


def _mean_where_equal(da: TensorProxy, a: TensorProxy, y: TensorProxy, dims: tuple[int, ...]) -> Any:
    chosen = eq(a, restored(y, a.shape, dims))
    return sum(where(chosen, da, 0), dims) / sum(convert_element_type(chosen, a.dtype), dims)


_extremum_rules(amax)
_extremum_rules(amin)


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


@prim(OpTags.REDUCTION, OpTags.CONSTANT_FOR_DERIVATIVE)
def argmax(a: TensorProxy, dim: int | None) -> TensorProxy:
    """Return where the largest element along ``dim`` stands, or in the flattened tensor if ``dim`` is ``None``.

    Returns:
        ``int64``; the shape of ``a`` without ``dim``, or ``()``.
    """
    return _place_of_extremum("argmax", a, dim)


@prim(OpTags.REDUCTION, OpTags.CONSTANT_FOR_DERIVATIVE)
def argmin(a: TensorProxy, dim: int | None) -> TensorProxy:
    """Return where the smallest element along ``dim`` stands, or in the flattened tensor if ``dim`` is ``None``.

    Returns:
        ``int64``; the shape of ``a`` without ``dim``, or ``()``.
    """
    return _place_of_extremum("argmin", a, dim)


def _batches_place(symbol: Symbol) -> None:
    """Give the place of an extremum its batching rule: along the dimension, or what each example has flattened."""

    @batching_rule(symbol)
    def rule(size: Any, args: Any, dims: Any) -> tuple[Any, int]:
        (a, dim), (batch, _) = args, dims
        if dim is None:
            a = batch_first(a, batch, size)
            return symbol(reshape(a, (size, math.prod(a.shape[1:]))), 1), 0
        along = shifted(dim, batch)
        return symbol(a, along), batch - (along < batch)


_batches_place(argmax)
_batches_place(argmin)


def _spread(operation: str, a: TensorProxy, dims: tuple[int, ...]) -> TensorProxy:
    check_accepts(operation, a, INEXACT)
    check_dims(operation, a, dims)
    return a.like(shape=without(a.shape, dims), dtype=dtypes.float_of(a.dtype))


@prim(OpTags.REDUCTION)
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


@prim(OpTags.REDUCTION)
def std(a: TensorProxy, dims: tuple[int, ...], correction: float) -> TensorProxy:
    """Return the standard deviation along ``dims``; arguments as for ``var``."""
    return _spread("std", a, dims)


@prim(OpTags.REDUCTION)
def var_mean(a: TensorProxy, dims: tuple[int, ...], correction: float) -> tuple[TensorProxy, TensorProxy]:
    """Return the variance and the mean along ``dims``, in one go; arguments as for ``var``."""
    return _spread("var_mean", a, dims), a.like(shape=without(a.shape, dims))


def _freedom(a: TensorProxy, dims: tuple[int, ...], correction: float) -> Any:
    """Return the divisor of the squared deviations."""
    return math.prod([a.shape[d] for d in dims]) - correction


def _over(a: Any, factor: float, divisor: Any) -> Any:
    """Return ``a * (factor / divisor)``, infinite where the divisor is 0."""
    if is_unknown(divisor):
        return (a * factor) / divisor
    return a * (factor / divisor if divisor else math.inf)


def _wide(a: Any) -> Any:
    return of_dtype(a, dtypes.float32) if a is not None and a.dtype.bits < 32 else a


def _deviations(a: Any, mean: Any, dims: tuple[int, ...]) -> Any:
    return a - restored(mean, a.shape, dims)


@vjp_rule(var_mean)
def var_mean_vjp(a: TensorProxy, dims: tuple[int, ...], correction: float) -> tuple[Any, Pullback]:
    """``da = dvar * 2 (a - mean) / (n - correction) + dmean / n``; half precisions are computed with in float32."""
    if a.dtype.bits < 32:
        pair, pull = var_mean_vjp(_wide(a), dims, correction)
        return tuple([of_dtype(y, a.dtype) for y in pair]), lambda *dy: of_dtype(pull(*map(_wide, dy)), a.dtype)
    variance, mean = var_mean(a, dims, correction)

    def pullback(dvariance: Any, dmean: Any) -> Any:
        da = None
        if dvariance is not None:
            factor = of_dtype(_over(dvariance, 2.0, _freedom(a, dims, correction)), a.dtype)
            da = restored(factor, a.shape, dims) * _deviations(a, mean, dims)
        if dmean is not None:
            part = restored(_over(dmean, 1.0, math.prod([a.shape[d] for d in dims])), a.shape, dims)
            da = part if da is None else da + part
        return da

    return (variance, mean), pullback


@vjp_rule(var)
def var_vjp(a: TensorProxy, dims: tuple[int, ...], correction: float) -> tuple[Any, Pullback]:
    """``da = dy * 2 (a - mean) / (n - correction)``; the mean comes with the variance and is kept."""
    (y, _), pullback = var_mean_vjp(a, dims, correction)
    return y, lambda dy: pullback(dy, None)


@vjp_rule(std)
def std_vjp(a: TensorProxy, dims: tuple[int, ...], correction: float) -> tuple[Any, Pullback]:
    """``da = dy * (a - mean) / ((n - correction) y)``, and 0 where ``y`` is 0."""
    if a.dtype.bits < 32:  # the variance may be beyond what a half precision holds where its root is not
        y, pull = std_vjp(_wide(a), dims, correction)
        return of_dtype(y, a.dtype), lambda dy: of_dtype(pull(_wide(dy)), a.dtype)
    (variance, _), pullback = var_mean_vjp(a, dims, correction)

    def through_root(dy: Any) -> Any:
        zero = eq(variance, 0)
        root = sqrt(where(zero, 1, variance))  # that of 0 has an infinite slope, for the second derivative to meet
        return pullback(where(zero, 0, dy / (2 * root)), None)

    return sqrt(variance), through_root


@jvp_rule(var_mean)
def var_mean_jvp(a: Any, dims: Any, correction: float, da: Any, *_: None) -> tuple[Any, Any]:
    """``dvar = 2 / (n - correction) * sum((a - mean) * da)`` and ``dmean = sum(da) / n``."""
    variance, mean = var_mean(a, dims, correction)
    products = da * conjugate(_deviations(a, mean, dims))
    dvariance = _over(of_dtype(sum(products, dims), variance.dtype), 2.0, _freedom(a, dims, correction))
    return (variance, mean), (dvariance, _over(sum(da, dims), 1.0, math.prod([a.shape[d] for d in dims])))


@jvp_rule(var)
def var_jvp(a: Any, dims: Any, correction: float, da: Any, *_: None) -> tuple[Any, Any]:
    """``dy = 2 / (n - correction) * sum((a - mean) * da)``."""
    (y, _mean), (dy, _dmean) = var_mean_jvp(a, dims, correction, da)
    return y, dy


@jvp_rule(std)
def std_jvp(a: Any, dims: Any, correction: float, da: Any, *_: None) -> tuple[Any, Any]:
    """``dy = dvar / (2 y)``, and 0 where ``y`` is 0."""
    if a.dtype.bits < 32:
        return tuple([of_dtype(y, a.dtype) for y in std_jvp(_wide(a), dims, correction, _wide(da))])
    (variance, _mean), (dvariance, _dmean) = var_mean_jvp(a, dims, correction, da)
    y = sqrt(variance)
    return y, where(eq(y, 0), 0, dvariance / (2 * y))


def _batches_reduction(*symbols: Symbol) -> None:
    """Give reductions their batching rule: the batch dimension stays where it is among those that remain."""

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            a, over, *rest = args
            batch = dims[0]
            output = symbol(a, shifted_dims(over, batch), *rest)
            place = batch - len([d for d in over if d < batch])
            return output, (place,) * len(output) if isinstance(output, tuple) else place

    for symbol in symbols:
        register(symbol)


_batches_reduction(sum, prod, amax, amin, var, std, var_mean)
