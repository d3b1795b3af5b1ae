"""Questions about all elements that Python gets an answer to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import thunder_lang as lang
from thunder_ir import NumberProxy, OpTags, TensorProxy, dtypes
from thunder_prims.conversion import unknown_number
from thunder_torch.symbol import BY_DECOMPOSITION, torchsymbol

ANSWERS = (OpTags.DEVICE_SYNC, OpTags.CONSTANT_FOR_DERIVATIVE)


@torchsymbol(torch.equal, Tensor.equal, tags=ANSWERS, meta=BY_DECOMPOSITION)
def equal(a: TensorProxy, other: TensorProxy) -> Any:
    """Whether two tensors have one shape and equal elements."""
    return tuple(a.shape) == tuple(other.shape) and lang.item(lang.all(lang.eq(a, other)))


@torchsymbol(torch.allclose, Tensor.allclose, tags=ANSWERS, meta=BY_DECOMPOSITION)
def allclose(
    a: TensorProxy, other: TensorProxy, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Whether all elements of two tensors are close."""
    return lang.item(lang.all(lang.isclose(a, other, rtol, atol, equal_nan)))


@torchsymbol(Tensor.item, tags=ANSWERS, meta=BY_DECOMPOSITION)
def item(a: TensorProxy) -> Any:
    """Return the only element as a number of the program."""
    return lang.item(a)


def _whole(a: TensorProxy) -> NumberProxy:
    return unknown_number(int, "what int() returns")


@torchsymbol(Tensor.__int__, name="int_of", tags=ANSWERS, meta=_whole)
def int_of(a: TensorProxy) -> Any:
    """Return the only element as an integer, without its fraction."""
    return NotImplemented if a.dtype.is_inexact else lang.item(lang.to(a, dtypes.int64))


__all__ = ["allclose", "equal", "int_of", "item"]
