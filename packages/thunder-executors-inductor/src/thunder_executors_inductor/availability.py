"""Whether Inductor can compile here."""

from __future__ import annotations

import os
import shutil
from functools import cache

import torch
from torch.utils._triton import has_triton_package

COMPILERS = ("g++", "clang++", "c++", "cl")
OF_C = ("gcc", "clang", "cc", "cl")


@cache
def missing() -> str | None:
    """Return why Inductor cannot compile here, or ``None``: on a CPU it needs a C++ compiler, on GPUs Triton."""
    if not torch.cuda.is_available():
        return _no_compiler("C++", COMPILERS, "CXX")
    if not has_triton_package():
        return "Triton is not installed, in which Inductor writes kernels for GPUs"
    return _no_compiler("C", OF_C, "CC")  # by which Triton makes what launches them


def _no_compiler(language: str, names: tuple[str, ...], variable: str) -> str | None:
    if any([shutil.which(name) for name in (os.environ.get(variable, ""), *names) if name]):
        return None
    return f"there is no {language} compiler: none of {', '.join(names)} is found, and {variable} names none"


__all__ = ["missing"]
