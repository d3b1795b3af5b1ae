"""Sorting and selecting by order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_ir import OpTags, TensorProxy
from thunder_torch.symbol import composed, structured, torchsymbol


@torchsymbol(torch.sort, Tensor.sort)
def sort(a: TensorProxy, dim: Any = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """The elements in order along a dimension, and where they were."""
    return structured(torch.return_types.sort, lang.sort(a, dim, descending, bool(stable)))


argsort = composed(lang.argsort, torch.argsort, Tensor.argsort, tags=(OpTags.CONSTANT_FOR_DERIVATIVE,))


@torchsymbol(torch.msort, Tensor.msort)
def msort(a: TensorProxy) -> Any:
    """The elements in order along the first dimension."""
    return lang.sort(a, 0)[0] if a.ndim else lang.clone(a)


@torchsymbol(torch.topk, Tensor.topk)
def topk(a: TensorProxy, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The greatest or least elements along a dimension, and where they were."""
    return structured(torch.return_types.topk, lang.topk(a, k, dim, largest, sorted))


__all__ = ["argsort", "msort", "sort", "topk"]
