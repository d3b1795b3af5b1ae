"""What helps those who debug."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import thunder_prims as prims
from thunder_executors_torch.executor import executor
from thunder_ir import Device, DType
from thunder_torch.convert import to_torch_device, to_torch_dtype


@executor.implements(prims.assert_tensor_metadata)
def assert_tensor_metadata(a: torch.Tensor, shape: Sequence[int], dtype: DType, device: Device) -> None:
    """Raise if a tensor is not what was recorded.

    Raises:
        RuntimeError: its shape, dtype or device differs.
    """
    expected = (tuple(shape), to_torch_dtype(dtype), to_torch_device(device))
    actual = (tuple(a.shape), a.dtype, a.device)
    if actual != expected:
        raise RuntimeError(f"expected a tensor of shape, dtype and device {expected}, got {actual}")
