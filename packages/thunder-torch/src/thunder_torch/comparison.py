"""Comparisons."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_ir import OpTags, Symbol, TensorProxy
from thunder_torch.symbol import composed, torchsymbol

COMPARISON = (OpTags.ELEMENTWISE, OpTags.CONSTANT_FOR_DERIVATIVE)


def _compare(function: Any, *callables: Any) -> Symbol:
    return composed(function, *callables, tags=COMPARISON)


eq = _compare(lang.eq, torch.eq, Tensor.eq, Tensor.__eq__)
ne = _compare(lang.ne, torch.ne, Tensor.ne, torch.not_equal, Tensor.not_equal, Tensor.__ne__)
lt = _compare(lang.lt, torch.lt, Tensor.lt, torch.less, Tensor.less, Tensor.__lt__)
le = _compare(lang.le, torch.le, Tensor.le, torch.less_equal, Tensor.less_equal, Tensor.__le__)
gt = _compare(lang.gt, torch.gt, Tensor.gt, torch.greater, Tensor.greater, Tensor.__gt__)
ge = _compare(lang.ge, torch.ge, Tensor.ge, torch.greater_equal, Tensor.greater_equal, Tensor.__ge__)


@torchsymbol(torch.isclose, Tensor.isclose, tags=COMPARISON)
def isclose(
    a: TensorProxy, other: TensorProxy, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Whether ``abs(a - other) <= atol + rtol * abs(other)``, or both are equal."""
    if rtol < 0 or atol < 0:
        return NotImplemented
    return lang.isclose(a, other, rtol, atol, equal_nan)


__all__ = ["COMPARISON", "eq", "ge", "gt", "isclose", "le", "lt", "ne"]
