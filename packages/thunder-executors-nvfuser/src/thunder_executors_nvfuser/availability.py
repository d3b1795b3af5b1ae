"""Whether nvFuser can run here, and why not."""

from __future__ import annotations

import torch

from thunder_executors import Library

NVFUSER = Library("nvfuser_direct", "nvFuser", least="0.2.34")


def missing() -> str | None:
    """Return why nvFuser cannot run here, or ``None``; imports nothing."""
    absent = NVFUSER.missing()
    if absent is not None or torch.cuda.is_available():
        return absent
    return "PyTorch sees no CUDA device"


__all__ = ["NVFUSER", "missing"]
