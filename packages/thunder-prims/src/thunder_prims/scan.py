"""Prims that accumulate along a dimension."""

from __future__ import annotations

from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import Symbol, TensorProxy, dtypes
from thunder_prims.axes import conjugate, filled, shifted
from thunder_prims.checks import FLOATING, NUMERIC, ORDERED, check_accepts, check_dim
from thunder_prims.comparison import isfinite
from thunder_prims.conditional import where
from thunder_prims.derivatives import linear
from thunder_prims.elementwise_unary import exp
from thunder_prims.gathering import gather, scatter_add
from thunder_prims.prim import prim
from thunder_prims.shape import flip, pad
from thunder_vmap import batching_rule

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


def _accumulated(operation: str, a: TensorProxy, dim: int) -> TensorProxy:
    check_accepts(operation, a, NUMERIC)
    check_dim(operation, a, dim)
    return a.like()


@prim()
def cumsum(a: TensorProxy, dim: int) -> TensorProxy:
    """Return at each place the sum of the elements up to it along ``dim``; integers in their own dtype."""
    return _accumulated("cumsum", a, dim)


@vjp_rule(cumsum)
def cumsum_vjp(a: TensorProxy, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da_i = sum_{k >= i} dy_k``: the cumulative sum from the other end."""
    return cumsum(a, dim), lambda dy: flip(cumsum(flip(dy, (dim,)), dim), (dim,))


linear(cumsum)


def _delayed(a: Any, dim: int, by: int, value: float) -> Any:
    """Move the elements ``by`` places on along ``dim``, with ``value`` coming in; back if ``by`` is negative."""
    return pad(a, value, tuple([(by, -by, 0) if i == dim else (0, 0, 0) for i in range(a.ndim)]))


def _recurrence(b: Any, m: Any, dim: int, direction: int) -> Any:
    """Return ``s`` with ``s_i = b_i + m_i * s_{i - direction}`` along ``dim``.

    It takes two products and a sum for each doubling of the reach, and no quotient that a zero would spoil.
    """
    reach = 1
    while reach < b.shape[dim]:
        b = b + m * _delayed(b, dim, direction * reach, 0)
        if 2 * reach < b.shape[dim]:
            m = m * _delayed(m, dim, direction * reach, 0)
        reach = 2 * reach
    return b


@prim()
def cumprod(a: TensorProxy, dim: int) -> TensorProxy:
    """Return at each place the product of the elements up to it along ``dim``; integers in their own dtype."""
    return _accumulated("cumprod", a, dim)


@vjp_rule(cumprod)
def cumprod_vjp(a: TensorProxy, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da_i = y_{i-1} s_i`` with ``s_i = dy_i + a_{i+1} s_{i+1}``: right where some elements are zero, too."""
    y = cumprod(a, dim)

    def pullback(dy: TensorProxy) -> Any:
        s = _recurrence(dy, conjugate(_delayed(a, dim, -1, 0)), dim, -1)
        return s * conjugate(_delayed(y, dim, 1, 1))

    return y, pullback


@jvp_rule(cumprod)
def cumprod_jvp(a: TensorProxy, dim: int, da: TensorProxy, _: None) -> tuple[TensorProxy, Any]:
    """``dy_i = y_{i-1} da_i + a_i dy_{i-1}``."""
    y = cumprod(a, dim)
    return y, _recurrence(_delayed(y, dim, 1, 1) * da, a, dim, 1)


@prim()
def logcumsumexp(a: TensorProxy, dim: int) -> TensorProxy:
    """Return at each place the logarithm of the sum of the exponentials up to it along ``dim``, without overflow."""
    check_accepts("logcumsumexp", a, FLOATING)
    check_dim("logcumsumexp", a, dim)
    return a.like()


def _log_ratios(a: Any, y: Any, dim: int) -> tuple[Any, Any]:
    """Return ``exp(a_i - y_i)`` and ``exp(y_{i-1} - y_i)``, neither above 1; 0 where nothing has been added yet."""
    finite = where(isfinite(y), y, 0)
    return exp(a - finite), exp(_delayed(y, dim, 1, float("-inf")) - finite)


@vjp_rule(logcumsumexp)
def logcumsumexp_vjp(a: TensorProxy, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da_i = exp(a_i - y_i) s_i`` with ``s_i = dy_i + exp(y_i - y_{i+1}) s_{i+1}``, in which nothing overflows."""
    y = logcumsumexp(a, dim)

    def pullback(dy: TensorProxy) -> Any:
        share, carried = _log_ratios(a, y, dim)
        return share * _recurrence(dy, _delayed(carried, dim, -1, 0), dim, -1)

    return y, pullback


@jvp_rule(logcumsumexp)
def logcumsumexp_jvp(a: TensorProxy, dim: int, da: TensorProxy, _: None) -> tuple[TensorProxy, Any]:
    """``dy_i = exp(a_i - y_i) da_i + exp(y_{i-1} - y_i) dy_{i-1}``."""
    y = logcumsumexp(a, dim)
    share, carried = _log_ratios(a, y, dim)
    return y, _recurrence(share * da, carried, dim, 1)


def _running_extremum(operation: str, a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    check_accepts(operation, a, ORDERED)
    check_dim(operation, a, dim)
    return a.like(), a.like(dtype=dtypes.int64)


@prim()
def cummax(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    """Return at each place the largest element up to it along ``dim``, and where it stands: the last such place."""
    return _running_extremum("cummax", a, dim)


@prim()
def cummin(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    """Return at each place the smallest element up to it along ``dim``, and where it stands: the last such place."""
    return _running_extremum("cummin", a, dim)


@vjp_rule(cummax)
def cummax_vjp(a: TensorProxy, dim: int) -> tuple[Any, Pullback]:
    """Each of ``dy`` to where its value stood."""
    y, indices = cummax(a, dim)
    return (y, indices), lambda dy, _: scatter_add(filled(dy, 0), indices, dy, dim)


@vjp_rule(cummin)
def cummin_vjp(a: TensorProxy, dim: int) -> tuple[Any, Pullback]:
    """Each of ``dy`` to where its value stood."""
    y, indices = cummin(a, dim)
    return (y, indices), lambda dy, _: scatter_add(filled(dy, 0), indices, dy, dim)


@jvp_rule(cummax)
def cummax_jvp(a: TensorProxy, dim: int, da: TensorProxy, _: None) -> tuple[Any, Any]:
    """``da`` from where each value stood."""
    y, indices = cummax(a, dim)
    return (y, indices), (gather(da, indices, dim), None)


@jvp_rule(cummin)
def cummin_jvp(a: TensorProxy, dim: int, da: TensorProxy, _: None) -> tuple[Any, Any]:
    """``da`` from where each value stood."""
    y, indices = cummin(a, dim)
    return (y, indices), (gather(da, indices, dim), None)


def batches_along(*symbols: Symbol) -> None:
    """Give operations ``f(a, dim, ...)`` along one dimension their batching rule: the batch stays in place."""

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            a, dim, *rest = args
            batch = dims[0]
            output = symbol(a, shifted(dim, batch), *rest)
            return output, (batch,) * len(output) if isinstance(output, tuple) else batch

    for symbol in symbols:
        register(symbol)


batches_along(cumsum, cumprod, logcumsumexp, cummax, cummin)
