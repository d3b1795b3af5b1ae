"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import thunder_lang as lang
from thunder_autograd import Pullback, vjp_rule
from thunder_ir import OpTags, TensorProxy, current_builder
from thunder_ir.number_proxies import Dimension
from thunder_torch.conversion import size_of
from thunder_torch.convert import from_torch_dtype
from thunder_torch.elementwise_unary import POINTWISE
from thunder_torch.rounding import floating, narrow_to, wide
from thunder_torch.row_order import in_rows
from thunder_torch.symbol import composed, torchsymbol
from thunder_torch.traits import Trait, state

state("log_softmax", "softmax", traits=(Trait.IN_ROWS,))


@torchsymbol(F.relu, tags=POINTWISE)
def relu(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``a`` where it is positive, zero elsewhere."""
    return lang.relu(a)


torch_relu = composed(lang.relu, torch.relu, Tensor.relu, tags=POINTWISE, name="torch_relu")


def _flat_outside(a: TensorProxy, low: Any, high: Any) -> TensorProxy:
    """Return ``a`` kept between bounds that have no slope themselves, where those of a ``clamp`` have one."""
    with current_builder().tagged(OpTags.CONSTANT_FOR_DERIVATIVE):
        flat = lang.clamp(a, low, high)  # which leaves -0.0 as it is where 0 is a bound
    return lang.where((a <= low) | (a >= high), flat, a)


@torchsymbol(F.relu6, tags=POINTWISE)
def relu6(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``min(max(a, 0), 6)``."""
    return _flat_outside(a, 0, 6)


@torchsymbol(F.hardtanh, tags=POINTWISE)
def hardtanh(a: TensorProxy, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """``a`` kept between ``min_val`` and ``max_val``."""
    if not a.dtype.is_floating or min_val > max_val:
        return NotImplemented
    return _flat_outside(a, min_val, max_val)


@torchsymbol(F.gelu, torch._C._nn.gelu, tags=POINTWISE)
def gelu(a: TensorProxy, *, approximate: str = "none") -> Any:
    """``a`` times the normal distribution function of ``a``, or its approximation by a hyperbolic tangent."""
    if approximate not in ("none", "tanh"):
        return NotImplemented
    x = floating("gelu", a)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return narrow_to(0.5 * x * (1 + lang.tanh(inner)), a.dtype)
    return narrow_to(0.5 * x * (1 + lang.erf(x * math.sqrt(0.5))), a.dtype)


@torchsymbol(F.silu, torch._C._nn.silu, tags=POINTWISE)
def silu(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``a * sigmoid(a)``."""
    x = wide(a) if a.dtype.is_complex else floating("silu", a)
    return narrow_to(x * lang.sigmoid(x), a.dtype)


@torchsymbol(F.mish, torch._C._nn.mish, tags=POINTWISE)
def mish(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``a * tanh(softplus(a))``."""
    x = floating("mish", a)
    return narrow_to(x * lang.tanh(_softplus(x, 1.0, 20.0)), a.dtype)


@vjp_rule(mish)
def mish_vjp(a: TensorProxy, inplace: bool = False) -> Any:
    """``da = dy * (t + a * sigmoid(a) * (1 - t * t))`` with ``t = tanh(softplus(a))``."""

    def pullback(dy: TensorProxy) -> TensorProxy:
        x = wide(a)
        t = lang.tanh(_softplus(x, 1.0, 20.0))
        return narrow_to(wide(dy) * (t + x * lang.sigmoid(x) * (1 - t * t)), a.dtype)

    return mish(a), pullback


def _softplus(a: TensorProxy, beta: Any, threshold: Any) -> TensorProxy:
    scaled = a * beta
    above = scaled > threshold
    # The exponential of what lies above the threshold may overflow: it is not taken.
    soft = lang.log1p(lang.exp(lang.where(above, lang.zeros_like(scaled), scaled))) / beta
    return lang.where(above, a, soft)


@torchsymbol(F.softplus, torch._C._nn.softplus, tags=POINTWISE)
def softplus(a: TensorProxy, beta: float = 1, threshold: float = 20) -> TensorProxy:
    """``log(1 + exp(beta * a)) / beta``; ``a`` itself above the threshold."""
    return narrow_to(_softplus(floating("softplus", a), beta, threshold), a.dtype)


def _expm1_below_zero(x: TensorProxy) -> TensorProxy:
    """Return ``exp(x) - 1``; the slope ``exp(x)`` of it cannot be had of a value that has been rounded to -1."""
    near = x > -1
    zero = lang.zeros_like(x)
    return lang.where(near, lang.expm1(lang.where(near, x, zero)), lang.exp(lang.where(near, zero, x)) - 1)


def _elu(a: TensorProxy, alpha: Any, scale: Any, input_scale: Any) -> TensorProxy:
    x = wide(a)
    below = x < 0
    kept = lang.where(below, x, lang.zeros_like(x))
    negative = _expm1_below_zero(kept * input_scale) * (alpha * scale)
    # At 0 the slope is that of the exponential, but the second derivative is 0.
    slope = scale if alpha * input_scale == 1 else lang.where(lang.eq(x, 0), alpha * scale * input_scale, scale)
    return narrow_to(lang.where(below, negative, x * slope), a.dtype)


@torchsymbol(F.elu, tags=POINTWISE)
def elu(a: TensorProxy, alpha: float = 1.0, inplace: bool = False) -> TensorProxy:
    """``a`` where positive, ``alpha * (exp(a) - 1)`` elsewhere."""
    return _elu(a, alpha, 1.0, 1.0)


@torchsymbol(F.selu, tags=POINTWISE)
def selu(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``elu`` with the constants that keep mean and variance."""
    return _elu(a, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


@torchsymbol(torch.selu, tags=POINTWISE, name="torch_selu")
def torch_selu(a: TensorProxy) -> TensorProxy:
    """``elu`` with the constants that keep mean and variance."""
    return _elu(a, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


@torchsymbol(F.celu, tags=POINTWISE)
def celu(a: TensorProxy, alpha: float = 1.0, inplace: bool = False) -> TensorProxy:
    """``a`` where positive, ``alpha * (exp(a / alpha) - 1)`` elsewhere."""
    return narrow_to(_elu(floating("celu", a), alpha, 1.0, 1.0 / alpha), a.dtype)


@torchsymbol(torch.celu, tags=POINTWISE, name="torch_celu")
def torch_celu(a: TensorProxy, alpha: float = 1.0) -> TensorProxy:
    """``a`` where positive, ``alpha * (exp(a / alpha) - 1)`` elsewhere."""
    return narrow_to(_elu(floating("celu", a), alpha, 1.0, 1.0 / alpha), a.dtype)


@torchsymbol(F.leaky_relu, tags=POINTWISE)
def leaky_relu(a: TensorProxy, negative_slope: float = 0.01, inplace: bool = False) -> TensorProxy:
    """``a`` where positive, ``negative_slope * a`` elsewhere."""
    return lang.where(a > 0, a, a * negative_slope)


@torchsymbol(F.rrelu, tags=(OpTags.RANDOM,))
def rrelu(
    a: TensorProxy, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """``a`` where positive, elsewhere ``a`` times a slope, drawn in training and the mean of the bounds else."""
    return NotImplemented if training else lang.where(a > 0, a, a * ((lower + upper) / 2))


@torchsymbol(F.prelu, torch.prelu, Tensor.prelu, tags=(OpTags.ELEMENTWISE,))
def prelu(a: TensorProxy, weight: TensorProxy) -> TensorProxy:
    """``a`` where positive, elsewhere ``a`` times a weight, one for all or one for each channel."""
    if weight.ndim == 1 and a.ndim > 0:
        places: list[Dimension] = [1] * a.ndim
        places[1 if a.ndim > 1 else 0] = weight.shape[0]
        weight = lang.reshape(weight, tuple(places))
    elif weight.ndim == 1:
        weight = lang.reshape(weight, ())
    above = a > 0
    kept = lang.where(above, lang.zeros_like(a), a)  # an infinite ``a`` above gives the weight no slope
    return lang.where(above, a, kept * weight)


@torchsymbol(F.hardsigmoid, tags=POINTWISE)
def hardsigmoid(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``clamp(a + 3, 0, 6) / 6``."""
    x = floating("hardsigmoid", a)
    return narrow_to(lang.where(x <= -3, 0, lang.where(x >= 3, 1, (x + 3) / 6)), a.dtype)


@torchsymbol(F.hardswish, tags=POINTWISE)
def hardswish(a: TensorProxy, inplace: bool = False) -> TensorProxy:
    """``a * clamp(a + 3, 0, 6) / 6``."""
    x = floating("hardswish", a)
    inside = lang.logical_and(x > -3, x < 3)
    kept = lang.where(inside, x, lang.zeros_like(x))
    # Outside, at the borders too, the slope is 0 or 1.
    return narrow_to(lang.where(inside, kept * (kept + 3) / 6, lang.where(x <= -3, 0, x)), a.dtype)


def log_sigmoid_of(x: TensorProxy) -> TensorProxy:
    """Return ``log(sigmoid(x))``, without overflow on the way and as smooth at 0 as elsewhere."""
    below = x < 0
    return lang.where(below, x, lang.zeros_like(x)) - lang.log1p(lang.exp(lang.where(below, x, -x)))


@torchsymbol(F.logsigmoid, torch._C._nn.log_sigmoid, tags=POINTWISE)
def logsigmoid(a: TensorProxy) -> TensorProxy:
    """``log(sigmoid(a))``, without overflow on the way."""
    x = floating("logsigmoid", a)
    return narrow_to(log_sigmoid_of(x), a.dtype)


@torchsymbol(F.softsign, tags=POINTWISE)
def softsign(a: TensorProxy) -> TensorProxy:
    """``a / (1 + abs(a))``."""
    return a / (1 + lang.abs(a))


@torchsymbol(F.tanhshrink, tags=POINTWISE)
def tanhshrink(a: TensorProxy) -> TensorProxy:
    """``a - tanh(a)``."""
    x = wide(a)
    return narrow_to(x - lang.tanh(x), a.dtype) if a.dtype.is_inexact else x - lang.tanh(x)


@torchsymbol(F.hardshrink, torch.hardshrink, Tensor.hardshrink, tags=POINTWISE)
def hardshrink(a: TensorProxy, lambd: float = 0.5) -> TensorProxy:
    """``a`` where it is farther than ``lambd`` from zero, zero elsewhere."""
    floating("hardshrink", a)
    inside = lang.logical_and(a >= -lambd, a <= lambd)
    return lang.where(inside, lang.zeros_like(a), a)


@torchsymbol(F.softshrink, torch._C._nn.softshrink, tags=POINTWISE)
def softshrink(a: TensorProxy, lambd: float = 0.5) -> Any:
    """``a`` moved by ``lambd`` towards zero, zero where it would cross."""
    if lambd < 0:
        return NotImplemented
    zero = lang.zeros_like(a)
    # A NaN compares as false everywhere and stays.
    return lang.where(a > lambd, a - lambd, lang.where(a < -lambd, a + lambd, a * zero))


@torchsymbol(F.threshold, F._threshold, tags=POINTWISE)  # type: ignore[attr-defined]
def threshold(a: TensorProxy, threshold: float, value: float, inplace: bool = False) -> TensorProxy:
    """``a`` where above the threshold, ``value`` elsewhere."""
    return lang.where(a <= threshold, lang.full_like(a, value), a)


@torchsymbol(torch.threshold, tags=POINTWISE, name="torch_threshold")
def torch_threshold(a: TensorProxy, threshold: float, value: float) -> TensorProxy:
    """``a`` where above the threshold, ``value`` elsewhere."""
    return lang.where(a <= threshold, lang.full_like(a, value), a)


@torchsymbol(F.glu, torch._C._nn.glu)
def glu(a: TensorProxy, dim: int = -1) -> Any:
    """One half of ``a`` times the sigmoid of the other half."""
    if not a.dtype.is_inexact:
        return NotImplemented
    half = a.shape[dim] // 2
    first, second = lang.split(a, [half, half], dim)
    return narrow_to(wide(first) * lang.sigmoid(wide(second)), a.dtype)


def _below_zero(x: TensorProxy, dim: int) -> TensorProxy:
    """Return ``x`` less its greatest element along ``dim``, on which neither softmax nor its derivatives depend."""
    if size_of(x, dim) == 0:
        return x
    with current_builder().tagged(OpTags.CONSTANT_FOR_DERIVATIVE):
        greatest = lang.amax(x, dim, True)
    return x - greatest


def softmax_of(a: TensorProxy, dim: int, dtype: Any = None) -> TensorProxy:
    """Return the softmax along ``dim``, computed in the dtype in which PyTorch does."""
    out = a.dtype if dtype is None else from_torch_dtype(dtype)
    x = floating("softmax", a if dtype is None else lang.to(a, out))
    if x.ndim == 0:
        return narrow_to(lang.exp(x - x), out)
    raised = lang.exp(_below_zero(x, dim))
    return narrow_to(raised / lang.sum(raised, dim, True), out)


def log_softmax_of(a: TensorProxy, dim: int, dtype: Any = None) -> TensorProxy:
    """Return the logarithm of the softmax along ``dim``."""
    out = a.dtype if dtype is None else from_torch_dtype(dtype)
    x = in_rows(floating("log_softmax", a if dtype is None else lang.to(a, out)))
    if x.ndim == 0:
        return narrow_to(x - x, out)
    shifted = _below_zero(x, dim)
    return narrow_to(shifted - lang.log(lang.sum(lang.exp(shifted), dim, True)), out)


def _softmax_pullback(a: TensorProxy, y: TensorProxy, dim: int, sign: int = 1) -> Pullback:
    """Return the pullback of a softmax: ``da = y * (dy - sum(y * dy))``."""

    def pullback(dy: TensorProxy) -> TensorProxy:
        part = wide(y) * wide(dy)
        da = part - wide(y) * lang.sum(part, dim, True)
        return narrow_to(da if sign > 0 else -da, a.dtype)

    return pullback


def _implicit_dim(ndim: int) -> int:
    return 0 if ndim in (0, 1, 3) else 1


@torchsymbol(F.softmax)
def softmax(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> TensorProxy:
    """Exponentials that sum to one along ``dim``."""
    return softmax_of(a, _implicit_dim(a.ndim) if dim is None else dim, dtype)


@vjp_rule(softmax)
def softmax_vjp(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """From the result alone."""
    y = softmax(a, dim, _stacklevel, dtype)
    return y, _softmax_pullback(a, y, _implicit_dim(a.ndim) if dim is None else dim)


@torchsymbol(torch.softmax, Tensor.softmax, torch.special.softmax, name="torch_softmax")
def torch_softmax(a: TensorProxy, dim: Any, dtype: Any = None) -> Any:
    """Exponentials that sum to one along ``dim``."""
    return softmax_of(a, dim, dtype)


@vjp_rule(torch_softmax)
def torch_softmax_vjp(a: TensorProxy, dim: Any, dtype: Any = None) -> Any:
    """From the result alone."""
    y = torch_softmax(a, dim, dtype)
    return y, _softmax_pullback(a, y, dim)


@torchsymbol(F.log_softmax)
def log_softmax(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> TensorProxy:
    """The logarithm of the softmax along ``dim``."""
    return log_softmax_of(a, _implicit_dim(a.ndim) if dim is None else dim, dtype)


@torchsymbol(torch.log_softmax, Tensor.log_softmax, torch.special.log_softmax, name="torch_log_softmax")
def torch_log_softmax(a: TensorProxy, dim: Any, dtype: Any = None) -> Any:
    """The logarithm of the softmax along ``dim``."""
    return log_softmax_of(a, dim, dtype)


@torchsymbol(F.softmin)
def softmin(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> TensorProxy:
    """The softmax of ``-a``."""
    return softmax_of(-a, _implicit_dim(a.ndim) if dim is None else dim, dtype)


@vjp_rule(softmin)
def softmin_vjp(a: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """From the result alone."""
    y = softmin(a, dim, _stacklevel, dtype)
    return y, _softmax_pullback(a, y, _implicit_dim(a.ndim) if dim is None else dim, -1)


__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax",
    "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "silu", "softmax", "softmin", "softplus",
    "softshrink",
    "softsign", "tanhshrink", "threshold", "torch_celu", "torch_log_softmax", "torch_relu", "torch_selu",
    "torch_softmax", "torch_threshold",
]  # fmt: skip
