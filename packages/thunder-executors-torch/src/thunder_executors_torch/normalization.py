"""Derivatives of normalisations by PyTorch's fused kernels, which save the input and two numbers per group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from thunder_executors_torch.executor import executor, gradients
from thunder_ir import DType, OpTags, TensorProxy, dtypes
from thunder_torch.plain_sizes import answered_plainly

Shape = Sequence[Any]
Rule = tuple[Any, Any]


def statistics_dtype(a: TensorProxy, weight: TensorProxy | None) -> DType:
    """Return the dtype in which PyTorch keeps mean and deviation: on CUDA that of sums, on the CPU the weight's."""
    if a.device.type == "cuda":
        return dtypes.float32 if a.dtype.bits < 32 else a.dtype
    return a.dtype if weight is None else weight.dtype


def _layer_norm(a: TensorProxy, shape: Shape, weight: Any, bias: Any, eps: float) -> tuple[TensorProxy, ...]:
    kept = a.shape[: a.ndim - len(shape)] + (1,) * len(shape)
    statistics = a.like(shape=kept, dtype=statistics_dtype(a, weight))
    return a.like(), statistics, statistics.like()


def _like_or_none(a: TensorProxy | None) -> TensorProxy | None:
    return None if a is None else a.like()


def _layer_norm_backward(
    dy: TensorProxy, a: TensorProxy, shape: Shape, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any
) -> tuple[Any, ...]:
    return a.like(), _like_or_none(weight), _like_or_none(bias)


native_layer_norm = executor.call("torch.native_layer_norm", _layer_norm)
layer_norm_backward = executor.call(
    "torch.ops.aten.native_layer_norm_backward.default", _layer_norm_backward, held=(3, 4)
)


def floating(a: Any, *rest: Any, **kwargs: Any) -> bool:
    """Whether the first argument is a floating-point tensor with elements."""
    return isinstance(a, TensorProxy) and a.dtype.is_floating and 0 not in a.shape


