"""Special functions, elementwise."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import Symbol, TensorProxy
from thunder_lang.dims import need_tensor
from thunder_lang.language import core
from thunder_lang.operands import convert, elementwise
from thunder_lang.promotion import Promotion, get_default_dtype

__all__ = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "i0",
    "i0e", "i1", "i1e", "igamma", "igammac", "lgamma", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtr",
    "ndtri", "polygamma", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip


def _of_one(symbol: Symbol, a: Any) -> TensorProxy:
    need_tensor(symbol.name, a)
    return elementwise(symbol, a, promotion=Promotion.FLOAT)  # type: ignore[no-any-return]


def _of_two(symbol: Symbol, a: Any, b: Any) -> TensorProxy:
    return elementwise(symbol, a, b, promotion=Promotion.FLOAT)  # type: ignore[no-any-return]


@core.method("bessel_j0")
def bessel_j0(a: TensorProxy) -> TensorProxy:
    """Bessel function of the first kind of order 0; integers as default floats."""
    return _of_one(prims.bessel_j0, a)


@core.method("bessel_j1")
def bessel_j1(a: TensorProxy) -> TensorProxy:
    """Bessel function of the first kind of order 1; integers as default floats."""
    return _of_one(prims.bessel_j1, a)


@core.method("bessel_y0")
def bessel_y0(a: TensorProxy) -> TensorProxy:
    """Bessel function of the second kind of order 0; integers as default floats."""
    return _of_one(prims.bessel_y0, a)


@core.method("bessel_y1")
def bessel_y1(a: TensorProxy) -> TensorProxy:
    """Bessel function of the second kind of order 1; integers as default floats."""
    return _of_one(prims.bessel_y1, a)


@core.method("digamma")
def digamma(a: TensorProxy) -> TensorProxy:
    """Logarithmic derivative of the gamma function; integers as default floats."""
    return _of_one(prims.digamma, a)


@core.method("erf")
def erf(a: TensorProxy) -> TensorProxy:
    """Error function; integers as default floats."""
    return _of_one(prims.erf, a)


@core.method("erfc")
def erfc(a: TensorProxy) -> TensorProxy:
    """Complementary error function; integers as default floats."""
    return _of_one(prims.erfc, a)


@core.method("erfcinv")
def erfcinv(a: TensorProxy) -> TensorProxy:
    """Inverse of the complementary error function; integers as default floats."""
    return _of_one(prims.erfcinv, a)


@core.method("erfcx")
def erfcx(a: TensorProxy) -> TensorProxy:
    """Complementary error function times ``exp(a**2)``; integers as default floats."""
    return _of_one(prims.erfcx, a)


@core.method("erfinv")
def erfinv(a: TensorProxy) -> TensorProxy:
    """Inverse of the error function; integers as default floats."""
    return _of_one(prims.erfinv, a)


@core.method("i0")
def i0(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the first kind of order 0; integers as default floats."""
    return _of_one(prims.i0, a)


@core.method("i0e")
def i0e(a: TensorProxy) -> TensorProxy:
    """``i0`` times ``exp(-abs(a))``; integers as default floats."""
    return _of_one(prims.i0e, a)


@core.method("i1")
def i1(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the first kind of order 1; integers as default floats."""
    return _of_one(prims.i1, a)


@core.method("i1e")
def i1e(a: TensorProxy) -> TensorProxy:
    """``i1`` times ``exp(-abs(a))``; integers as default floats."""
    return _of_one(prims.i1e, a)


@core.method("lgamma")
def lgamma(a: TensorProxy) -> TensorProxy:
    """Logarithm of the absolute value of the gamma function; integers as default floats."""
    return _of_one(prims.lgamma, a)


@core.method("log_ndtr")
def log_ndtr(a: TensorProxy) -> TensorProxy:
    """Logarithm of the distribution function of the normal distribution; integers as default floats."""
    return _of_one(prims.log_ndtr, a)


@core.method("modified_bessel_k0")
def modified_bessel_k0(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the second kind of order 0; integers as default floats."""
    return _of_one(prims.modified_bessel_k0, a)


@core.method("modified_bessel_k1")
def modified_bessel_k1(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the second kind of order 1; integers as default floats."""
    return _of_one(prims.modified_bessel_k1, a)


@core.method("ndtri")
def ndtri(a: TensorProxy) -> TensorProxy:
    """Inverse of the distribution function of the normal distribution; integers as default floats."""
    return _of_one(prims.ndtri, a)


@core.method("scaled_modified_bessel_k0")
def scaled_modified_bessel_k0(a: TensorProxy) -> TensorProxy:
    """``modified_bessel_k0`` times ``exp(a)``; integers as default floats."""
    return _of_one(prims.scaled_modified_bessel_k0, a)


@core.method("scaled_modified_bessel_k1")
def scaled_modified_bessel_k1(a: TensorProxy) -> TensorProxy:
    """``modified_bessel_k1`` times ``exp(a)``; integers as default floats."""
    return _of_one(prims.scaled_modified_bessel_k1, a)


@core.method("spherical_bessel_j0")
def spherical_bessel_j0(a: TensorProxy) -> TensorProxy:
    """Spherical Bessel function of the first kind of order 0; integers as default floats."""
    return _of_one(prims.spherical_bessel_j0, a)


@core.method("igamma")
def igamma(a: Any, b: Any) -> TensorProxy:
    """Regularised lower incomplete gamma function of order ``a`` at ``b``; integers as default floats."""
    return _of_two(prims.igamma, a, b)


@core.method("igammac")
def igammac(a: Any, b: Any) -> TensorProxy:
    """Regularised upper incomplete gamma function of order ``a`` at ``b``; integers as default floats."""
    return _of_two(prims.igammac, a, b)


@core.method("xlog1py")
def xlog1py(a: Any, b: Any) -> TensorProxy:
    """``a * log1p(b)``, zero where ``a`` is; integers as default floats."""
    return _of_two(prims.xlog1py, a, b)


@core.method("xlogy")
def xlogy(a: Any, b: Any) -> TensorProxy:
    """``a * log(b)``, zero where ``a`` is; integers as default floats."""
    return _of_two(prims.xlogy, a, b)


@core.method("zeta")
def zeta(a: Any, b: Any) -> TensorProxy:
    """Hurwitz zeta function of ``a`` at ``b``; integers as default floats."""
    return _of_two(prims.zeta, a, b)


@core.method("ndtr")
def ndtr(a: TensorProxy) -> TensorProxy:
    """Distribution function of the normal distribution; integers as default floats."""
    a = _float("ndtr", a)
    return prims.mul(prims.erfc(prims.mul(a, -(0.5**0.5))), 0.5)


@core.method("polygamma")
def polygamma(a: TensorProxy, n: int) -> TensorProxy:
    """The ``n``-th derivative of the digamma function; integers as default floats."""
    return prims.polygamma(_float("polygamma", a), n)


def _float(operation: str, a: Any) -> TensorProxy:
    a = need_tensor(operation, a)
    return a if a.dtype.is_inexact else convert(a, get_default_dtype())  # type: ignore[no-any-return]
