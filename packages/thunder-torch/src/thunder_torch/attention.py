"""Attention and embedding."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_torch.activation import softmax_of
from thunder_torch.elementwise_layouts import elementwise_strides
from thunder_torch.random import drop
from thunder_torch.rounding import narrow_to, wide
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

state("embedding", traits=(Trait.IN_ROWS,))
state("scaled_dot_product_attention", traits=(Trait.OTHERWISE_ON_META,))
state("_native_multi_head_attention", "multi_head_attention_forward", traits=(Trait.DRAWS, Trait.SIZES_ARE_PRODUCTS))


def _mask_of(query: TensorProxy, key: TensorProxy) -> TensorProxy:
    rows, columns = query.shape[-2], key.shape[-2]
    return lang.tril(lang.full((rows, columns), True, dtypes.bool8, query.device))


def _attention_meta(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Any:
    """What the kernel for CPUs makes of heads that are alike: a result laid out as the queries are.

    PyTorch tells all other cases.
    """
    given = (query, key, value)
    if attn_mask is not None or dropout_p != 0.0 or enable_gqa or not torch._C._get_flash_sdp_enabled():
        return NotImplemented
    if not all([t.__class__ is TensorProxy and t.ndim == 4 and t.strides is not None for t in given]):
        return NotImplemented
    if any([d.__class__ is not int or d == 0 for t in given for d in (*t.shape, *t.strides)]):
        return NotImplemented
    if key.shape != value.shape or query.shape[:2] != key.shape[:2] or query.shape[3] != key.shape[3]:
        return NotImplemented
    if any([t.device.type != "cpu" or t.dtype is not query.dtype or t.strides[3] != 1 for t in given]):
        return NotImplemented
    if query.dtype not in (dtypes.float32, dtypes.float64) or scale is not None and scale.__class__ is not float:
        return NotImplemented
    shape: Any = tuple(query.shape)
    strides = elementwise_strides(shape, [(shape, tuple(query.strides))])
    tracked = torch.is_grad_enabled() and any([t.requires_grad for t in given])
    return TensorProxy(shape, query.dtype, query.device, tracked, strides)


@torchsymbol(F.scaled_dot_product_attention, tags=(OpTags.MATMUL,), meta=_attention_meta)
def scaled_dot_product_attention(
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``softmax(query @ key.T * scale + mask) @ value``; rows that are masked whole give zero.

    Half precisions are computed with in float32 until the end: an error of scores is one of exponents.
    """
    dtype = query.dtype
    if attn_mask is not None and (is_causal or attn_mask.dtype not in (dtypes.bool8, dtypes.float32, dtype)):
        return NotImplemented
    query, key, value = wide(query), wide(key), wide(value)
    if enable_gqa:
        key = lang.repeat_interleave(key, query.shape[-3] // key.shape[-3], -3)
        value = lang.repeat_interleave(value, query.shape[-3] // value.shape[-3], -3)
    if scale is None:
        size = query.shape[-1]
        scale = 1 / (math.sqrt(size) if size.__class__ is int else prims.number_math("sqrt", size))
    scores = lang.matmul(query, lang.matrix_transpose(key)) * scale
    mask = _mask_of(query, key) if is_causal else attn_mask
    if mask is not None:
        scores = _masked(scores, mask)
    weights = softmax_of(scores, -1) if mask is None else _softmax_of_masked(scores)
    return narrow_to(lang.matmul(drop(weights, dropout_p, dropout_p > 0), value), dtype)


def _softmax_of_masked(scores: TensorProxy) -> TensorProxy:
    """Return the softmax of each row; zeros, with zeros for gradients, where every key is masked."""
    if scores.shape[-1] == 0:
        return softmax_of(scores, -1)
    zeros = lang.zeros_like(scores)
    hidden = lang.eq(lang.amax(scores, -1, True), -math.inf)
    return lang.where(hidden, zeros, softmax_of(lang.where(hidden, zeros, scores), -1))


def _masked(scores: TensorProxy, mask: TensorProxy) -> TensorProxy:
    if lang.broadcast_shapes(scores.shape, mask.shape) != tuple(scores.shape):
        raise ShapeError(
            f"scaled_dot_product_attention of scores of shape {tuple(scores.shape)} takes a mask that broadcasts to "
            f"them, got {mask.type_string}"
        )
    if mask.dtype.is_bool:
        return lang.masked_fill(scores, lang.logical_not(mask), -math.inf)
    return lang.to(scores + mask, scores.dtype)


@torchsymbol(F.embedding)
def embedding(
    a: TensorProxy,
    weight: TensorProxy,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of ``weight`` at the places in ``a``."""
    if max_norm is not None or weight.ndim != 2 or a.dtype not in (dtypes.int64, dtypes.int32):
        return NotImplemented
    rows = weight.shape[0]
    padding = -1 if padding_idx is None else padding_idx + rows if padding_idx < 0 else padding_idx
    return prims.embedding(a, weight, padding, scale_grad_by_freq)


@torchsymbol(torch.embedding, name="torch_embedding")
def torch_embedding(
    weight: TensorProxy,
    indices: TensorProxy,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of ``weight`` at the places in ``indices``."""
    return prims.embedding(indices, weight, padding_idx, scale_grad_by_freq) if weight.ndim == 2 else NotImplemented


GROUPED = (dtypes.float32, dtypes.float16, dtypes.bfloat16)
"""Types that PyTorch's grouped products take."""


def _grouped_mm_meta(a: Any, mat_b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """What the kernels do. PyTorch's own metadata knows bfloat16 alone, and pads rows in builds for GPUs alone."""
    if offs is None or bias is not None or out_dtype is not None or a.dtype not in GROUPED:
        return NotImplemented
    if a.dtype is not mat_b.dtype or any([d.__class__ is not int for d in (*a.shape, *mat_b.shape, *offs.shape)]):
        return NotImplemented
    assert prims.grouped_mm.meta is not None
    made = prims.grouped_mm.meta(a, mat_b, offs)
    padded = -(-made.shape[-1] * made.dtype.bytes // 16) * 16 // made.dtype.bytes  # rows begin at multiples of 16 bytes
    strides = (made.shape[-2] * padded, padded, 1)[-made.ndim :]
    tracked = made.requires_grad and torch.is_grad_enabled()
    return TensorProxy(made.shape, made.dtype, made.device, tracked, strides)


@torchsymbol(torch._grouped_mm, tags=(OpTags.MATMUL,), name="grouped_mm", meta=_grouped_mm_meta)
def grouped_mm(a: TensorProxy, mat_b: TensorProxy, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Products of groups of rows of a matrix with a matrix each."""
    if offs is None or bias is not None or out_dtype is not None:
        return NotImplemented
    return prims.grouped_mm(a, mat_b, offs)


__all__ = ["embedding", "grouped_mm", "scaled_dot_product_attention", "torch_embedding"]
