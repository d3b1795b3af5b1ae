"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from typing import Any

import torch

_FUNCTION: Any = torch.autograd.Function
APPLIES: Any = _FUNCTION if vars(_FUNCTION)["apply"] is vars(torch._C._FunctionBase)["apply"] else _FUNCTION.__mro__[1]
"""The class whose ``apply`` is that of C, which ``Function.apply`` called of the class above until PyTorch 2.15."""

SETTINGS_OF_CALLS: tuple[str, ...] = tuple(
    [n for n in ("clear_saved_tensors_on_access", "boxed_grads_call") if APPLIES is _FUNCTION and hasattr(APPLIES, n)]
)
"""What C code asks a class of which it runs ``apply``, before any Python code of it runs; a base of all has them."""
