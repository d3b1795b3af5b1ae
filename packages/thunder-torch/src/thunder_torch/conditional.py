"""Choice by a condition."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import OpTags, TensorProxy, dtypes
from thunder_prims.conditional import jointly_clamped_maps
from thunder_prims.derivatives import derivatives
from thunder_torch.symbol import composed, requires_gradient, torchsymbol
from thunder_torch.torch_versions import SHARES_GRADIENTS
from thunder_torch.traits import Trait

if SHARES_GRADIENTS:
    derivatives(prims.clamp, replace=True)(jointly_clamped_maps)


@torchsymbol(torch.where, tags=(OpTags.ELEMENTWISE,))
def where(condition: TensorProxy, a: Any = None, other: Any = None) -> Any:
    """``a`` where the condition holds, elsewhere ``other``."""
    if a is None or other is None:
        return NotImplemented
    return lang.where(_as_truth(condition), a, other)


@torchsymbol(Tensor.where, tags=(OpTags.ELEMENTWISE,), name="Tensor_where")
def where_method(a: TensorProxy, condition: TensorProxy, other: Any) -> TensorProxy:
    """``a`` where the condition holds, elsewhere ``other``."""
    return lang.where(_as_truth(condition), a, other)


def _as_truth(condition: TensorProxy) -> TensorProxy:
    """Return a condition, of bytes too, which PyTorch still takes, as truths."""
    return lang.ne(condition, 0) if condition.dtype is dtypes.uint8 else condition


masked_fill = composed(
    lang.masked_fill, torch.masked_fill, Tensor.masked_fill, tags=(OpTags.ELEMENTWISE,), traits=(Trait.IN_ROWS,)
)
clamp = composed(lang.clamp, torch.clamp, Tensor.clamp, torch.clip, Tensor.clip, tags=(OpTags.ELEMENTWISE,))


@torchsymbol(torch.clamp_min, Tensor.clamp_min, tags=(OpTags.ELEMENTWISE,))
def clamp_min(a: TensorProxy, min: Any) -> TensorProxy:
    """``a``, and ``min`` where it is below."""
    return lang.clamp(a, min, None)


@torchsymbol(torch.clamp_max, Tensor.clamp_max, tags=(OpTags.ELEMENTWISE,))
def clamp_max(a: TensorProxy, max: Any) -> TensorProxy:
    """``a``, and ``max`` where it is above."""
    return lang.clamp(a, None, max)


@torchsymbol(torch.heaviside, Tensor.heaviside, tags=(OpTags.ELEMENTWISE,))
def heaviside(a: TensorProxy, values: TensorProxy) -> Any:
    """0 below zero, ``values`` at zero, 1 above."""
    if a.dtype is not values.dtype or requires_gradient(a, values):
        return NotImplemented
    step = lang.to(a > 0, a.dtype)
    return lang.where(lang.eq(a, 0), values, step)


__all__ = ["clamp", "clamp_max", "clamp_min", "heaviside", "masked_fill", "where", "where_method"]