@executor.differentiates_torch(torch.nn.functional.layer_norm, when=floating)
def layer_norm(
    input: TensorProxy, normalized_shape: Shape, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Rule:
    """Save the input, its means and the inverse of its deviations."""
    shape = tuple(normalized_shape)
    y, mean, rstd = native_layer_norm(input, shape, weight, bias, eps)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        mask = (True, weight is not None, bias is not None)
        da, dweight, dbias = layer_norm_backward(dy, input, shape, mean, rstd, weight, bias, mask)
        return da, None, dweight, dbias

    return y, pullback


@executor.differentiates_torch(torch.layer_norm, when=floating)
def torch_layer_norm(
    input: TensorProxy,
    normalized_shape: Shape,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Rule:
    """As :func:`layer_norm`."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


def _rms_norm(a: TensorProxy, shape: Shape, weight: Any, eps: Any) -> tuple[TensorProxy, TensorProxy]:
    kept = a.shape[: a.ndim - len(shape)] + (1,) * len(shape)
    return a.like(), a.like(shape=kept, dtype=dtypes.float32 if a.dtype.bits < 32 else a.dtype)


def _rms_norm_backward(
    dy: TensorProxy, a: TensorProxy, shape: Shape, rstd: Any, weight: Any, mask: Any
) -> tuple[Any, Any]:
    return a.like(), _like_or_none(weight)


fused_rms_norm = executor.call("torch._fused_rms_norm", _rms_norm)
rms_norm_backward = executor.call("torch.ops.aten._fused_rms_norm_backward.default", _rms_norm_backward)


def _sum_to(a: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return a.sum(tuple(range(a.ndim - len(shape)))) if a.ndim > len(shape) else a


def rms_norm_backward_by_hand(
    dy: torch.Tensor, a: torch.Tensor, shape: Sequence[int], rstd: torch.Tensor, weight: Any, mask: Sequence[bool]
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """``da = rstd * (g - n * mean(g * n))`` with ``n = a * rstd`` and ``g = dy * weight``; for the CPU."""
    dims = tuple(range(a.ndim - len(shape), a.ndim))
    wide = rstd.dtype
    normal = a.to(wide) * rstd
    dy = dy.to(wide)
    dweight = _sum_to(dy * normal, shape).to(weight.dtype) if weight is not None else None
    g = dy if weight is None else dy * weight.to(wide)
    correction = (g * normal).mean(dims, keepdim=True)
    return torch.addcmul(g, normal, correction, value=-1).mul_(rstd).to(a.dtype), dweight


rms_norm_backward_on_cpu = executor.function(rms_norm_backward_by_hand, _rms_norm_backward)


@executor.differentiates_torch(torch.nn.functional.rms_norm, torch.rms_norm, when=floating)
def rms_norm(input: TensorProxy, normalized_shape: Shape, weight: Any = None, eps: float | None = None) -> Rule:
    """Save the input and the inverse of its root mean square."""
    shape = tuple(normalized_shape)
    y, rstd = fused_rms_norm(input, shape, weight, eps)
    backward = rms_norm_backward if input.device.type == "cuda" else rms_norm_backward_on_cpu

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        da, dweight = backward(dy, input, shape, rstd, weight, (True, weight is not None))
        return da, None, dweight

    return y, pullback


def _group_norm(
    a: TensorProxy, weight: Any, bias: Any, n: Any, c: Any, size: Any, groups: int, eps: float
) -> tuple[TensorProxy, ...]:
    statistics = a.like(shape=(n, groups), dtype=a.dtype if weight is None else weight.dtype)
    return a.like(), statistics, statistics.like()


def _group_norm_backward(
    dy: TensorProxy, a: TensorProxy, mean: Any, rstd: Any, weight: Any, n: Any, c: Any, *rest: Any
) -> tuple[Any, ...]:
    vector = a.like(shape=(c,), dtype=a.dtype if weight is None else weight.dtype)
    return a.like(), vector if rest[-1][1] else None, vector.like() if rest[-1][2] else None


def with_channels(a: Any, *rest: Any, **kwargs: Any) -> bool:
    """Whether the first argument is a floating-point tensor that has channels."""
    return floating(a) and a.ndim > 1


def format_of_groups(a: torch.Tensor) -> torch.memory_format:
    """Return the memory format in which PyTorch's kernels for groups take a tensor."""
    if a.device.type != "cpu":
        return torch.contiguous_format
    with answered_plainly():
        return suggest_memory_format(a)


def dense_for_groups(a: torch.Tensor) -> torch.Tensor:
    """Return ``a`` as the kernels take it."""
    return a.contiguous(memory_format=format_of_groups(a))


dense = executor.function(dense_for_groups, lambda a: a.like(), OpTags.VIEW, OpTags.MAY_COPY)


def in_sequence(vector: torch.Tensor | None) -> torch.Tensor | None:
    """Return a weight or bias as the kernels for groups read it, whatever its strides are."""
    return None if vector is None else vector.contiguous()


def group_norm_by_kernel(a: torch.Tensor, weight: Any, bias: Any, *rest: Any) -> Any:
    """Call the kernel, which reads weight and bias in sequence."""
    return torch.native_group_norm(a, in_sequence(weight), in_sequence(bias), *rest)


native_group_norm = executor.function(group_norm_by_kernel, _group_norm)


def group_norm_gradients(
    dy: torch.Tensor, a: torch.Tensor, mean: Any, rstd: Any, weight: Any, n: int, c: int, size: int, *rest: Any
) -> tuple[Any, ...]:
    """What the kernel computes, by PyTorch's autograd, which knows its own derivative of this function."""
    groups, mask = rest
    bias = dy.new_zeros(c) if mask[2] else None
    given = [t is not None for t in (a, weight, bias)]

    def normalise(*tensors: torch.Tensor) -> torch.Tensor:
        in_place = iter(tensors)
        x, w, b = (next(in_place) if is_given else None for is_given in given)
        return torch.nn.functional.group_norm(x, groups, w, b)  # type: ignore[arg-type]

    found = iter(gradients(normalise, [t for t in (a, weight, bias) if t is not None], dy))
    return tuple([next(found) if is_given else None for is_given in given])


def native_group_norm_backward(dy: torch.Tensor, a: torch.Tensor, mean: Any, rstd: Any, weight: Any, *rest: Any) -> Any:
    """Call the kernel with the gradient laid out as the input is."""
    dy = dy.contiguous(memory_format=format_of_groups(a))
    return torch.ops.aten.native_group_norm_backward(dy, a, mean, rstd, in_sequence(weight), *rest)


group_norm_backward = executor.function(
    native_group_norm_backward, _group_norm_backward, differentiable=group_norm_gradients
)


@executor.differentiates_torch(torch.nn.functional.group_norm, when=with_channels)
def group_norm(input: TensorProxy, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Rule:
    """Save the input, and mean and inverse deviation of each group."""
    a = dense(input)
    n, c = a.shape[:2]
    sizes = (n, c, math.prod(a.shape[2:]), num_groups)
    y, mean, rstd = native_group_norm(a, weight, bias, *sizes, eps)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        mask = (True, weight is not None, bias is not None)
        da, dweight, dbias = group_norm_backward(dy, a, mean, rstd, weight, *sizes, mask)
        return da, None, dweight, dbias

    return y, pullback
