"""Elementwise functions of two and three tensors, and the operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_ir import OpTags, Symbol, TensorProxy
from thunder_torch.convert import from_torch_dtype
from thunder_torch.elementwise_unary import POINTWISE
from thunder_torch.metadata import metadata_of
from thunder_torch.rounding import half_of, narrow_to, wide
from thunder_torch.symbol import composed, requires_gradient, torchsymbol
from thunder_torch.torch_versions import SHARES_GRADIENTS
from thunder_torch.traits import Trait, state

SWAPS = (Trait.KEEPS_ROWS,)
"""Of what hands its operands to a kernel in the other order, which decides how results of unlike operands lie."""
state("add", "rsub", "sub", traits=(Trait.SAVES_NOTHING,))


def _binary(function: Any, *callables: Any, name: str = "") -> Symbol:
    return composed(function, *callables, tags=POINTWISE, name=name)


add = _binary(lang.add, torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__)
sub = _binary(lang.sub, torch.sub, Tensor.sub, torch.subtract, Tensor.subtract, Tensor.__sub__)
mul = _binary(lang.mul, torch.mul, Tensor.mul, torch.multiply, Tensor.multiply, Tensor.__mul__, Tensor.__rmul__)
div = _binary(lang.div, torch.div, Tensor.div, torch.divide, Tensor.divide)
true_divide = _binary(lang.true_divide, torch.true_divide, Tensor.true_divide, Tensor.__truediv__, Tensor.__div__)


def floor_divided(a: Any, b: Any) -> Any:
    """The floor of ``a / b``; PyTorch has no derivative of it, and says so where one is asked for."""
    return NotImplemented if requires_gradient(a, b) else lang.floor_divide(a, b)


floor_divide = _binary(floor_divided, torch.floor_divide, Tensor.floor_divide, Tensor.__floordiv__, name="floor_divide")
remainder = _binary(lang.remainder, torch.remainder, Tensor.remainder, Tensor.__mod__)
fmod = _binary(lang.fmod, torch.fmod, Tensor.fmod)
maximum = _binary(lang.maximum, torch.maximum, Tensor.maximum)
minimum = _binary(lang.minimum, torch.minimum, Tensor.minimum)
atan2 = _binary(lang.atan2, torch.atan2, Tensor.atan2, torch.arctan2, Tensor.arctan2)
copysign = _binary(lang.copysign, torch.copysign, Tensor.copysign)
nextafter = _binary(lang.nextafter, torch.nextafter, Tensor.nextafter)
hypot = _binary(lang.hypot, torch.hypot, Tensor.hypot)
logaddexp2 = _binary(lang.logaddexp2, torch.logaddexp2, Tensor.logaddexp2)
ldexp = _binary(lang.ldexp, torch.ldexp, Tensor.ldexp)
gcd = _binary(lang.gcd, torch.gcd, Tensor.gcd)
lcm = _binary(lang.lcm, torch.lcm, Tensor.lcm)
bitwise_and = _binary(lang.bitwise_and, torch.bitwise_and, Tensor.bitwise_and, Tensor.__and__, Tensor.__rand__)
bitwise_or = _binary(lang.bitwise_or, torch.bitwise_or, Tensor.bitwise_or, Tensor.__or__, Tensor.__ror__)
bitwise_xor = _binary(lang.bitwise_xor, torch.bitwise_xor, Tensor.bitwise_xor, Tensor.__xor__, Tensor.__rxor__)
bitwise_left_shift = _binary(
    lang.bitwise_left_shift, torch.bitwise_left_shift, Tensor.bitwise_left_shift, Tensor.__lshift__
)
bitwise_right_shift = _binary(
    lang.bitwise_right_shift, torch.bitwise_right_shift, Tensor.bitwise_right_shift, Tensor.__rshift__
)
logical_and = _binary(lang.logical_and, torch.logical_and, Tensor.logical_and)
logical_or = _binary(lang.logical_or, torch.logical_or, Tensor.logical_or)
logical_xor = _binary(lang.logical_xor, torch.logical_xor, Tensor.logical_xor)
xlogy = _binary(lang.xlogy, torch.xlogy, Tensor.xlogy, torch.special.xlogy)
special_xlog1py = _binary(lang.xlog1py, torch.special.xlog1py, name="special_xlog1py")
special_zeta = _binary(lang.zeta, torch.special.zeta, name="special_zeta")
igamma = _binary(lang.igamma, torch.igamma, Tensor.igamma, torch.special.gammainc)
igammac = _binary(lang.igammac, torch.igammac, Tensor.igammac, torch.special.gammaincc)


@torchsymbol(torch.logaddexp, Tensor.logaddexp, tags=POINTWISE)
def logaddexp(a: TensorProxy, b: TensorProxy) -> Any:
    """``log(exp(a) + exp(b))`` without overflow on the way."""
    return NotImplemented if a.dtype.is_complex or b.dtype.is_complex else lang.logaddexp(a, b)


@torchsymbol(torch.pow, Tensor.pow, Tensor.__pow__, tags=POINTWISE)
def pow(a: Any, exponent: Any) -> Any:
    """``a`` to the power of ``exponent``."""
    return lang.pow(a, exponent)


@torchsymbol(torch.float_power, Tensor.float_power, tags=POINTWISE)
def float_power(a: Any, exponent: Any) -> Any:
    """``a`` to the power of ``exponent``, computed in double precision."""
    wide = torch.float64
    if not any(_is_complex(x) for x in (a, exponent)):
        a, exponent = _as(a, wide), _as(exponent, wide)
        return lang.pow(a, exponent)
    return NotImplemented


def _is_complex(a: Any) -> bool:
    return a.dtype.is_complex if isinstance(a, TensorProxy) else isinstance(a, complex)


def _as(a: Any, dtype: torch.dtype) -> Any:
    return lang.to(a, from_torch_dtype(dtype)) if isinstance(a, TensorProxy) else a


def reflected(function: Any, *callables: Any, name: str, tags: tuple[OpTags, ...] = POINTWISE) -> Symbol:
    def swapped(a: Any, b: Any) -> Any:
        return function(b, a)

    swapped.__doc__ = f"``{function.__name__}`` with its operands swapped."
    return torchsymbol(*callables, name=name, tags=tags, traits=SWAPS)(swapped)


rsub_operator = reflected(lang.sub, Tensor.__rsub__, name="Tensor___rsub__")
rtruediv_operator = reflected(lang.true_divide, Tensor.__rtruediv__, Tensor.__rdiv__, name="Tensor___rtruediv__")
rfloordiv_operator = reflected(floor_divided, Tensor.__rfloordiv__, name="Tensor___rfloordiv__")
rmod_operator = reflected(lang.remainder, Tensor.__rmod__, name="Tensor___rmod__")
rpow_operator = reflected(lang.pow, Tensor.__rpow__, name="Tensor___rpow__")
rlshift_operator = reflected(lang.bitwise_left_shift, Tensor.__rlshift__, name="Tensor___rlshift__")
rrshift_operator = reflected(lang.bitwise_right_shift, Tensor.__rrshift__, name="Tensor___rrshift__")


@torchsymbol(torch.rsub, tags=POINTWISE, traits=SWAPS)
def rsub(a: TensorProxy, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * a``."""
    return lang.sub(other, a, alpha=alpha)


