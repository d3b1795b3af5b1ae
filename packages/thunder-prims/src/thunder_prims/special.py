"""Elementwise special functions: error, gamma and Bessel functions, and their relatives."""

from __future__ import annotations

import math
from typing import Any

from thunder_ir import ShapeError, TensorProxy
from thunder_ir.number_proxies import Number
from thunder_prims.batching import elementwise_prim
from thunder_prims.checks import FLOATING, INEXACT, check_integer, elementwise, unary
from thunder_prims.conditional import where
from thunder_prims.creation import full
from thunder_prims.derivatives import Map, NoFormula, derivatives
from thunder_prims.elementwise_unary import abs, cos, exp, log, sign

__all__ = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "i0",
    "i0e", "i1", "i1e", "igamma", "igammac", "lgamma", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtri",
    "polygamma", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sinc", "spherical_bessel_j0", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip

Operand = TensorProxy | Number


def _ratio(y: TensorProxy, a: TensorProxy) -> TensorProxy:
    """``y / a``, and 1/2 at 0: the limit for Bessel functions of order 1."""
    zero = a == 0
    return where(zero, 0.5, y / where(zero, 1, a))


@elementwise_prim()
def erf(a: TensorProxy) -> TensorProxy:
    """Error function of ``a``."""
    return unary("erf", FLOATING, a)


@derivatives(erf)
def erf_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * 2 / sqrt(pi) * exp(-a**2)``."""
    return lambda d: d * exp(-a * a) * (2 / math.sqrt(math.pi))


@elementwise_prim()
def erfc(a: TensorProxy) -> TensorProxy:
    """``1 - erf(a)``, exact for large ``a``."""
    return unary("erfc", FLOATING, a)


@derivatives(erfc)
def erfc_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * 2 / sqrt(pi) * exp(-a**2)``."""
    return lambda d: d * exp(-a * a) * (-2 / math.sqrt(math.pi))


@elementwise_prim()
def erfcinv(a: TensorProxy) -> TensorProxy:
    """Inverse of :data:`erfc`."""
    return unary("erfcinv", FLOATING, a)


@derivatives(erfcinv)
def erfcinv_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * sqrt(pi) / 2 * exp(y**2)``."""
    return lambda d: d * exp(y * y) * (-math.sqrt(math.pi) / 2)


@elementwise_prim()
def erfcx(a: TensorProxy) -> TensorProxy:
    """``exp(a**2) * erfc(a)``, exact for large ``a``."""
    return unary("erfcx", FLOATING, a)


@derivatives(erfcx)
def erfcx_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (2 * a * y - 2 / sqrt(pi))``."""
    return lambda d: d * (2 * a * y - 2 / math.sqrt(math.pi))


@elementwise_prim()
def erfinv(a: TensorProxy) -> TensorProxy:
    """Inverse of :data:`erf`."""
    return unary("erfinv", FLOATING, a)


@derivatives(erfinv)
def erfinv_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * sqrt(pi) / 2 * exp(y**2)``."""
    return lambda d: d * exp(y * y) * (math.sqrt(math.pi) / 2)


@elementwise_prim()
def ndtri(a: TensorProxy) -> TensorProxy:
    """Inverse of the cumulative distribution function of the standard normal distribution."""
    return unary("ndtri", FLOATING, a)


@derivatives(ndtri)
def ndtri_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * sqrt(2 * pi) * exp(y**2 / 2)``."""
    return lambda d: d * exp(y * y / 2) * math.sqrt(2 * math.pi)


@elementwise_prim()
def log_ndtr(a: TensorProxy) -> TensorProxy:
    """Logarithm of the cumulative distribution function of the standard normal distribution, exact in its tail."""
    return unary("log_ndtr", FLOATING, a)


@derivatives(log_ndtr)
def log_ndtr_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * sqrt(2 / pi) / erfcx(-a / sqrt(2))``."""
    return lambda d: d * math.sqrt(2 / math.pi) / erfcx(a * -math.sqrt(0.5))


@elementwise_prim()
def lgamma(a: TensorProxy) -> TensorProxy:
    """Logarithm of the absolute value of the gamma function."""
    return unary("lgamma", FLOATING, a)


@derivatives(lgamma)
def lgamma_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * digamma(a)``."""
    return lambda d: d * digamma(a)


@elementwise_prim()
def digamma(a: TensorProxy) -> TensorProxy:
    """Derivative of the logarithm of the gamma function."""
    return unary("digamma", FLOATING, a)


@derivatives(digamma)
def digamma_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * polygamma(a, 1)``."""
    return lambda d: d * polygamma(a, 1)


@elementwise_prim()
def i0(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the first kind, order 0."""
    return unary("i0", FLOATING, a)


