"""Whether kernels can run here, and why not."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

import torch


@cache
def installed() -> bool:
    """Whether Triton is installed; asked without importing it."""
    return importlib.util.find_spec("triton") is not None


def interpreted() -> bool:
    """Whether Triton's interpreter runs kernels, on tensors of the CPU: ``TRITON_INTERPRET=1``."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")


def missing() -> str | None:
    """Return why kernels cannot run here, or ``None``."""
    if not installed():
        return "Triton is not installed"
    if interpreted() or torch.cuda.is_available():
        return None
    return "PyTorch sees no CUDA device (TRITON_INTERPRET=1 runs kernels on the CPU, slowly)"
