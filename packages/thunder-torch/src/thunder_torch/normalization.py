"""Normalisation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

import thunder_lang as lang
from thunder_autograd import vjp_rule
from thunder_ir import Symbol, TensorProxy, dtypes, same_shape
from thunder_torch.inplace import batch_norm_updating, instance_norm_updating
from thunder_torch.reduction import root
from thunder_torch.rounding import narrow_to, wide
from thunder_torch.row_order import in_rows
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

state(
    "_batch_norm_with_update", "_native_batch_norm_legit", "native_batch_norm", "native_layer_norm",
    traits=(Trait.OTHERWISE_ON_META,),
)  # fmt: skip
state("layer_norm", traits=(Trait.IN_ROWS,))
state("batch_norm", batch_norm_updating, traits=(Trait.ROWS_ON_META,))
state("batch_norm", "group_norm", "normalize", "rms_norm", traits=(Trait.KEEPS_ROWS,))


def _trailing(a: TensorProxy, shape: Any) -> tuple[int, ...]:
    return tuple(range(a.ndim - len(tuple(shape)), a.ndim))


def _sizes(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _are_of(shape: Any, *parameters: Any) -> bool:
    """Whether parameters have the shape that PyTorch demands: others would be broadcast."""
    return all([p is None or same_shape(p.shape, shape) for p in parameters])


def _affine(a: TensorProxy, weight: Any, bias: Any) -> TensorProxy:
    if weight is not None:
        a = a * wide(weight)
    return a if bias is None else a + wide(bias)


@torchsymbol(F.layer_norm)
def layer_norm(a: TensorProxy, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Mean zero and variance one over the last dimensions, then scaled and shifted."""
    shape = _sizes(normalized_shape)
    if not shape or not _are_of(shape, weight, bias) or not same_shape(a.shape[-len(shape) :], shape):
        return NotImplemented
    x = wide(in_rows(a))
    variance, mean = lang.var_mean(x, _trailing(a, shape), True, correction=0)
    return narrow_to(_affine((x - mean) * lang.rsqrt(variance + eps), weight, bias), a.dtype)


