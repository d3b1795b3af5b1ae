"""Which of Apex's extensions are built. ``import apex`` says nothing of them, and none has a version."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from thunder_executors import Library

CROSS_ENTROPY = Library("xentropy_cuda", "Apex's cross entropy (APEX_XENTROPY=1)")
NORMS = Library("fused_layer_norm_cuda", "Apex's fused norms (APEX_CUDA_EXT=1)")
ROTARY = Library("fused_rotary_positional_embedding", "Apex's rotary embedding (APEX_CUDA_EXT=1)")
EXTENSIONS = (CROSS_ENTROPY, NORMS, ROTARY)


def missing() -> str | None:
    """Return why none of them can run here, or ``None``; imports nothing."""
    absent = [reason for library in EXTENSIONS if (reason := library.missing()) is not None]
    if len(absent) == len(EXTENSIONS):
        return "; ".join(absent)
    return None if torch.cuda.is_available() else "PyTorch sees no CUDA device"


def extension(library: Library) -> Any:
    """Return an extension, imported when it is first asked for."""
    return import_module(library.module)


__all__ = ["CROSS_ENTROPY", "EXTENSIONS", "NORMS", "ROTARY", "extension", "missing"]
