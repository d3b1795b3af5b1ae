"""Running sums, products and extremes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_ir import TensorProxy
from thunder_torch.reduction import dtype_of
from thunder_torch.symbol import structured, torchsymbol
from thunder_torch.traits import Trait, state

state("cumprod", "cumsum", "logcumsumexp", traits=(Trait.IN_ROWS,))


@torchsymbol(torch.cumsum, Tensor.cumsum)
def cumsum(a: TensorProxy, dim: Any, *, dtype: Any = None) -> Any:
    """The sum of the elements up to each one."""
    return NotImplemented if isinstance(dim, str) else lang.cumsum(a, dim, dtype=dtype_of(dtype))


@torchsymbol(torch.cumprod, Tensor.cumprod)
def cumprod(a: TensorProxy, dim: Any, *, dtype: Any = None) -> Any:
    """The product of the elements up to each one."""
    return NotImplemented if isinstance(dim, str) else lang.cumprod(a, dim, dtype=dtype_of(dtype))


@torchsymbol(torch.logcumsumexp, Tensor.logcumsumexp)
def logcumsumexp(a: TensorProxy, dim: Any) -> Any:
    """The logarithm of the sum of the exponentials up to each element."""
    return NotImplemented if isinstance(dim, str) or a.dtype.is_complex else lang.logcumsumexp(a, dim)


@torchsymbol(torch.cummax, Tensor.cummax)
def cummax(a: TensorProxy, dim: Any) -> Any:
    """The greatest element up to each one, and its place."""
    return NotImplemented if isinstance(dim, str) else structured(torch.return_types.cummax, lang.cummax(a, dim))


@torchsymbol(torch.cummin, Tensor.cummin)
def cummin(a: TensorProxy, dim: Any) -> Any:
    """The least element up to each one, and its place."""
    return NotImplemented if isinstance(dim, str) else structured(torch.return_types.cummin, lang.cummin(a, dim))


__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]
