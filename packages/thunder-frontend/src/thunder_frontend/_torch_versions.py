"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from typing import Any

import torch

_APPLY: Any = torch.autograd.Function.__dict__["apply"]
FUNCTION_APPLY: Any = getattr(_APPLY, "__func__", _APPLY)
"""What ``Function.apply`` of every class calls with that class: a function, since PyTorch 2.15 a builtin."""

CHECK_IS_SIZE_WARNING: str | None = getattr(getattr(torch, "_check_is_size", None), "__deprecated__", None)
"""What ``torch._check_is_size`` warns of, as it does in later versions."""
