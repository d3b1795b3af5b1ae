"""Losses."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import TensorProxy, dtypes
from thunder_ir.number_proxies import Dimension, same_shape
from thunder_torch.activation import log_sigmoid_of, log_softmax_of
from thunder_torch.rounding import half_of, narrow_to, wide
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

state("binary_cross_entropy", "_ctc_loss", traits=(Trait.MAY_FAIL,))
state("ctc_loss", traits=(Trait.MAY_FAIL, Trait.SHAPED_BY_METADATA, Trait.OTHERWISE_ON_META))
state("cross_entropy", "nll_loss", traits=(Trait.IN_ROWS,))
state("mse_loss", "smooth_l1_loss", traits=(Trait.KEEPS_ROWS,))
state("gaussian_nll_loss", traits=(Trait.SHAPED_BY_METADATA,))


def reduced(loss: TensorProxy, reduction: str) -> TensorProxy:
    """Return the losses, their mean or their sum."""
    if reduction == "none":
        return loss
    return lang.mean(loss) if reduction == "mean" else lang.sum(loss)


def reduction_of(size_average: Any, reduce: Any, reduction: str) -> str:
    """Return the reduction, the old arguments first."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def _with_weight(loss: TensorProxy, a: TensorProxy, weight: TensorProxy) -> TensorProxy:
    """Return the losses for ``a``, each times its weight."""
    if tuple(weight.shape) != tuple(a.shape):
        raise ValueError("Weights and input must have the same size.")
    return loss * weight


def _mean_by_weight(loss: TensorProxy, weight: TensorProxy, reduction: str) -> TensorProxy:
    """Return weighted losses, the sum of them, or that over the sum of the weights."""
    return lang.sum(loss) / lang.sum(weight) if reduction == "mean" else reduced(loss, reduction)


