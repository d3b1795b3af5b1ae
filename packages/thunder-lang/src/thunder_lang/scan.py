"""Running sums, products and extrema."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import DType, TensorProxy
from thunder_lang.dims import canonical_dim, need_tensor
from thunder_lang.language import core
from thunder_lang.operands import convert
from thunder_lang.promotion import get_default_dtype
from thunder_lang.reduction import exact_as_int64
from thunder_lang.shape import reshape

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


def _running(symbol: Any, a: Any, dim: int, dtype: DType) -> Any:
    """Call a scan in ``dtype``; a tensor without dimensions counts as one of a single element."""
    dim = canonical_dim(symbol.name, a.ndim, dim)
    a = convert(a, dtype)
    if a.shape:
        return symbol(a, dim)
    found = symbol(reshape(a, (1,)), 0)
    return tuple([reshape(f, ()) for f in found]) if isinstance(found, tuple) else reshape(found, ())


@core.method("cumsum")
def cumsum(a: TensorProxy, dim: int, *, dtype: DType | None = None) -> TensorProxy:
    """The sums of the elements up to each place; integers and booleans as ``int64``."""
    a = need_tensor("cumsum", a)
    return _running(prims.cumsum, a, dim, exact_as_int64(a, dtype))  # type: ignore[no-any-return]


@core.method("cumprod")
def cumprod(a: TensorProxy, dim: int, *, dtype: DType | None = None) -> TensorProxy:
    """The products of the elements up to each place; integers and booleans as ``int64``."""
    a = need_tensor("cumprod", a)
    return _running(prims.cumprod, a, dim, exact_as_int64(a, dtype))  # type: ignore[no-any-return]


@core.method("logcumsumexp")
def logcumsumexp(a: TensorProxy, dim: int) -> TensorProxy:
    """The logarithms of the sums of the exponentials up to each place."""
    a = need_tensor("logcumsumexp", a)
    return _running(prims.logcumsumexp, a, dim, a.dtype if a.dtype.is_inexact else get_default_dtype())  # type: ignore[no-any-return]


@core.method("cummax")
def cummax(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    """The largest elements up to each place, and where they stand."""
    a = need_tensor("cummax", a)
    return _running(prims.cummax, a, dim, a.dtype)  # type: ignore[no-any-return]


@core.method("cummin")
def cummin(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    """The smallest elements up to each place, and where they stand."""
    a = need_tensor("cummin", a)
    return _running(prims.cummin, a, dim, a.dtype)  # type: ignore[no-any-return]
