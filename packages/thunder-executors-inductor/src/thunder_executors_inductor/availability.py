"""Whether Inductor can compile here."""

from __future__ import annotations

import os
import shutil
from functools import cache

import torch

COMPILERS = ("g++", "clang++", "c++", "cl")


@cache
def missing() -> str | None:
    """Return why Inductor cannot compile here, or ``None``: on a CPU it needs a C++ compiler."""
    if torch.cuda.is_available():
        return None
    if not any([shutil.which(name) for name in (os.environ.get("CXX", ""), *COMPILERS) if name]):
        return f"there is no C++ compiler: none of {', '.join(COMPILERS)} is found, and CXX names none"
    return None


__all__ = ["missing"]
