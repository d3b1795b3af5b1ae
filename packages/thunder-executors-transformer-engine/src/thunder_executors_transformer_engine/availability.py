"""Whether Transformer Engine can run here, and why not."""

from __future__ import annotations

import torch

from thunder_executors import Library

ENGINE = Library("transformer_engine", "Transformer Engine", least="2.7", below="3")
LEAST = (8, 9)
"""The compute capability from which on there are products of eight-bit floats."""


def missing() -> str | None:
    """Return why it cannot run here, or ``None``; imports nothing."""
    absent = ENGINE.missing()
    if absent is not None:
        return absent
    if not torch.cuda.is_available():
        return "PyTorch sees no CUDA device"
    found = torch.cuda.get_device_capability()
    if found < LEAST:
        return (
            f"the device is of compute capability {found[0]}.{found[1]}, and at least {LEAST[0]}.{LEAST[1]} is needed"
        )
    return None


__all__ = ["ENGINE", "LEAST", "missing"]