@torchsymbol(F.mse_loss)
def mse_loss(
    a: TensorProxy,
    target: TensorProxy,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> TensorProxy:
    """The square of the difference."""
    loss = (a - target) * (a - target)
    reduction = reduction_of(size_average, reduce, reduction)
    if weight is None:
        return reduced(loss, reduction)
    return _mean_by_weight(_with_weight(loss, a, weight), weight, reduction)


@torchsymbol(F.l1_loss)
def l1_loss(
    a: TensorProxy,
    target: TensorProxy,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The absolute difference."""
    if a.dtype.is_complex or target.dtype.is_complex:
        return NotImplemented
    loss, reduction = lang.abs(a - target), reduction_of(size_average, reduce, reduction)
    if weight is None:
        return reduced(loss, reduction)
    return _mean_by_weight(_with_weight(loss, a, weight), weight, reduction)


def _distance(a: TensorProxy, target: TensorProxy, end: Any) -> tuple[TensorProxy, TensorProxy]:
    """Return the absolute difference, and the square of it below ``end``: smooth at 0, of the infinite not taken."""
    difference = a - target
    z = lang.abs(difference)
    near = lang.where(z >= end, lang.zeros_like(difference), difference)
    return z, near * near


@torchsymbol(F.huber_loss)
def huber_loss(
    a: TensorProxy, target: TensorProxy, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> TensorProxy:
    """Half the square of small differences, linear in large ones."""
    half = half_of(a, target, weight)
    a, target, weight = (wide(v) if half else v for v in (a, target, weight))
    z, square = _distance(a, target, delta)
    loss = lang.where(z < delta, 0.5 * square, delta * (z - 0.5 * delta))
    loss = reduced(loss if weight is None else _with_weight(loss, a, weight), reduction)
    return narrow_to(loss, half) if half else loss


@torchsymbol(F.smooth_l1_loss)
def smooth_l1_loss(
    a: TensorProxy,
    target: TensorProxy,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """The absolute difference, rounded off below ``beta``."""
    half = half_of(a, target)
    a, target = (wide(v) if half else v for v in (a, target))
    z, square = _distance(a, target, beta)
    loss = z if beta == 0 else lang.where(z < beta, 0.5 * square / beta, z - 0.5 * beta)
    loss = reduced(loss, reduction_of(size_average, reduce, reduction))
    return narrow_to(loss, half) if half else loss


@torchsymbol(F.binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits(
    a: TensorProxy,
    target: TensorProxy,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> TensorProxy:
    """Cross entropy of logits of two classes and probabilities; the dtype of the latter is that of the result."""
    log_of_one = log_sigmoid_of(a)
    if pos_weight is None:
        loss = (1 - target) * a - log_of_one
    else:
        loss = (1 - target) * a - (1 + (pos_weight - 1) * target) * log_of_one
    if weight is not None:
        loss = loss * weight
    loss = narrow_to(loss, target.dtype)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


@torchsymbol(F.kl_div)
def kl_div(
    a: TensorProxy,
    target: TensorProxy,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """The Kullback-Leibler divergence of log-probabilities from probabilities."""
    if not a.dtype.is_floating or not target.dtype.is_floating:
        return NotImplemented
    loss = lang.exp(target) * (target - a) if log_target else lang.xlogy(target, target) - target * a
    if size_average is None and reduce is None and reduction == "batchmean":
        return lang.sum(loss) / a.shape[0] if a.ndim else lang.sum(loss)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def negative_log_likelihood(
    a: TensorProxy, target: TensorProxy, weight: Any, ignore_index: int, reduction: str, smoothing: float = 0.0
) -> Any:
    """Return the loss of log-probabilities, classes in the second dimension (or the only one), for target classes.

    What PyTorch demands of sizes is asked here: ``gather`` takes fewer indices than there are rows.

    Args:
        a: shape ``(n, c, ...)`` or ``(c,)``.
        target: shape ``(n, ...)`` or ``()``, classes.
        weight: shape ``(c,)``, of each class, or ``None``.
        ignore_index: the class that counts for nothing.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        smoothing: what part of the probability is spread over all classes.
    """
    dim = 1 if a.ndim > 1 else 0
    if not same_shape(target.shape, (*a.shape[:dim], *a.shape[dim + 1 :])):
        return NotImplemented
    if weight is not None and not same_shape(weight.shape, a.shape[dim : dim + 1]):
        return NotImplemented
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        return NotImplemented
    target = lang.to(target, dtypes.int64)
    ignored = lang.eq(target, ignore_index)
    safe = lang.where(ignored, lang.zeros_like(target), target)
    picked = lang.squeeze(prims.gather(a, lang.unsqueeze(safe, dim), dim), dim)
    zero = lang.zeros_like(picked)
    each = None
    if weight is not None:
        flat = lang.reshape(safe, (safe.numel,))
        each = lang.reshape(prims.take(weight, flat, 0), tuple(safe.shape))
    loss = -picked if each is None else -picked * each
    loss = lang.where(ignored, zero, loss)
    total = lang.sum(lang.where(ignored, zero, lang.ones_like(picked) if each is None else each))
    if smoothing > 0:
        smooth = -_weighted_sum(a, weight, dim)
        smooth = lang.where(ignored, zero, smooth)
        classes = a.shape[dim]
        loss = loss * (1 - smoothing) + smooth * (smoothing / classes)
    if reduction == "none":
        return loss
    return lang.sum(loss) / total if reduction == "mean" else lang.sum(loss)


def _weighted_sum(a: TensorProxy, weight: Any, dim: int) -> TensorProxy:
    if weight is not None:
        shape: list[Dimension] = [1] * a.ndim
        shape[dim] = a.shape[dim]
        a = a * lang.reshape(weight, tuple(shape))
    return lang.sum(a, dim)


@torchsymbol(F.nll_loss)
def nll_loss(
    a: TensorProxy,
    target: TensorProxy,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The negative log-probability of the target class."""
    if a.numel == 0 or a.dtype in (dtypes.float16, dtypes.bfloat16):
        return NotImplemented
    return negative_log_likelihood(a, target, weight, ignore_index, reduction_of(size_average, reduce, reduction))


@torchsymbol(F.cross_entropy)
def cross_entropy(
    a: TensorProxy,
    target: TensorProxy,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The cross entropy of logits and target classes, or target probabilities."""
    if a.numel == 0 or a.dtype in (dtypes.float16, dtypes.bfloat16):
        return NotImplemented
    how = reduction_of(size_average, reduce, reduction)
    dim = 1 if a.ndim > 1 else 0
    log_probabilities = log_softmax_of(a, dim)
    if not target.dtype.is_floating:
        return negative_log_likelihood(log_probabilities, target, weight, ignore_index, how, label_smoothing)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / a.shape[dim]
    loss = -_weighted_sum(log_probabilities * target, weight, dim)
    if how == "none":
        return loss
    total = lang.sum(loss)
    return total / (a.numel // a.shape[dim]) if how == "mean" else total


__all__ = [
    "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div", "l1_loss", "mse_loss",
    "negative_log_likelihood", "nll_loss", "reduced", "reduction_of", "smooth_l1_loss",
]  # fmt: skip
