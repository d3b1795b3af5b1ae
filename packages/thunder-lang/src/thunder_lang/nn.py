"""The functions of neural networks that nearly every language shares."""

from __future__ import annotations

from typing import Any

import thunder_prims as prims
from thunder_ir import DType, TensorProxy
from thunder_lang.dims import canonical_dim, need_tensor
from thunder_lang.language import core
from thunder_lang.operands import convert
from thunder_lang.promotion import get_default_dtype

__all__ = ["log_softmax", "softmax"]


def _prepared(operation: str, a: Any, dim: int, dtype: DType | None) -> tuple[TensorProxy, int]:
    a = need_tensor(operation, a)
    dim = canonical_dim(operation, a.ndim, dim)
    return convert(a, dtype or (a.dtype if a.dtype.is_inexact else get_default_dtype())), dim


def _along(a: TensorProxy, shape: Any, dim: int) -> TensorProxy:
    """``a``, which lacks ``dim``, repeated along it."""
    return prims.broadcast_in_dim(a, shape, tuple([d for d in range(len(shape)) if d != dim]))


@core.method("softmax")
def softmax(a: TensorProxy, dim: int, *, dtype: DType | None = None) -> TensorProxy:
    """``exp(a) / sum(exp(a))`` along a dimension, without overflow on the way."""
    a, dim = _prepared("softmax", a, dim, dtype)
    if not a.shape:
        return prims.exp(prims.sub(a, a))
    if a.numel == 0:
        return a
    raised = prims.exp(prims.sub(a, _along(prims.amax(a, (dim,)), a.shape, dim)))
    return prims.div(raised, _along(prims.sum(raised, (dim,)), a.shape, dim))


@core.method("log_softmax")
def log_softmax(a: TensorProxy, dim: int, *, dtype: DType | None = None) -> TensorProxy:
    """``log(softmax(a))`` along a dimension, without overflow on the way."""
    a, dim = _prepared("log_softmax", a, dim, dtype)
    if not a.shape:
        return prims.sub(a, a)
    if a.numel == 0:
        return a
    shifted = prims.sub(a, _along(prims.amax(a, (dim,)), a.shape, dim))  # first, or large values swallow the logarithm
    total = prims.log(prims.sum(prims.exp(shifted), (dim,)))
    return prims.sub(shifted, _along(total, a.shape, dim))
