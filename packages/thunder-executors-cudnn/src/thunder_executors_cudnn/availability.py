"""Whether cuDNN can run here, and why not."""

from __future__ import annotations

import torch

from thunder_executors import Library

FRONTEND = Library("cudnn", "cuDNN's frontend (nvidia-cudnn-frontend)", least="1.32", below="2")


def missing() -> str | None:
    """Return why cuDNN cannot run here, or ``None``; imports nothing."""
    absent = FRONTEND.missing()
    if absent is not None or torch.cuda.is_available():
        return absent
    return "PyTorch sees no CUDA device"


__all__ = ["FRONTEND", "missing"]
