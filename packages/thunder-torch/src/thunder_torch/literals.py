"""How generated programs write PyTorch's constants: ``torch.float32``, ``torch.device('cuda:0')``."""

from __future__ import annotations

from typing import Any

import torch

from thunder_ir import Context, register_literal


def _constant(value: Any, context: Context) -> str:
    """PyTorch's constants print as the code that they are."""
    return context.member(str(value), value)


def _device(value: torch.device, context: Context) -> str:
    return f"{context.member('torch.device', torch.device)}({str(value)!r})"


def _size(value: torch.Size, context: Context) -> str:
    return f"{context.member('torch.Size', torch.Size)}({list(value)!r})"


_PRINTERS = {
    torch.dtype: _constant,
    torch.memory_format: _constant,
    torch.layout: _constant,
    torch.device: _device,
    torch.Size: _size,
}
PLAIN = frozenset(_PRINTERS)
"""PyTorch's classes of arguments that are what they print as."""

for _class, _printer in _PRINTERS.items():
    register_literal(_class, _printer)
