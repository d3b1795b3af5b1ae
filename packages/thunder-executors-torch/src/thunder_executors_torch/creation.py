"""Tensors out of no tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, Device, DType
from thunder_torch.convert import to_torch_device, to_torch_dtype


@executor.calls(torch.full, prims.full)
def full(shape: Sequence[Any], value: Any, dtype: DType, device: Device) -> Any:
    return arguments(tuple(shape), value, dtype=to_torch_dtype(dtype), device=to_torch_device(device))


@executor.calls(torch.empty, prims.empty)
def empty(shape: Sequence[Any], dtype: DType, device: Device) -> Any:
    return arguments(tuple(shape), dtype=to_torch_dtype(dtype), device=to_torch_device(device))


@executor.calls(torch.tensor, prims.tensor_from_sequence)
def tensor_from_sequence(sequence: Any, dtype: DType, device: Device) -> Any:
    return arguments(sequence, dtype=to_torch_dtype(dtype), device=to_torch_device(device))


def known_and_growing(bound: BoundSymbol) -> bool:
    """Whether length and step are numbers known now, and there is a step at all."""
    length, start, step = bound.args[:3]
    return all(isinstance(n, (int, float)) for n in (length, start, step)) and length > 0 and step != 0


@executor.calls(torch.arange, prims.iota, when=known_and_growing)
def iota(length: int, start: Any, step: Any, dtype: DType, device: Device) -> Any:
    """The end lies halfway beyond the last element, so that rounding cannot add or take one."""
    end = start + length * step if dtype.is_integer else start + (length - 0.5) * step
    return arguments(start, end, step, dtype=to_torch_dtype(dtype), device=to_torch_device(device))


@executor.implements(prims.iota)
def iota_of_any_length(length: int, start: Any, step: Any, dtype: DType, device: Device) -> torch.Tensor:
    counted = torch.arange(length, dtype=to_torch_dtype(dtype), device=to_torch_device(device))
    return counted.mul_(step).add_(start)
