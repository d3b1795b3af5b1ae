"""Calls of PyTorch that several execution transforms are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thunder_executors_torch.executor import executor
from thunder_ir import Device, DType, NumberProxy, OpTags, TensorProxy, dtypes
from thunder_torch.convert import from_torch_device, from_torch_dtype, to_torch_device, to_torch_dtype


def _shaped(a: TensorProxy, shape: Sequence[Any]) -> TensorProxy:
    return a.like(shape=tuple(shape))


def _of_dtype(a: TensorProxy, dtype: Any) -> TensorProxy:
    return a.like(dtype=from_torch_dtype(dtype))


def _full(shape: Sequence[Any], value: Any, *, dtype: Any, device: Any) -> TensorProxy:
    return TensorProxy(tuple(shape), from_torch_dtype(dtype), from_torch_device(device))


def _same(a: TensorProxy) -> TensorProxy:
    return a.like()


view = executor.call("torch.Tensor.view", _shaped, OpTags.VIEW)
expand = executor.call("torch.Tensor.expand", _shaped, OpTags.VIEW)
reshape = executor.call("torch.reshape", _shaped, OpTags.VIEW, OpTags.MAY_COPY)
to_dtype = executor.call("torch.Tensor.to", _of_dtype, OpTags.CAST)
full_like_given = executor.call("torch.full", _full)
clone = executor.call("torch.clone", _same)


def full(shape: Sequence[Any], value: Any, dtype: DType, device: Device) -> TensorProxy:
    """Record a tensor with ``value`` everywhere."""
    made: TensorProxy = full_like_given(
        tuple(shape), value, dtype=to_torch_dtype(dtype), device=to_torch_device(device)
    )
    return made


def as_tensor(value: Any, like: TensorProxy) -> TensorProxy:
    """Return ``value`` if it is a tensor, else record one without dimensions that holds it, of ``like``'s dtype."""
    return value if isinstance(value, TensorProxy) else full((), value, like.dtype, like.device)


def first_tensor(*values: Any) -> TensorProxy:
    """Return the first tensor among operands."""
    return next(v for v in values if isinstance(v, TensorProxy))


def is_number(value: Any) -> bool:
    """Whether an operand is a number, known now or at run time."""
    return isinstance(value, (int, float, complex, NumberProxy))


def long(indices: TensorProxy) -> TensorProxy:
    """Return indices as ``int64``, which PyTorch wants."""
    if indices.dtype is dtypes.int64:
        return indices
    converted: TensorProxy = to_dtype(indices, to_torch_dtype(dtypes.int64))
    return converted


contiguous = executor.call("torch.Tensor.contiguous", _same, OpTags.VIEW, OpTags.MAY_COPY)


def _chosen(mask: TensorProxy, a: TensorProxy, b: Any) -> TensorProxy:
    return a.like(shape=mask.shape)


where = executor.call("torch.where", _chosen)
