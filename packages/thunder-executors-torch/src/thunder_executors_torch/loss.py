"""Derivatives of losses by PyTorch's kernels."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import torch

from thunder_executors_torch.activation import log_softmax
from thunder_executors_torch.executor import executor
from thunder_executors_torch.normalization import floating
from thunder_ir import TensorProxy, value_of

functional = torch.nn.functional
Rule = tuple[Any, Any]
REDUCTIONS = MappingProxyType({"none": 0, "mean": 1, "sum": 2})


def _nll_loss(
    a: TensorProxy, target: TensorProxy, weight: Any, reduction: int, ignore_index: int
) -> tuple[TensorProxy, TensorProxy]:
    shape = target.shape if reduction == 0 else ()
    return a.like(shape=shape), a.like(shape=(), requires_grad=False)


def _nll_loss_backward(dy: TensorProxy, a: TensorProxy, *rest: Any) -> TensorProxy:
    return a.like()


nll_loss_forward = executor.call("torch.ops.aten.nll_loss_forward.default", _nll_loss)
nll_loss2d_forward = executor.call("torch.ops.aten.nll_loss2d_forward.default", _nll_loss)
nll_loss_backward = executor.call("torch.ops.aten.nll_loss_backward.default", _nll_loss_backward, held=(3, 6))
nll_loss2d_backward = executor.call("torch.ops.aten.nll_loss2d_backward.default", _nll_loss_backward, held=(3, 6))


def _two_kernels(
    dy: torch.Tensor,
    logarithms: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: torch.Tensor,
) -> torch.Tensor:
    """Compute what :func:`in_one_buffer` does by functions that PyTorch's autograd knows."""
    flat = logarithms.ndim == 2
    through_loss = torch.ops.aten.nll_loss_backward if flat else torch.ops.aten.nll_loss2d_backward
    weight = weight if weight is None else weight.detach()
    dl = through_loss(dy, logarithms, target, weight, reduction, ignore_index, total_weight.detach())
    return torch._log_softmax_backward_data(dl, logarithms, 1, logarithms.dtype)


def in_one_buffer(
    dy: torch.Tensor,
    logarithms: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: torch.Tensor,
) -> torch.Tensor:
    """Return the gradient of the input of a cross entropy; nothing else of its size is there meanwhile.

    Args:
        dy: cotangent, of the shape of ``target`` or a scalar.
        logarithms: of the probabilities, ``float[rows, classes, ...]``.
        target: ``int64[rows, ...]``.
        weight: of the classes, ``float[classes]``.
        reduction: 0 for none, 1 for the mean, 2 for the sum.
        ignore_index: the target of rows that do not count.
        total_weight: of all rows that count, what the mean divides by.
    """
    target = target.long()
    counts = target != ignore_index
    place = target.where(counts, 0).unsqueeze(1)
    scale = dy / total_weight if reduction == 1 else dy
    scale = (scale if weight is None else scale * weight[place.squeeze(1)]).where(counts, 0).unsqueeze(1)
    return logarithms.exp().mul_(scale).scatter_add_(1, place, scale.neg())


def _cross_entropy_backward(dy: TensorProxy, logarithms: TensorProxy, *rest: Any) -> TensorProxy:
    return logarithms.like()


cross_entropy_backward = executor.function(in_one_buffer, _cross_entropy_backward, differentiable=_two_kernels)
IN_ONE_BUFFER_FROM = 1 << 16  # elements: with fewer, calls take longer than what they do


