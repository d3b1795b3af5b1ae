"""What PyTorch's own libraries export: its OpenMP pool, and the vector mathematics that it is built with."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

import torch

NAMES = {"linux": "lib{}.so", "darwin": "lib{}.dylib"}


@cache
def torch_library(name: str = "torch_cpu") -> ctypes.CDLL | None:
    """Return a library of PyTorch's, which is in memory already; ``None`` where it is built otherwise."""
    path = Path(torch.__file__).parent / "lib" / NAMES.get(sys.platform, "{}.dll").format(name)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


@cache
def address_of(symbol: str, name: str = "torch_cpu") -> int | None:
    """Return where a function of PyTorch's library, or of those that it needs, is in memory; ``None`` if it has none.

    Args:
        symbol: its name in C, such as ``Sleef_expf16_u10`` or ``GOMP_parallel``.
        name: of the library.
    """
    library = torch_library(name)
    function = getattr(library, symbol, None) if library is not None else None
    return ctypes.cast(function, ctypes.c_void_p).value if function is not None else None