def _of_a_tensor_value(a: TensorProxy, tensor1: TensorProxy, tensor2: TensorProxy, *, value: Any = 1) -> Any:
    """Metadata where the factor is a tensor, whose value PyTorch reads only when it runs; optimizers pass such."""
    if not isinstance(value, TensorProxy):
        return NotImplemented
    return metadata_of(torch.addcmul, (a, tensor1, tensor2), {})


@torchsymbol(torch.addcmul, Tensor.addcmul, tags=POINTWISE, meta=_of_a_tensor_value)
def addcmul(a: TensorProxy, tensor1: TensorProxy, tensor2: TensorProxy, *, value: Any = 1) -> TensorProxy:
    """``a + value * tensor1 * tensor2``."""
    half = half_of(a, tensor1, tensor2, value)
    a, tensor1, tensor2, value = (wide(v) if half else v for v in (a, tensor1, tensor2, value))
    total = a + (tensor1 * tensor2 if _is_one(value) else value * tensor1 * tensor2)
    return narrow_to(total, half) if half else total


@torchsymbol(torch.addcdiv, Tensor.addcdiv, tags=POINTWISE, meta=_of_a_tensor_value)
def addcdiv(a: TensorProxy, tensor1: TensorProxy, tensor2: TensorProxy, *, value: Any = 1) -> TensorProxy:
    """``a + value * tensor1 / tensor2``."""
    half = half_of(a, tensor1, tensor2, value)
    a, tensor1, tensor2, value = (wide(v) if half else v for v in (a, tensor1, tensor2, value))
    total = a + (tensor1 / tensor2 if _is_one(value) else value * (tensor1 / tensor2))
    return narrow_to(total, half) if half else total


def _is_one(value: Any) -> bool:
    return not isinstance(value, TensorProxy) and bool(value == 1)


@torchsymbol(torch.lerp, Tensor.lerp, tags=POINTWISE)
def lerp(a: TensorProxy, end: TensorProxy, weight: Any) -> TensorProxy:
    """``a + weight * (end - a)``."""
    return lang.lerp(a, end, weight)


@torchsymbol(torch.fmax, Tensor.fmax, tags=POINTWISE)
def fmax(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The greater of two; where one is NaN, the other."""
    return _first_where(lang.ge(a, other), a, other, lang.maximum)


@torchsymbol(torch.fmin, Tensor.fmin, tags=POINTWISE)
def fmin(a: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The lesser of two; where one is NaN, the other."""
    return _first_where(lang.le(a, other), a, other, lang.minimum)


def _first_where(wins: TensorProxy, a: TensorProxy, other: TensorProxy, shared: Any) -> TensorProxy:
    """Return ``a`` where it wins or the other is NaN.

    Of equal ones all the gradient is that of ``a``, or what ``shared`` makes of it where PyTorch shares it.
    """
    chosen = lang.where(lang.logical_or(wins, lang.isnan(other)), a, other)
    return lang.where(lang.eq(a, other), shared(a, other), chosen) if SHARES_GRADIENTS else chosen


__all__ = [
    "add", "addcdiv", "addcmul", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "div", "float_power", "floor_divide", "fmax", "fmin", "fmod", "gcd", "hypot", "igamma",
    "igammac", "lcm", "ldexp", "lerp", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum",
    "minimum", "mul", "nextafter", "pow", "remainder", "reflected", "rfloordiv_operator", "rlshift_operator",
    "rmod_operator", "rpow_operator", "rrshift_operator", "rsub", "rsub_operator", "rtruediv_operator",
    "special_xlog1py", "special_zeta", "sub", "true_divide", "xlogy",
]  # fmt: skip