def of_classes(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> bool:
    """Whether the kernels are for this call: classes as integers, one per row or per pixel, none of them smoothed."""
    return (
        floating(input)
        and isinstance(target, TensorProxy)
        and target.dtype.name in ("int64", "uint8")
        and input.ndim in (2, 4)
        and target.ndim == input.ndim - 1
        and size_average is None
        and reduce is None
        and reduction in REDUCTIONS
        and label_smoothing == 0.0
        and (weight is None or not weight.requires_grad)
    )


@executor.differentiates_torch(functional.nll_loss, when=of_classes)
def nll_loss(
    input: TensorProxy,
    target: TensorProxy,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Rule:
    """Save input, target and the sum of weights."""
    flat = input.ndim == 2
    forward = nll_loss_forward if flat else nll_loss2d_forward
    backward = nll_loss_backward if flat else nll_loss2d_backward
    how = REDUCTIONS[reduction]
    y, total_weight = forward(input, target, weight, how, ignore_index)
    return y, lambda dy: backward(dy, input, target, weight, how, ignore_index, total_weight)


@executor.differentiates_torch(functional.cross_entropy, when=of_classes)
def cross_entropy(
    input: TensorProxy,
    target: TensorProxy,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Rule:
    """Save the logarithms of the probabilities, target and the sum of weights."""
    logarithms, to_input = log_softmax(input, 1)
    if value_of(input.numel) >= IN_ONE_BUFFER_FROM and input.dtype.bytes >= 4:  # shorter floats would be rounded more
        forward, how = nll_loss_forward if input.ndim == 2 else nll_loss2d_forward, REDUCTIONS[reduction]
        y, total = forward(logarithms, target, weight, how, ignore_index)
        return y, lambda dy: cross_entropy_backward(dy, logarithms, target, weight, how, ignore_index, total)
    y, to_logarithms = nll_loss(logarithms, target, weight, None, ignore_index, None, reduction)
    return y, lambda dy: to_input(to_logarithms(dy))


def _loss(a: TensorProxy, target: TensorProxy, reduction: int, *rest: Any) -> TensorProxy:
    return a.like(shape=a.shape if reduction == 0 else ())


def _loss_backward(dy: TensorProxy, a: TensorProxy, *rest: Any) -> TensorProxy:
    return a.like()


def _entropy(a: TensorProxy, target: TensorProxy, weight: Any, reduction: int) -> TensorProxy:
    return _loss(a, target, reduction)


mse_loss_forward = executor.call("torch.ops.aten.mse_loss.default", _loss)
mse_loss_backward = executor.call("torch.ops.aten.mse_loss_backward.default", _loss_backward)
smooth_l1_forward = executor.call("torch.ops.aten.smooth_l1_loss.default", _loss)
smooth_l1_backward = executor.call("torch.ops.aten.smooth_l1_loss_backward.default", _loss_backward)
bce_forward = executor.call("torch.ops.aten.binary_cross_entropy.default", _entropy)
bce_backward = executor.call("torch.ops.aten.binary_cross_entropy_backward.default", _loss_backward)
huber_forward = executor.call("torch.ops.aten.huber_loss.default", _loss)
huber_backward = executor.call("torch.ops.aten.huber_loss_backward.default", _loss_backward)


def alike(input: Any, target: Any, *rest: Any, **kwargs: Any) -> bool:
    """Whether input and target have one shape and dtype, and the arguments are none of the deprecated ones."""
    if not (floating(input) and isinstance(target, TensorProxy)):
        return False
    same = input.shape == target.shape and input.dtype is target.dtype
    plain = not rest and kwargs.get("size_average") is None and kwargs.get("reduce") is None
    return same and plain and kwargs.get("weight") is None and kwargs.get("reduction", "mean") in REDUCTIONS


@executor.differentiates_torch(functional.mse_loss, when=alike)
def mse_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Rule:
    """Save input and target."""
    how = REDUCTIONS[reduction]

    def pullback(dy: TensorProxy) -> tuple[Any, Any]:
        return mse_loss_backward(dy, input, target, how), mse_loss_backward(dy, target, input, how)

    return mse_loss_forward(input, target, how), pullback


def alike_and_smooth(input: Any, target: Any, *rest: Any, beta: float = 1.0, **kwargs: Any) -> bool:
    """Whether the kernel is that of the call: PyTorch has another one, with another slope at 0, for ``beta`` 0."""
    return beta != 0 and alike(input, target, *rest, **kwargs)


@executor.differentiates_torch(functional.smooth_l1_loss, when=alike_and_smooth)
def smooth_l1_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Rule:
    """Save input and target."""
    how = REDUCTIONS[reduction]

    def pullback(dy: TensorProxy) -> tuple[Any, Any]:
        return smooth_l1_backward(dy, input, target, how, beta), smooth_l1_backward(dy, target, input, how, beta)

    return smooth_l1_forward(input, target, how, beta), pullback


@executor.differentiates_torch(functional.huber_loss, when=alike)
def huber_loss(
    input: TensorProxy, target: TensorProxy, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Rule:
    """Save input and target."""
    how = REDUCTIONS[reduction]

    def pullback(dy: TensorProxy) -> tuple[Any, Any]:
        return huber_backward(dy, input, target, how, delta), huber_backward(dy, target, input, how, delta)

    return huber_forward(input, target, how, delta), pullback


def of_constant_targets(input: Any, target: Any, *rest: Any, **kwargs: Any) -> bool:
    """Whether there is a kernel for all gradients of the call: PyTorch computes that of targets by several."""
    return alike(input, target, *rest, **kwargs) and not target.requires_grad


@executor.differentiates_torch(functional.binary_cross_entropy, when=of_constant_targets)
def binary_cross_entropy(
    input: TensorProxy,
    target: TensorProxy,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Rule:
    """Save input and target."""
    how = REDUCTIONS[reduction]
    return bce_forward(input, target, None, how), lambda dy: (bce_backward(dy, input, target, None, how), None)
