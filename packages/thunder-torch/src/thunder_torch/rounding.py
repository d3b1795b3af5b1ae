"""In which dtype decompositions compute: as wide as PyTorch's kernels, which round half precisions once, at the end."""

from __future__ import annotations

from typing import Any

import thunder_lang as lang
from thunder_ir import DTypeError, TensorProxy, dtypes

HALVES = (dtypes.float16, dtypes.bfloat16)


def wide(a: Any) -> Any:
    """Return ``a`` in the dtype in which PyTorch computes: float32 for the half precisions; what is no tensor stays."""
    return lang.to(a, dtypes.float32) if isinstance(a, TensorProxy) and a.dtype in HALVES else a


def floating(operation: str, a: TensorProxy) -> TensorProxy:
    """Return ``a`` in the dtype in which PyTorch computes what it has for floating-point numbers alone.

    Raises:
        DTypeError: ``a`` has others.
    """
    if not a.dtype.is_floating:
        raise DTypeError(f"{operation} of {a.type_string} needs a floating-point dtype; convert it first")
    widened: TensorProxy = wide(a)
    return widened


def narrow_to(a: TensorProxy, dtype: Any) -> TensorProxy:
    """Return ``a`` rounded to ``dtype``."""
    return a if a.dtype is dtype else lang.to(a, dtype)


def half_of(*values: Any) -> Any:
    """Return the half precision that all tensors among the values have, or ``None``.

    Example:
        >>> from thunder_ir import Tensor
        >>> from thunder_torch.rounding import half_of
        >>> half_of(Tensor((2,), "bfloat16"), 3.0), half_of(Tensor((2,), "bfloat16"), Tensor((2,)))
        (bfloat16, None)
    """
    found = {v.dtype for v in values if isinstance(v, TensorProxy)}
    return found.pop() if len(found) == 1 and found <= set(HALVES) else None
