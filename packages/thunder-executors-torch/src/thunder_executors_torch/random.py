"""Random numbers, from PyTorch's generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors import arguments
from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, Device, DType
from thunder_torch.convert import to_torch_device, to_torch_dtype
from thunder_torch.randomness import generator_states, set_generator_states

executor.implements(prims.multinomial)(torch.multinomial)
executor.implements(prims.poisson)(torch.poisson)
PHILOX_STEP = 4  # CUDA's generators count in groups of four numbers


def from_zero_to_one(bound: BoundSymbol) -> bool:
    """Whether the interval is that of ``torch.rand``."""
    low, high = bound.args[1:3]
    return isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == 0 and high == 1


@executor.calls(torch.rand, prims.uniform, when=from_zero_to_one)
def rand(shape: Sequence[Any], low: Any, high: Any, dtype: DType, device: Device) -> Any:
    return arguments(tuple(shape), dtype=to_torch_dtype(dtype), device=to_torch_device(device))


@executor.implements(prims.uniform)
def uniform(shape: Sequence[int], low: float, high: float, dtype: DType, device: Device) -> torch.Tensor:
    return torch.empty(shape, dtype=to_torch_dtype(dtype), device=to_torch_device(device)).uniform_(low, high)


@executor.implements(prims.uniform_philox)
def uniform_philox(
    shape: Sequence[int],
    low: float,
    high: float,
    dtype: DType,
    device: Device,
    seed: int | torch.Tensor,
    offset: int | torch.Tensor,
) -> torch.Tensor:
    where = to_torch_device(device)
    generator = torch.Generator(where)
    if where.type == "cuda":
        generator.manual_seed(int(seed))
        generator.set_offset(int(offset))
    else:  # these generators have no offset
        generator.manual_seed((int(seed) * 0x9E3779B97F4A7C15 + int(offset)) % 2**63)
    return torch.empty(shape, dtype=to_torch_dtype(dtype), device=where).uniform_(low, high, generator=generator)


@executor.calls(torch.randn, prims.randn)
def randn(shape: Sequence[Any], dtype: DType, device: Device) -> Any:
    return arguments(tuple(shape), dtype=to_torch_dtype(dtype), device=to_torch_device(device))


@executor.calls(torch.randint, prims.randint)
def randint(shape: Sequence[Any], low: Any, high: Any, dtype: DType, device: Device) -> Any:
    return arguments(low, high, tuple(shape), dtype=to_torch_dtype(dtype), device=to_torch_device(device))


@executor.calls(torch.randperm, prims.randperm)
def randperm(length: Any, dtype: DType, device: Device) -> Any:
    return arguments(length, dtype=to_torch_dtype(dtype), device=to_torch_device(device))


executor.implements(prims.generator_states)(generator_states)


@executor.implements(prims.exchange_generator_states)
def exchange_generator_states(devices: tuple[str, ...], states: Any) -> Any:
    before = generator_states(devices)
    set_generator_states(devices, states)
    return before


@executor.implements(prims.get_and_update_rng_state)
def get_and_update_rng_state(seed: int | None, offset: int | None, device: Device) -> tuple[int, int]:
    where = to_torch_device(device)
    if where.type == "cuda":
        index = torch.cuda.current_device() if where.index is None else where.index
        generator = torch.cuda.default_generators[index]
        if seed is not None and offset is not None:
            generator.manual_seed(seed)
            generator.set_offset(offset + PHILOX_STEP)
        return generator.initial_seed(), generator.get_offset()
    if seed is not None and offset is not None:
        return seed, offset + PHILOX_STEP
    return int(torch.randint(2**62, ()).item()), 0  # a seed of its own, drawn from the generator, which moves on
