"""Derivatives of normalisations over the batch by PyTorch's kernels, cuDNN's among them where PyTorch chooses them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors_torch import calls
from thunder_executors_torch.executor import executor
from thunder_executors_torch.normalization import statistics_dtype, with_channels
from thunder_ir import OpTags, TensorProxy, dtypes, value_of
from thunder_ir.number_proxies import Dimension
from thunder_torch.inplace import batch_norm_updating

Rule = tuple[Any, Any]


def _count(sizes: Sequence[Any]) -> int:
    """How many elements there are of these sizes; open ones count as they are at hand, being more than 1 anyway."""
    return math.prod(map(value_of, sizes))


def _statistics(a: TensorProxy, weight: Any) -> TensorProxy:
    return a.like(shape=(a.shape[1],), dtype=statistics_dtype(a, weight))


def _with_update(
    a: TensorProxy, weight: Any, bias: Any, mean: TensorProxy, var: TensorProxy, momentum: float, eps: float
) -> tuple[TensorProxy, ...]:
    kept = _statistics(a, weight)
    reserve = a.like(shape=(0,), dtype=dtypes.uint8)  # cuDNN's scratch, whose size only it knows
    return a.like(), kept, kept.like(), reserve, mean.like(), var.like()


def _plain(
    a: TensorProxy, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *rest: Any
) -> tuple[TensorProxy, ...]:
    kept = _statistics(a, weight)
    if not training and a.device.type == "cpu":  # nothing to keep
        kept = kept.like(shape=(0,))
    return a.like(), kept, kept.like()


def _backward_meta(dy: TensorProxy, a: TensorProxy, weight: Any, *rest: Any) -> tuple[Any, ...]:
    vector = a.like(shape=(a.shape[1],), dtype=a.dtype if weight is None else weight.dtype)
    mask = rest[-1] if isinstance(rest[-1], (tuple, list)) else rest[-2]
    return a.like(), vector if mask[1] else None, vector.like() if mask[2] else None


updating = executor.call(
    "torch.ops.aten._batch_norm_with_update_functional.default", _with_update, OpTags.DONT_RECOMPUTE, held=(3, 4)
)
updating_backward = executor.call("torch.ops.aten.batch_norm_backward.default", _backward_meta, held=(3, 4, 5, 6))
native = executor.call("torch.native_batch_norm", _plain)
native_backward = executor.call("torch.ops.aten.native_batch_norm_backward.default", _backward_meta, held=(3, 4, 5, 6))


def trains(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = True,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> bool:
    """Whether statistics of the batch are taken, of more than one element per channel."""
    several = with_channels(input) and _count(input.shape) > value_of(input.shape[1]) > 0
    return bool(several and training is True and weight is not None and momentum is not None)


@executor.differentiates_torch(batch_norm_updating, when=trains)
def batch_norm_with_statistics(
    input: TensorProxy,
    running_mean: TensorProxy,
    running_var: TensorProxy,
    weight: Any = None,
    bias: Any = None,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Rule:
    """Save the input, and mean and inverse deviation of each channel."""
    y, mean, rstd, reserve, new_mean, new_var = updating(input, weight, bias, running_mean, running_var, momentum, eps)

    def pullback(dmean: Any, dvar: Any, dy: TensorProxy | None) -> tuple[Any, ...]:
        if dy is None:
            return ()
        mask = (True, weight is not None, bias is not None)
        saved = (None, None, mean, rstd, True, eps, mask, reserve)  # the running statistics have no part in it
        da, dweight, dbias = updating_backward(dy, input, weight, *saved)
        return da, None, None, dweight, dbias

    return (new_mean, new_var, y), pullback


def has_kernel(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> bool:
    """Whether the statistics are either the running ones, or the batch's with none to be updated."""
    if not with_channels(input) or not _count(input.shape):
        return False
    return (
        running_mean is not None
        and not training
        or (running_mean is None and _count(input.shape) > value_of(input.shape[1]))
    )


@executor.differentiates_torch(torch.nn.functional.batch_norm, when=has_kernel)
def batch_norm(
    input: TensorProxy,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Rule:
    """Save the input, and mean and inverse deviation of each channel unless they are the running ones."""
    training = running_mean is None
    y, mean, rstd = native(input, weight, bias, running_mean, running_var, training, momentum, eps)
    kept = (mean, rstd) if training else (None, None)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        mask = (True, weight is not None, bias is not None)
        running = (running_mean, running_var)
        da, dweight, dbias = native_backward(dy, input, weight, *running, *kept, training, eps, mask)
        return da, None, None, dweight, dbias

    return y, pullback


def of_instances(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> bool:
    """Whether statistics of each instance are taken, and no running ones are involved."""
    plain = running_mean is None and running_var is None and use_input_stats is True
    return plain and with_channels(input) and input.ndim > 2 and _count(input.shape[2:]) > 1


@executor.differentiates_torch(torch.nn.functional.instance_norm, when=of_instances)
def instance_norm(
    input: TensorProxy,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Rule:
    """As a batch of one, whose channels are those of all instances."""
    n, c = input.shape[:2]
    one = (1, n * c, *input.shape[2:])
    a = prims.reshape(input, one)
    y, pull = batch_norm(a, None, None, _repeated(weight, n), _repeated(bias, n), True, momentum, eps)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        da, _, _, dweight, dbias = pull(prims.reshape(dy, one))
        return prims.reshape(da, input.shape), None, None, _added(dweight, n, c), _added(dbias, n, c)

    return prims.reshape(y, input.shape), pullback


def _repeated(vector: Any, n: Dimension) -> Any:
    """Return a parameter of the channels for the channels of all instances."""
    if vector is None:
        return None
    (c,) = vector.shape
    return calls.reshape(calls.expand(vector, (n, c)), (n * c,))


def _added(gradient: Any, n: Dimension, c: Dimension) -> Any:
    return None if gradient is None else prims.sum(prims.reshape(gradient, (n, c)), (0,))