@torchsymbol(F.rms_norm, torch.rms_norm)
def rms_norm(a: TensorProxy, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Mean square one over the last dimensions, then scaled."""
    shape = _sizes(normalized_shape)
    if not a.dtype.is_floating or not shape or not same_shape(a.shape[-len(shape) :], shape):
        return NotImplemented
    if not _are_of(shape, weight):
        return NotImplemented
    x = wide(in_rows(a))
    if eps is None:
        eps = torch.finfo(getattr(torch, x.dtype.name)).eps
    normal = x * lang.rsqrt(lang.mean(x * x, _trailing(a, shape), True) + eps)
    return narrow_to(_affine(normal, weight, None), a.dtype)


def _per_channel(a: TensorProxy, parameter: Any) -> Any:
    """Return a parameter of shape ``(channels,)`` so that it broadcasts over ``(batch, channels, ...)``."""
    return None if parameter is None else lang.reshape(parameter, (1, a.shape[1]) + (1,) * (a.ndim - 2))


@torchsymbol(F.group_norm)
def group_norm(a: TensorProxy, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Mean zero and variance one over groups of channels, then scaled and shifted."""
    if a.numel == 0:
        return NotImplemented
    batch, channels = a.shape[:2]
    if channels % num_groups or not _are_of((channels,), weight, bias):
        return NotImplemented
    x = lang.reshape(wide(a), (batch, num_groups, a.numel // (batch * num_groups)))
    variance, mean = lang.var_mean(x, 2, True, correction=0)
    normal = lang.reshape((x - mean) * lang.rsqrt(variance + eps), tuple(a.shape))
    return narrow_to(_affine(normal, _per_channel(a, weight), _per_channel(a, bias)), a.dtype)


@torchsymbol(torch.group_norm, name="torch_group_norm")
def torch_group_norm(
    a: TensorProxy, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Any:
    """Mean zero and variance one over groups of channels, then scaled and shifted."""
    return group_norm(a, num_groups, weight, bias, eps)


@torchsymbol(torch.layer_norm, name="torch_layer_norm")
def torch_layer_norm(
    a: TensorProxy,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Mean zero and variance one over the last dimensions, then scaled and shifted."""
    return layer_norm(a, normalized_shape, weight, bias, eps)


def _batch_statistics(a: TensorProxy) -> tuple[TensorProxy, TensorProxy, Any]:
    dims = (0, *range(2, a.ndim))
    variance, mean = lang.var_mean(a, dims, False, correction=0)
    return variance, mean, a.numel // a.shape[1]


def _statistics(x: TensorProxy, running_mean: Any, running_var: Any, of_batch: bool) -> tuple[Any, Any]:
    """Return mean and variance: those of the batch, or the running ones."""
    if not of_batch:
        return wide(running_mean), wide(running_var)
    variance, mean, _ = _batch_statistics(x)
    return mean, variance


def _batch_normal(a: TensorProxy, x: TensorProxy, mean: Any, variance: Any, weight: Any, bias: Any, eps: Any) -> Any:
    normal = (x - _per_channel(a, mean)) * lang.rsqrt(_per_channel(a, variance) + eps)
    return narrow_to(_affine(normal, _per_channel(a, weight), _per_channel(a, bias)), a.dtype)


def _batch_normal_pullback(
    a: TensorProxy, x: TensorProxy, mean: Any, variance: Any, weight: Any, bias: Any, eps: Any, of_batch: bool
) -> Callable[[TensorProxy], tuple[Any, ...]]:
    """Return the pullback of :func:`_batch_normal`, with places for the gradients of statistics, which have none.

    With ``n`` the normal input, ``r`` the inverse deviation and means over the elements of each channel,
    ``da = w * r * (dy - mean(dy) - n * mean(dy * n))`` (Ioffe and Szegedy, "Batch Normalization", 2015, section 3,
    with what is summed for ``w`` and the bias put in). What is kept is the input, as in PyTorch.
    """

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        rstd = lang.rsqrt(_per_channel(a, variance) + eps)
        g, normal, dims = wide(dy), (x - _per_channel(a, mean)) * rstd, (0, *range(2, a.ndim))
        dbias, dweight = lang.sum(g, dims), lang.sum(g * normal, dims)
        if of_batch:
            count = a.numel // a.shape[1]
            g = g - _per_channel(a, dbias / count) - normal * _per_channel(a, dweight / count)
        scale = rstd if weight is None else rstd * wide(_per_channel(a, weight))
        given = (None if p is None else narrow_to(d, p.dtype) for p, d in ((weight, dweight), (bias, dbias)))
        return narrow_to(g * scale, a.dtype), None, None, *given

    return pullback


def _in_format(a: TensorProxy) -> TensorProxy:
    """Return a tensor as PyTorch lays out what it computes of it; images may have their channels last."""
    return in_rows(a) if a.ndim < 4 else a


@torchsymbol(F.batch_norm)
def batch_norm(
    a: TensorProxy,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Mean zero and variance one over the batch for each channel; the running statistics are only read."""
    if a.numel == 0:
        return NotImplemented
    x = wide(_in_format(a))
    mean, variance = _statistics(x, running_mean, running_var, bool(training or running_mean is None))
    return _batch_normal(a, x, mean, variance, weight, bias, eps)


@vjp_rule(batch_norm)
def batch_norm_vjp(
    a: TensorProxy,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Two sums over the elements of each channel; see :func:`_batch_normal_pullback`."""
    x, of_batch = wide(_in_format(a)), bool(training or running_mean is None)
    mean, variance = _statistics(x, running_mean, running_var, of_batch)
    given = (a, x, mean, variance, weight, bias, eps)
    return _batch_normal(*given), _batch_normal_pullback(*given, of_batch)


def _while_updating(updating: Callable[..., Any], normal: Symbol) -> Callable[..., Any]:
    """Return the meta function of a normalisation that brings its running statistics along: those of one that does not.

    It leaves to PyTorch what that refuses, a single value to a channel.
    """
    signature, of_normal = inspect.signature(updating), normal.meta
    assert of_normal is not None

    def meta(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        a, *statistics, weight, bias, updates, momentum, eps = given.args
        if not updates or a.ndim < 3 or not all([d.__class__ is int and d > 1 for d in a.shape]):
            return NotImplemented
        if not all([isinstance(s, TensorProxy) and s.ndim == 1 and not s.requires_grad for s in statistics]):
            return NotImplemented
        mean, var = [TensorProxy(s.shape, s.dtype, s.device, False, (1,)) for s in statistics]
        return mean, var, of_normal(a, None, None, weight, bias, True, momentum, eps)

    return meta


@torchsymbol(batch_norm_updating, name="batch_norm_updating", meta=_while_updating(batch_norm_updating, batch_norm))
def batch_norm_with_statistics(
    a: TensorProxy,
    running_mean: TensorProxy,
    running_var: TensorProxy,
    weight: Any = None,
    bias: Any = None,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """The new running statistics, and the result of ``batch_norm`` in training."""
    if a.numel == 0 or not training:
        return NotImplemented
    x = wide(_in_format(a))
    variance, mean, count = _batch_statistics(x)
    statistics = _new_statistics(running_mean, running_var, mean, variance, count, momentum)
    return *statistics, _batch_normal(a, x, mean, variance, weight, bias, eps)


@vjp_rule(batch_norm_with_statistics)
def batch_norm_with_statistics_vjp(
    a: TensorProxy,
    running_mean: TensorProxy,
    running_var: TensorProxy,
    weight: Any = None,
    bias: Any = None,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """As of ``batch_norm``; the running statistics have no part in it."""
    x = wide(_in_format(a))
    variance, mean, count = _batch_statistics(x)
    given = (a, x, mean, variance, weight, bias, eps)
    y, pullback = _batch_normal(*given), _batch_normal_pullback(*given, True)
    statistics = _new_statistics(running_mean, running_var, mean, variance, count, momentum)
    return (*statistics, y), lambda dmean, dvariance, dy: () if dy is None else pullback(dy)


def _new_statistics(
    running_mean: TensorProxy, running_var: TensorProxy, mean: TensorProxy, variance: TensorProxy, count: Any, by: float
) -> tuple[Any, Any]:
    unbiased = variance * (count / (count - 1)) if count > 1 else variance
    return _moved(running_mean, mean, by), _moved(running_var, unbiased, by)


def _moved(old: TensorProxy, new: TensorProxy, momentum: float) -> Any:
    """Return running statistics after some of a batch."""
    return narrow_to(wide(old) * (1 - momentum) + lang.to(new, wide(old).dtype) * momentum, old.dtype)


@torchsymbol(F.instance_norm)
def instance_norm(
    a: TensorProxy,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Mean zero and variance one over each channel of each element of the batch."""
    if a.numel == 0 or a.ndim < 3:
        return NotImplemented
    x = wide(a)
    if not use_input_stats:
        return _batch_normal(a, x, wide(running_mean), wide(running_var), weight, bias, eps)
    variance, mean = lang.var_mean(x, tuple(range(2, a.ndim)), True, correction=0)
    return _instance_normal(a, x, mean, variance, weight, bias, eps)


def _instance_normal(a: TensorProxy, x: TensorProxy, mean: Any, variance: Any, weight: Any, bias: Any, eps: Any) -> Any:
    normal = (x - mean) * lang.rsqrt(variance + eps)
    return narrow_to(_affine(normal, _per_channel(a, weight), _per_channel(a, bias)), a.dtype)


@torchsymbol(
    instance_norm_updating,
    name="instance_norm_updating",
    meta=_while_updating(instance_norm_updating, instance_norm),
)
def instance_norm_with_statistics(
    a: TensorProxy,
    running_mean: TensorProxy,
    running_var: TensorProxy,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """The new running statistics, means over the elements of the batch; and the result of ``instance_norm``."""
    count = a.numel // (a.shape[0] * a.shape[1]) if a.ndim > 2 and a.numel else 0
    if count < 2 or not use_input_stats:
        return NotImplemented
    x = wide(a)
    inner = tuple(range(2, a.ndim))
    variance, mean = lang.var_mean(x, inner, True, correction=0)
    outer = (0, *inner)
    means = _moved(running_mean, lang.mean(mean, outer), momentum)
    variances = _moved(running_var, lang.mean(variance, outer) * (count / (count - 1)), momentum)
    return means, variances, _instance_normal(a, x, mean, variance, weight, bias, eps)


@torchsymbol(F.local_response_norm)
def local_response_norm(a: TensorProxy, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Each element divided by a power of the mean square of its neighbours in the channels."""
    if a.numel == 0 or a.dtype in (dtypes.float16, dtypes.bfloat16):
        return NotImplemented
    square = lang.movedim(a * a, 1, -1)
    padded = lang.pad(square, (size // 2, (size - 1) // 2))
    mean = lang.movedim(lang.sum(lang.unfold(padded, a.ndim - 1, size, 1), -1), -1, 1) / size
    return a / lang.pow(mean * alpha + k, beta)


@torchsymbol(F.normalize)
def normalize(a: TensorProxy, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Each vector along a dimension divided by its norm."""
    if p != 2.0 or not a.dtype.is_floating or a.dtype in (dtypes.float16, dtypes.bfloat16):
        return NotImplemented
    norm = root(lang.sum(a * a, dim, True))
    return a / lang.clamp(norm, eps, None)


__all__ = [
    "batch_norm", "batch_norm_with_statistics", "group_norm", "instance_norm", "instance_norm_with_statistics",
    "layer_norm", "local_response_norm", "normalize", "rms_norm",
    "torch_group_norm", "torch_layer_norm",
]  # fmt: skip
