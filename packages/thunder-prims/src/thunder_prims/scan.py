"""Prims that accumulate along a dimension."""

from __future__ import annotations

from thunder_ir import TensorProxy, dtypes
from thunder_prims.checks import FLOATING, NUMERIC, ORDERED, check_accepts, check_dim
from thunder_prims.prim import prim

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


def _accumulated(operation: str, a: TensorProxy, dim: int) -> TensorProxy:
    check_accepts(operation, a, NUMERIC)
    check_dim(operation, a, dim)
    return a.like()


@prim(method="cumsum")
def cumsum(a: TensorProxy, dim: int) -> TensorProxy:
    """Return at each place the sum of the elements up to it along ``dim``; integers in their own dtype."""
    return _accumulated("cumsum", a, dim)


@prim(method="cumprod")
def cumprod(a: TensorProxy, dim: int) -> TensorProxy:
    """Return at each place the product of the elements up to it along ``dim``; integers in their own dtype."""
    return _accumulated("cumprod", a, dim)


@prim(method="logcumsumexp")
def logcumsumexp(a: TensorProxy, dim: int) -> TensorProxy:
    """Return at each place the logarithm of the sum of the exponentials up to it along ``dim``, without overflow."""
    check_accepts("logcumsumexp", a, FLOATING)
    check_dim("logcumsumexp", a, dim)
    return a.like()


def _running_extremum(operation: str, a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    check_accepts(operation, a, ORDERED)
    check_dim(operation, a, dim)
    return a.like(), a.like(dtype=dtypes.int64)


@prim(method="cummax")
def cummax(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    """Return at each place the largest element up to it along ``dim``, and where it stands: the last such place."""
    return _running_extremum("cummax", a, dim)


@prim(method="cummin")
def cummin(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    """Return at each place the smallest element up to it along ``dim``, and where it stands: the last such place."""
    return _running_extremum("cummin", a, dim)
