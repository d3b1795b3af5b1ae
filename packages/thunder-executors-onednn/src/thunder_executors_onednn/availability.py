"""Whether PyTorch brings oneDNN, and whether it multiplies faster on this CPU than the library that PyTorch asks."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

import torch

AMD = "AuthenticAMD"
"""What its CPUs call themselves."""

ZEN_5 = 26
"""The first family of AMD's CPUs that computes a vector of 512 bits at once: Zen 4 makes two halves of it."""


def missing() -> str | None:
    """Return why oneDNN cannot be asked here, or ``None``."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return "this PyTorch is built without oneDNN"
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return "this PyTorch has no operator mkldnn::_linear_pointwise on this machine"
    return None


def is_faster_here() -> bool:
    """Whether oneDNN was measured to multiply faster than the library that PyTorch asks on CPUs like this one.

    These are AMD's from Zen 5 on: PyTorch asks MKL, which uses vectors of half their width there.
    """
    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return False
    vendor, family = _processor()
    return vendor == AMD and family >= ZEN_5 and torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def by_default() -> tuple[str, ...]:
    """Return the executor's name where it takes part by default.

    Example:
        >>> from thunder_executors_onednn.availability import by_default
        >>> by_default() in ((), ("onednn",))
        True
    """
    return ("onednn",) if is_faster_here() else ()


@cache
def _processor() -> tuple[str, int]:
    """Return who made the CPU, if that is AMD, and its family, as it says itself; else ``("", 0)``."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = platform.processor()  # "... Family 26 ..., AuthenticAMD" on Windows
    vendor = re.search(rf"\b{AMD}\b", text)
    family = re.search(r"\bfamily\s*:?\s*(\d+)", text, re.IGNORECASE)
    return (AMD, int(family[1])) if vendor and family else ("", 0)


__all__ = ["by_default", "is_faster_here", "missing"]
