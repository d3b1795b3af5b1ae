"""Dtypes, devices, places and orders in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.calls import to_dtype
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, Device, DType, TensorProxy, dtypes
from thunder_torch.convert import to_torch_device, to_torch_dtype

executor.implements(prims.clone)(torch.clone)
executor.implements(prims.item)(torch.Tensor.item)


def loses_imaginary_part(bound: BoundSymbol) -> bool:
    """Whether a complex tensor becomes a real one, about which PyTorch warns."""
    a, dtype = bound.args
    return bool(a.dtype.is_complex and not dtype.is_complex and not dtype.is_bool)


def _part(a: TensorProxy) -> TensorProxy:
    return a.like(dtype=dtypes.float_of(a.dtype))


_real = executor.call("torch.real", _part)


@executor.transforms(prims.convert_element_type, when=loses_imaginary_part)
def convert_complex(a: TensorProxy, dtype: DType) -> Any:
    return to_dtype(_real(a), to_torch_dtype(dtype))


@executor.calls(torch.Tensor.to, prims.convert_element_type)
def convert_element_type(a: TensorProxy, dtype: DType) -> Any:
    return arguments(a, to_torch_dtype(dtype))


@executor.calls(torch.Tensor.to, prims.device_put)
def device_put(a: TensorProxy, device: Device) -> Any:
    return arguments(a, to_torch_device(device))


@executor.calls(torch.Tensor.view, prims.bitcast)
def bitcast(a: TensorProxy, dtype: DType) -> Any:
    return arguments(a, to_torch_dtype(dtype))


@executor.calls(torch.Tensor.view_as, prims.shallow_copy)
def shallow_copy(a: TensorProxy) -> Any:
    return arguments(a, a)


def row_major(bound: BoundSymbol) -> bool:
    """Whether the wanted order is that of contiguous tensors."""
    a, order = bound.args
    return tuple(order) == tuple(range(a.ndim - 1, -1, -1))


def channels_last(bound: BoundSymbol) -> bool:
    """Whether the wanted order is PyTorch's ``channels_last``."""
    return tuple(bound.args[1]) == (3, 0, 2, 1)


@executor.calls(torch.Tensor.contiguous, prims.stride_order, when=row_major)
def contiguous(a: TensorProxy, order: Sequence[int]) -> Any:
    return arguments(a)


@executor.calls(torch.Tensor.contiguous, prims.stride_order, when=channels_last)
def contiguous_channels_last(a: TensorProxy, order: Sequence[int]) -> Any:
    return arguments(a, memory_format=torch.channels_last)


@executor.implements(prims.stride_order)
def stride_order(a: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    outermost_first = sorted(range(a.ndim), key=lambda dim: -order[dim])
    dense = a.permute(outermost_first).contiguous()
    return dense.permute([outermost_first.index(dim) for dim in range(a.ndim)])
