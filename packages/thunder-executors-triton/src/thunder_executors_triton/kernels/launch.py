"""How kernels over the rows of a matrix are launched: as what the tensors are seen, and in blocks of which size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from thunder_executors_triton.errors import KernelError

MULTIPROCESSORS = 16  # programs that share out the rows of a reduction over rows, where no device tells its number


@dataclass(frozen=True)
class Rows:
    """A tensor seen as a matrix whose rows lie in one piece each.

    Args:
        matrix: shape ``(count, columns)``, strides ``(stride, 1)``.
    """

    matrix: torch.Tensor

    @property
    def count(self) -> int:
        return self.matrix.shape[0]

    @property
    def columns(self) -> int:
        return self.matrix.shape[1]

    @property
    def stride(self) -> int:
        """Elements from one row to the next."""
        return self.matrix.stride(0)


def as_rows(x: torch.Tensor, columns: int) -> Rows:
    """See ``x`` as rows of ``columns`` elements; copied only where its rows do not lie in one piece."""
    matrix = x.reshape(-1, columns) if x.numel() else x.new_empty((math.prod(x.shape) // max(columns, 1), columns))
    return Rows(matrix if columns <= 1 or matrix.stride(1) == 1 else matrix.contiguous())


def block_of(columns: int, most: int = 4096) -> int:
    """Return the power of two that covers ``columns``, at most ``most`` and at least 16."""
    return min(max(1 << (max(columns, 1) - 1).bit_length(), 16), most)


def warps_of(block: int) -> int:
    """Return the number of warps for a program that works on ``block`` elements at a time."""
    return 4 if block <= 1024 else 8 if block <= 2048 else 16 if block <= 8192 else 32


def programs_for(rows: int, device: torch.device) -> int:
    """Return how many programs share out ``rows`` where each keeps a partial sum over its own."""
    if device.type == "cuda":
        return min(rows, torch.cuda.get_device_properties(device).multi_processor_count * 2)
    return min(rows, MULTIPROCESSORS)


def same_device(*tensors: torch.Tensor | None) -> torch.device:
    """Return the device of all these tensors.

    Raises:
        KernelError: they are on several.
    """
    devices = {t.device for t in tensors if t is not None}
    if len(devices) != 1:
        raise KernelError(f"a kernel needs its tensors on one device, got {', '.join(sorted(map(str, devices)))}")
    return devices.pop()
