"""What PyTorch's own libraries export: its OpenMP pool, and the vector mathematics that it is built with."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

import torch

NAMES = {"linux": "libtorch_cpu.so", "darwin": "libtorch_cpu.dylib"}


@cache
def torch_library() -> ctypes.CDLL | None:
    """Return PyTorch's library, which is in memory already; ``None`` where it is built otherwise."""
    name = NAMES.get(sys.platform, "torch_cpu.dll")
    path = Path(torch.__file__).parent / "lib" / name
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


@cache
def address_of(symbol: str) -> int | None:
    """Return where a function of PyTorch's library, or of those that it needs, is in memory; ``None`` if it has none.

    Args:
        symbol: its name in C, such as ``Sleef_expf16_u10`` or ``GOMP_parallel``.
    """
    library = torch_library()
    function = getattr(library, symbol, None) if library is not None else None
    return ctypes.cast(function, ctypes.c_void_p).value if function is not None else None
