"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from torch.distributed.pipelining import _utils as pipelining_utils

TRAINS_BESIDE_INTEGERS = hasattr(pipelining_utils, "_TensorMeta")
"""Whether PyTorch asks if what a stage hands on has a gradient; before 2.12 it gives all of it one."""

__all__ = ["TRAINS_BESIDE_INTEGERS"]
