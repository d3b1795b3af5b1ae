"""Elementwise special functions: error, gamma and Bessel functions, and their relatives."""

from __future__ import annotations

from thunder_ir import OpTags, ShapeError, TensorProxy
from thunder_ir.proxies import Number
from thunder_prims.checks import FLOATING, check_integer, elementwise, unary
from thunder_prims.prim import prim

__all__ = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "i0",
    "i0e", "i1", "i1e", "igamma", "igammac", "lgamma", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtri",
    "polygamma", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

ELEMENTWISE = OpTags.ELEMENTWISE


@prim(ELEMENTWISE)
def erf(a: TensorProxy) -> TensorProxy:
    """Error function of ``a``."""
    return unary("erf", FLOATING, a)


@prim(ELEMENTWISE)
def erfc(a: TensorProxy) -> TensorProxy:
    """``1 - erf(a)``, exact for large ``a``."""
    return unary("erfc", FLOATING, a)


@prim(ELEMENTWISE)
def erfcinv(a: TensorProxy) -> TensorProxy:
    """Inverse of :data:`erfc`."""
    return unary("erfcinv", FLOATING, a)


@prim(ELEMENTWISE)
def erfcx(a: TensorProxy) -> TensorProxy:
    """``exp(a**2) * erfc(a)``, exact for large ``a``."""
    return unary("erfcx", FLOATING, a)


@prim(ELEMENTWISE)
def erfinv(a: TensorProxy) -> TensorProxy:
    """Inverse of :data:`erf`."""
    return unary("erfinv", FLOATING, a)


@prim(ELEMENTWISE)
def ndtri(a: TensorProxy) -> TensorProxy:
    """Inverse of the cumulative distribution function of the standard normal distribution."""
    return unary("ndtri", FLOATING, a)


@prim(ELEMENTWISE)
def log_ndtr(a: TensorProxy) -> TensorProxy:
    """Logarithm of the cumulative distribution function of the standard normal distribution, exact in its tail."""
    return unary("log_ndtr", FLOATING, a)


@prim(ELEMENTWISE)
def lgamma(a: TensorProxy) -> TensorProxy:
    """Logarithm of the absolute value of the gamma function."""
    return unary("lgamma", FLOATING, a)


@prim(ELEMENTWISE)
def digamma(a: TensorProxy) -> TensorProxy:
    """Derivative of the logarithm of the gamma function."""
    return unary("digamma", FLOATING, a)


@prim(ELEMENTWISE)
def i0(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the first kind, order 0."""
    return unary("i0", FLOATING, a)


@prim(ELEMENTWISE)
def i0e(a: TensorProxy) -> TensorProxy:
    """``exp(-abs(a)) * i0(a)``."""
    return unary("i0e", FLOATING, a)


@prim(ELEMENTWISE)
def i1(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the first kind, order 1."""
    return unary("i1", FLOATING, a)


@prim(ELEMENTWISE)
def i1e(a: TensorProxy) -> TensorProxy:
    """``exp(-abs(a)) * i1(a)``."""
    return unary("i1e", FLOATING, a)


@prim(ELEMENTWISE)
def bessel_j0(a: TensorProxy) -> TensorProxy:
    """Bessel function of the first kind, order 0."""
    return unary("bessel_j0", FLOATING, a)


@prim(ELEMENTWISE)
def bessel_j1(a: TensorProxy) -> TensorProxy:
    """Bessel function of the first kind, order 1."""
    return unary("bessel_j1", FLOATING, a)


@prim(ELEMENTWISE)
def bessel_y0(a: TensorProxy) -> TensorProxy:
    """Bessel function of the second kind, order 0."""
    return unary("bessel_y0", FLOATING, a)


@prim(ELEMENTWISE)
def bessel_y1(a: TensorProxy) -> TensorProxy:
    """Bessel function of the second kind, order 1."""
    return unary("bessel_y1", FLOATING, a)


@prim(ELEMENTWISE)
def modified_bessel_k0(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the second kind, order 0."""
    return unary("modified_bessel_k0", FLOATING, a)


@prim(ELEMENTWISE)
def modified_bessel_k1(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the second kind, order 1."""
    return unary("modified_bessel_k1", FLOATING, a)


@prim(ELEMENTWISE)
def scaled_modified_bessel_k0(a: TensorProxy) -> TensorProxy:
    """``exp(a) * modified_bessel_k0(a)``."""
    return unary("scaled_modified_bessel_k0", FLOATING, a)


@prim(ELEMENTWISE)
def scaled_modified_bessel_k1(a: TensorProxy) -> TensorProxy:
    """``exp(a) * modified_bessel_k1(a)``."""
    return unary("scaled_modified_bessel_k1", FLOATING, a)


@prim(ELEMENTWISE)
def spherical_bessel_j0(a: TensorProxy) -> TensorProxy:
    """Spherical Bessel function of the first kind, order 0: ``sin(a) / a``, and 1 at 0."""
    return unary("spherical_bessel_j0", FLOATING, a)


@prim(ELEMENTWISE)
def polygamma(a: TensorProxy, n: int) -> TensorProxy:
    """The ``n``-th derivative of :data:`digamma`.

    Args:
        a: floating-point dtype.
        n: not negative.

    Raises:
        ShapeError: ``n`` is negative.
    """
    check_integer("polygamma", n, "n")
    if n < 0:
        raise ShapeError(f"polygamma needs an order n that is not negative, got {n}")
    return unary("polygamma", FLOATING, a)


@prim(ELEMENTWISE)
def zeta(a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """Hurwitz zeta function, the sum of ``(b + k)**-a`` over ``k >= 0``."""
    return elementwise("zeta", FLOATING, a, b)


@prim(ELEMENTWISE)
def igamma(a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """Regularised lower incomplete gamma function: that of ``exp(-t) * t**(a-1)`` from 0 to ``b``."""
    return elementwise("igamma", FLOATING, a, b)


@prim(ELEMENTWISE)
def igammac(a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """Regularised upper incomplete gamma function, ``1 - igamma(a, b)``."""
    return elementwise("igammac", FLOATING, a, b)


@prim(ELEMENTWISE)
def xlogy(a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """``a * log(b)``, and 0 where ``a`` is 0 unless ``b`` is nan."""
    return elementwise("xlogy", FLOATING, a, b)


@prim(ELEMENTWISE)
def xlog1py(a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """``a * log(1 + b)``, and 0 where ``a`` is 0 unless ``b`` is nan."""
    return elementwise("xlog1py", FLOATING, a, b)
