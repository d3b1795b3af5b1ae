"""Whether PyTorch brings oneDNN, and whether it multiplies faster on this CPU than the library that PyTorch asks."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

import torch

AMD = "AuthenticAMD"
"""What its CPUs call themselves."""


def missing() -> str | None:
    """Return why oneDNN cannot be asked here, or ``None``."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return "this PyTorch is built without oneDNN"
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return "this PyTorch has no operator mkldnn::_linear_pointwise on this machine"
    return None


def is_faster_here() -> bool:
    """Whether oneDNN was measured to multiply faster than the library that PyTorch asks on CPUs like this one.

    These are AMD's with AVX-512: PyTorch asks MKL, which uses vectors of half their width there.
    """
    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return False
    return _vendor() == AMD and torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def by_default() -> tuple[str, ...]:
    """Return the executor's name where it takes part by default.

    Example:
        >>> from thunder_executors_onednn.availability import by_default
        >>> by_default() in ((), ("onednn",))
        True
    """
    return ("onednn",) if is_faster_here() else ()


@cache
def _vendor() -> str:
    """Return who made the CPU, as it says itself; empty if that cannot be found out."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = f"vendor_id: {platform.processor().rpartition(' ')[2]}"  # "... Family 25 ..., AuthenticAMD" on Windows
    found = re.search(r"^vendor_id\s*:\s*(\S+)", text, re.MULTILINE)
    return found.group(1) if found else ""


__all__ = ["by_default", "is_faster_here", "missing"]
