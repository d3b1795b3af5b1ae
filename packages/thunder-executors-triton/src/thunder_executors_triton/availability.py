"""Whether kernels can run here, and why not."""

from __future__ import annotations

import os

import torch

from thunder_executors import Library

TRITON = Library("triton", "Triton", least="3.4")


def interpreted() -> bool:
    """Whether Triton's interpreter runs kernels, on tensors of the CPU: ``TRITON_INTERPRET=1``."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")


def missing() -> str | None:
    """Return why kernels cannot run here, or ``None``."""
    absent = TRITON.missing()
    if absent is not None or interpreted() or torch.cuda.is_available():
        return absent
    return "PyTorch sees no CUDA device (TRITON_INTERPRET=1 runs kernels on the CPU, slowly)"