@derivatives(i0)
def i0_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * i1(a)``."""
    return lambda d: d * i1(a)


@elementwise_prim()
def i0e(a: TensorProxy) -> TensorProxy:
    """``exp(-abs(a)) * i0(a)``."""
    return unary("i0e", FLOATING, a)


@derivatives(i0e)
def i0e_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (i1e(a) - sign(a) * y)``."""
    return lambda d: d * (i1e(a) - sign(a) * y)


@elementwise_prim()
def i1(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the first kind, order 1."""
    return unary("i1", FLOATING, a)


@derivatives(i1)
def i1_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (i0(a) - y / a)``, and ``d / 2`` at 0."""
    return lambda d: d * (i0(a) - _ratio(y, a))


@elementwise_prim()
def i1e(a: TensorProxy) -> TensorProxy:
    """``exp(-abs(a)) * i1(a)``."""
    return unary("i1e", FLOATING, a)


@derivatives(i1e)
def i1e_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (i0e(a) - y * (sign(a) + 1 / a))``, and ``d / 2`` at 0."""
    return lambda d: d * (i0e(a) - y * sign(a) - _ratio(y, a))


@elementwise_prim()
def bessel_j0(a: TensorProxy) -> TensorProxy:
    """Bessel function of the first kind, order 0."""
    return unary("bessel_j0", FLOATING, a)


@derivatives(bessel_j0)
def bessel_j0_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * bessel_j1(a)``."""
    return lambda d: -d * bessel_j1(a)


@elementwise_prim()
def bessel_j1(a: TensorProxy) -> TensorProxy:
    """Bessel function of the first kind, order 1."""
    return unary("bessel_j1", FLOATING, a)


@derivatives(bessel_j1)
def bessel_j1_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (bessel_j0(a) - y / a)``, and ``d / 2`` at 0."""
    return lambda d: d * (bessel_j0(a) - _ratio(y, a))


@elementwise_prim()
def bessel_y0(a: TensorProxy) -> TensorProxy:
    """Bessel function of the second kind, order 0."""
    return unary("bessel_y0", FLOATING, a)


@derivatives(bessel_y0)
def bessel_y0_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * bessel_y1(a)``."""
    return lambda d: -d * bessel_y1(a)


@elementwise_prim()
def bessel_y1(a: TensorProxy) -> TensorProxy:
    """Bessel function of the second kind, order 1."""
    return unary("bessel_y1", FLOATING, a)


@derivatives(bessel_y1)
def bessel_y1_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (bessel_y0(a) - y / a)``."""
    return lambda d: d * (bessel_y0(a) - y / a)


@elementwise_prim()
def modified_bessel_k0(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the second kind, order 0."""
    return unary("modified_bessel_k0", FLOATING, a)


@derivatives(modified_bessel_k0)
def modified_bessel_k0_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * modified_bessel_k1(a)``."""
    return lambda d: -d * modified_bessel_k1(a)


@elementwise_prim()
def modified_bessel_k1(a: TensorProxy) -> TensorProxy:
    """Modified Bessel function of the second kind, order 1."""
    return unary("modified_bessel_k1", FLOATING, a)


@derivatives(modified_bessel_k1)
def modified_bessel_k1_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``-d * (modified_bessel_k0(a) + y / a)``."""
    return lambda d: -d * (modified_bessel_k0(a) + y / a)


@elementwise_prim()
def scaled_modified_bessel_k0(a: TensorProxy) -> TensorProxy:
    """``exp(a) * modified_bessel_k0(a)``."""
    return unary("scaled_modified_bessel_k0", FLOATING, a)


@derivatives(scaled_modified_bessel_k0)
def scaled_modified_bessel_k0_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (y - scaled_modified_bessel_k1(a))``."""
    return lambda d: d * (y - scaled_modified_bessel_k1(a))


@elementwise_prim()
def scaled_modified_bessel_k1(a: TensorProxy) -> TensorProxy:
    """``exp(a) * modified_bessel_k1(a)``."""
    return unary("scaled_modified_bessel_k1", FLOATING, a)


@derivatives(scaled_modified_bessel_k1)
def scaled_modified_bessel_k1_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (y - scaled_modified_bessel_k0(a) - y / a)``."""
    return lambda d: d * (y - scaled_modified_bessel_k0(a) - y / a)


@elementwise_prim()
def sinc(a: TensorProxy) -> TensorProxy:
    """``sin(pi*a) / (pi*a)``, and 1 at 0."""
    return unary("sinc", INEXACT, a)


@derivatives(sinc)
def sinc_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (cos(pi*a) - y) / a``, and 0 at 0."""
    return lambda d: d * slope_of_sinc(a * math.pi, y) * math.pi


def slope_of_sinc(x: TensorProxy, y: TensorProxy) -> TensorProxy:
    """The derivative of ``y = sin(x) / x``: ``(cos(x) - y) / x``, near 0, where that cancels, its series."""
    small = abs(x) < 0.25
    square = x * x
    series = 1 / 3 + square * (-1 / 30 + square * (1 / 840 + square * (-1 / 45360 + square * (1 / 3991680))))
    return where(small, -x * series, (cos(x) - y) / where(small, 1, x))


@elementwise_prim()
def spherical_bessel_j0(a: TensorProxy) -> TensorProxy:
    """Spherical Bessel function of the first kind, order 0: ``sin(a) / a``, and 1 at 0."""
    return unary("spherical_bessel_j0", FLOATING, a)


@derivatives(spherical_bessel_j0)
def spherical_bessel_j0_map(a: TensorProxy, y: TensorProxy) -> Map:
    """``d * (cos(a) - y) / a``, and 0 at 0."""
    return lambda d: d * slope_of_sinc(a, y)


@elementwise_prim()
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


@derivatives(polygamma)
def polygamma_maps(a: TensorProxy, n: int, y: TensorProxy) -> tuple[Map, None]:
    """``d * polygamma(a, n + 1)``."""
    return lambda d: d * polygamma(a, n + 1), None


@elementwise_prim()
def zeta(a: Operand, b: Operand) -> TensorProxy:
    """Hurwitz zeta function, the sum of ``(b + k)**-a`` over ``k >= 0``."""
    return elementwise("zeta", FLOATING, a, b)


@derivatives(zeta)
def zeta_maps(a: Any, b: Any, y: TensorProxy) -> tuple[NoFormula, Map]:
    """``-d * a * zeta(a + 1, b)`` for ``b``; for ``a`` no formula is known."""
    return NoFormula("zeta", "first"), lambda d: -d * a * zeta(a + 1, b)


@elementwise_prim()
def igamma(a: Operand, b: Operand) -> TensorProxy:
    """Regularised lower incomplete gamma function: that of ``exp(-t) * t**(a-1)`` from 0 to ``b``."""
    return elementwise("igamma", FLOATING, a, b)


@derivatives(igamma)
def igamma_maps(a: Any, b: Any, y: TensorProxy) -> tuple[NoFormula, Map]:
    """``d * exp(-b) * b**(a-1) / gamma(a)`` for ``b``; for ``a`` no formula is known."""
    return NoFormula("igamma", "first"), lambda d: d * _gamma_density(a, b)


def _gamma_density(a: Any, b: TensorProxy) -> TensorProxy:
    shape = a if isinstance(a, TensorProxy) else full(b.shape, a, b.dtype, b.device)
    return exp((shape - 1) * log(b) - b - lgamma(shape))


@elementwise_prim()
def igammac(a: Operand, b: Operand) -> TensorProxy:
    """Regularised upper incomplete gamma function, ``1 - igamma(a, b)``."""
    return elementwise("igammac", FLOATING, a, b)


@derivatives(igammac)
def igammac_maps(a: Any, b: Any, y: TensorProxy) -> tuple[NoFormula, Map]:
    """``-d * exp(-b) * b**(a-1) / gamma(a)`` for ``b``; for ``a`` no formula is known."""
    return NoFormula("igammac", "first"), lambda d: -d * _gamma_density(a, b)


@elementwise_prim()
def xlogy(a: Operand, b: Operand) -> TensorProxy:
    """``a * log(b)``, and 0 where ``a`` is 0 unless ``b`` is nan."""
    return elementwise("xlogy", FLOATING, a, b)


@derivatives(xlogy)
def xlogy_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d * log(b)``, 0 where ``a`` is 0 and ``b`` not positive; and ``d * a / b``."""
    return lambda d: where((a == 0) & (b <= 0), 0, xlogy(d, b)), lambda d: d * a / b


@elementwise_prim()
def xlog1py(a: Operand, b: Operand) -> TensorProxy:
    """``a * log(1 + b)``, and 0 where ``a`` is 0 unless ``b`` is nan."""
    return elementwise("xlog1py", FLOATING, a, b)


@derivatives(xlog1py)
def xlog1py_maps(a: Any, b: Any, y: TensorProxy) -> tuple[Map, Map]:
    """``d * log(1 + b)``, 0 where ``a`` is 0 and ``b`` not above -1; and ``d * a / (1 + b)``."""
    return lambda d: where((a == 0) & (b <= -1), 0, xlog1py(d, b)), lambda d: d * a / (1 + b)
