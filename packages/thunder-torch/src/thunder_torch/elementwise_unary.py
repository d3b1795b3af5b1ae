"""Elementwise functions of one tensor."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_autograd import vjp_rule
from thunder_ir import OpTags, Symbol, TensorProxy, dtypes
from thunder_torch.rounding import narrow_to, wide
from thunder_torch.symbol import composed, getter, torchsymbol
from thunder_torch.traits import Trait, state

POINTWISE = (OpTags.ELEMENTWISE,)
MAYBE = (Trait.MAY_VIEW,)
state("__pos__", "conj_physical", traits=MAYBE)
state("neg", traits=(Trait.SAVES_NOTHING,))


def _unary(function: Any, *callables: Any, name: str = "") -> Symbol:
    return composed(function, *callables, tags=POINTWISE, name=name)


abs = _unary(lang.abs, torch.abs, Tensor.abs, torch.absolute, Tensor.absolute, Tensor.__abs__)
acos = _unary(lang.acos, torch.acos, Tensor.acos, torch.arccos, Tensor.arccos)
acosh = _unary(lang.acosh, torch.acosh, Tensor.acosh, torch.arccosh, Tensor.arccosh)
asin = _unary(lang.asin, torch.asin, Tensor.asin, torch.arcsin, Tensor.arcsin)
asinh = _unary(lang.asinh, torch.asinh, Tensor.asinh, torch.arcsinh, Tensor.arcsinh)
atan = _unary(lang.atan, torch.atan, Tensor.atan, torch.arctan, Tensor.arctan)
atanh = _unary(lang.atanh, torch.atanh, Tensor.atanh, torch.arctanh, Tensor.arctanh)
bitwise_not = _unary(lang.bitwise_not, torch.bitwise_not, Tensor.bitwise_not)
ceil = _unary(lang.ceil, torch.ceil, Tensor.ceil)
cos = _unary(lang.cos, torch.cos, Tensor.cos)
cosh = _unary(lang.cosh, torch.cosh, Tensor.cosh)
deg2rad = _unary(lang.deg2rad, torch.deg2rad, Tensor.deg2rad)
digamma = _unary(lang.digamma, torch.digamma, Tensor.digamma, torch.special.digamma, torch.special.psi)
erf = _unary(lang.erf, torch.erf, Tensor.erf, torch.special.erf)
erfc = _unary(lang.erfc, torch.erfc, Tensor.erfc, torch.special.erfc)
erfinv = _unary(lang.erfinv, torch.erfinv, Tensor.erfinv, torch.special.erfinv)
exp = _unary(lang.exp, torch.exp, Tensor.exp)
exp2 = _unary(lang.exp2, torch.exp2, Tensor.exp2, torch.special.exp2)
expm1 = _unary(lang.expm1, torch.expm1, Tensor.expm1, torch.special.expm1)
floor = _unary(lang.floor, torch.floor, Tensor.floor)
frac = _unary(lang.frac, torch.frac, Tensor.frac)
isfinite = _unary(lang.isfinite, torch.isfinite, Tensor.isfinite)
isinf = _unary(lang.isinf, torch.isinf, Tensor.isinf)
isnan = _unary(lang.isnan, torch.isnan, Tensor.isnan)
isneginf = _unary(lang.isneginf, torch.isneginf, Tensor.isneginf)
isposinf = _unary(lang.isposinf, torch.isposinf, Tensor.isposinf)
lgamma = _unary(lang.lgamma, torch.lgamma, Tensor.lgamma, torch.special.gammaln)
log = _unary(lang.log, torch.log, Tensor.log)
log10 = _unary(lang.log10, torch.log10, Tensor.log10)
log1p = _unary(lang.log1p, torch.log1p, Tensor.log1p, torch.special.log1p)
log2 = _unary(lang.log2, torch.log2, Tensor.log2)
logical_not = _unary(lang.logical_not, torch.logical_not, Tensor.logical_not)
nan_to_num = _unary(lang.nan_to_num, torch.nan_to_num, Tensor.nan_to_num)
ndtri = _unary(lang.ndtri, torch.special.ndtri, name="special_ndtri")
neg = _unary(lang.neg, torch.neg, Tensor.neg, torch.negative, Tensor.negative, Tensor.__neg__)
positive = _unary(lang.positive, torch.positive, Tensor.positive, Tensor.__pos__)
rad2deg = _unary(lang.rad2deg, torch.rad2deg, Tensor.rad2deg)
reciprocal = _unary(lang.reciprocal, torch.reciprocal, Tensor.reciprocal)
round = _unary(lang.round, torch.round, Tensor.round, torch.special.round)
rsqrt = _unary(lang.rsqrt, torch.rsqrt, Tensor.rsqrt)
sign = _unary(lang.sign, torch.sign, Tensor.sign)
signbit = _unary(lang.signbit, torch.signbit, Tensor.signbit)
sin = _unary(lang.sin, torch.sin, Tensor.sin)
sinc = _unary(lang.sinc, torch.sinc, Tensor.sinc, torch.special.sinc)
sinh = _unary(lang.sinh, torch.sinh, Tensor.sinh)
sqrt = _unary(lang.sqrt, torch.sqrt, Tensor.sqrt)
square = _unary(lang.square, torch.square, Tensor.square)
tan = _unary(lang.tan, torch.tan, Tensor.tan)
tanh = _unary(lang.tanh, torch.tanh, Tensor.tanh, torch.nn.functional.tanh)
trunc = _unary(lang.trunc, torch.trunc, Tensor.trunc, torch.fix, Tensor.fix)
sigmoid = _unary(lang.sigmoid, torch.sigmoid, Tensor.sigmoid, torch.special.expit, torch.nn.functional.sigmoid)
frexp = composed(lang.frexp, torch.frexp, Tensor.frexp)
real = composed(lang.real, torch.real, getter("real"), tags=(OpTags.VIEW,), traits=MAYBE)
imag = composed(lang.imag, torch.imag, getter("imag"), tags=(OpTags.VIEW,), traits=MAYBE)

i0 = _unary(lang.i0, torch.i0, Tensor.i0, torch.special.i0)
special_i0e = _unary(lang.i0e, torch.special.i0e, name="special_i0e")
special_i1 = _unary(lang.i1, torch.special.i1, name="special_i1")
special_i1e = _unary(lang.i1e, torch.special.i1e, name="special_i1e")
special_erfcx = _unary(lang.erfcx, torch.special.erfcx, name="special_erfcx")
special_ndtr = _unary(lang.ndtr, torch.special.ndtr, name="special_ndtr")
special_log_ndtr = _unary(lang.log_ndtr, torch.special.log_ndtr, name="special_log_ndtr")
polygamma_method = _unary(lang.polygamma, Tensor.polygamma, name="Tensor_polygamma")


@torchsymbol(torch.polygamma, torch.special.polygamma, tags=POINTWISE)
def polygamma(n: int, a: TensorProxy) -> TensorProxy:
    """The ``n``-th derivative of the digamma function."""
    return lang.polygamma(a, n)


@torchsymbol(torch.logit, Tensor.logit, torch.special.logit, tags=POINTWISE)
def logit(a: TensorProxy, eps: float | None = None) -> TensorProxy:
    """``log(a / (1 - a))``, with ``a`` kept between ``eps`` and ``1 - eps``."""
    x = wide(a)
    if eps is not None:
        x = lang.clamp(x, eps, 1 - eps)
    inside = lang.logical_and(x > 0, x < 1)
    kept = lang.where(inside, x, lang.full_like(x, 0.5))
    # At 0 and 1 the slopes of the two logarithms are infinite, not without meaning.
    y = lang.where(inside, lang.log(kept / (1 - kept)), lang.log(x) - lang.log(1 - x))
    return narrow_to(y, a.dtype) if a.dtype.is_inexact else y


@vjp_rule(logit)
def logit_vjp(a: TensorProxy, eps: float | None = None) -> Any:
    """``da = dy / (a (1 - a))``; outside of the bounds zero, and NaN where none are given."""

    def pullback(dy: TensorProxy) -> TensorProxy:
        x = wide(a)
        low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
        outside = lang.logical_or(x < low, x > high)
        kept = lang.where(outside, lang.full_like(x, 0.5), x)
        beyond = lang.full_like(x, math.nan if eps is None else 0.0)
        return narrow_to(lang.where(outside, beyond, wide(dy) / (kept * (1 - kept))), a.dtype)

    return logit(a, eps), pullback


@torchsymbol(torch.sgn, Tensor.sgn, tags=POINTWISE)
def sgn(a: TensorProxy) -> Any:
    """The sign, of a complex element the number of absolute value one in its direction."""
    return NotImplemented if a.dtype.is_complex else lang.sign(a)


@torchsymbol(Tensor.__invert__, tags=POINTWISE, name="invert")
def invert(a: TensorProxy) -> Any:
    """``bitwise_not`` of integers and booleans; of others it is refused in words of its own."""
    return NotImplemented if a.dtype.is_inexact else lang.bitwise_not(a)


@torchsymbol(torch.angle, Tensor.angle, tags=POINTWISE)
def angle(a: TensorProxy) -> Any:
    """The angle of complex elements; of real ones 0 or pi, and NaN of NaN."""
    return (
        NotImplemented
        if a.dtype is dtypes.complex32 or not a.dtype.is_complex
        else lang.atan2(lang.imag(a), lang.real(a))
    )


__all__ = [
    "POINTWISE", "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos",
    "cosh", "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "frexp", "i0",
    "imag", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "lgamma", "log", "log10", "log1p", "log2",
    "logical_not", "logit", "nan_to_num", "ndtri", "neg", "polygamma", "polygamma_method", "positive", "rad2deg",
    "real", "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
    "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_log_ndtr", "special_ndtr", "sqrt", "square",
    "tan", "tanh", "trunc",
]  # fmt: skip
