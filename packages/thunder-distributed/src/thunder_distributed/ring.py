"""Attention over a sequence of which each process has a part: keys and values go around the ring.

A sequence is cut into twice as many chunks as there are processes. Process ``r`` of ``n`` has the chunks ``r`` and
``2n - 1 - r``, so that under a causal mask all have equally much to compute: in every round but the first two products
of a half with a half, whichever they are.

Source:
    H. Liu et al., *Ring Attention with Blockwise Transformers*, 2023; the order of chunks is that of PyTorch's
    ``torch.distributed.tensor.experimental.context_parallel``.
"""

from __future__ import annotations

import math
from typing import Any

import torch

import thunder_lang as lang
from thunder_autograd import Pullback, vjp_rule
from thunder_distributed import prims
from thunder_distributed.axes import Axis
from thunder_distributed.executor import executor
from thunder_distributed.prim import DIST_PRIMS
from thunder_ir import BoundSymbol, OpTags, Symbol, TensorProxy, dtypes
from thunder_prims import attention

Attended = tuple[TensorProxy, TensorProxy]
"""A result and the logarithms of the sums of exponentials that it is divided by."""


def _wide(a: TensorProxy) -> TensorProxy:
    return lang.to(a, dtypes.float32) if a.dtype.bits < 32 else a


def _halves(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    first, second = lang.chunk(a, 2, dim)
    return first, second


def _for_heads(a: TensorProxy, query: TensorProxy) -> TensorProxy:
    """Repeat heads of keys or values for the queries that share them."""
    groups = 1 if a.ndim < 3 else query.shape[-3] // a.shape[-3]
    return a if groups == 1 else lang.repeat_interleave(a, groups, -3)


def _of_heads(gradient: TensorProxy, a: TensorProxy) -> TensorProxy:
    """Add up gradients of what :func:`_for_heads` repeated."""
    if gradient.shape == a.shape:
        return gradient
    shape = (*a.shape[:-2], gradient.shape[-3] // a.shape[-3], *a.shape[-2:])
    return lang.sum(lang.reshape(gradient, shape), a.ndim - 2)


def _block(query: TensorProxy, key: TensorProxy, value: TensorProxy, is_causal: bool, scale: float) -> Attended:
    y, logarithm = attention(query, _for_heads(key, query), _for_heads(value, query), None, is_causal, scale)
    return _wide(y), logarithm


def _merged(first: Attended, second: Attended) -> Attended:
    """Return attention to the keys of both; the first has some for every query."""
    logarithm = lang.logaddexp(first[1], second[1])
    weights = [lang.unsqueeze(lang.exp(part[1] - logarithm), -1) for part in (first, second)]
    return first[0] * weights[0] + second[0] * weights[1], logarithm


def _behind(query: TensorProxy, axis: Axis, step: int) -> TensorProxy:
    """Return whether what comes in a round is from a process of lower rank: its first chunk comes before both."""
    zero = lang.full((), 0, dtypes.int64, query.device)
    seen: TensorProxy = lang.le(prims.counted_from_part(zero, axis, 1), -step)
    return seen


def _pair(key: TensorProxy, value: TensorProxy) -> tuple[TensorProxy, bool]:
    """Return keys and values as one tensor, if they have one shape."""
    return (lang.stack([key, value], 0), True) if key.shape == value.shape else (lang.cat([key, value], -1), False)


def _apart(pair: TensorProxy, key: TensorProxy, stacked: bool) -> tuple[TensorProxy, TensorProxy]:
    if stacked:
        return lang.select(pair, 0, 0), lang.select(pair, 0, 1)
    width: Any = key.shape[-1]
    return lang.narrow(pair, -1, 0, width), lang.narrow(pair, -1, width, pair.shape[-1] - width)


def _attended(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, axis: Axis, is_causal: bool, scale: float
) -> Attended:
    """Record attention of this process's queries to the keys of all."""
    whole = _block(query, key, value, is_causal, scale)
    parts = list(zip(_halves(whole[0], -2), _halves(whole[1], -1), strict=True)) if is_causal else [whole]
    pair, stacked = _pair(key, value)
    coming = prims.permute(pair, axis, 1) if axis.size > 1 else None
    for step in range(1, axis.size):
        pair = prims.wait(coming)
        coming = prims.permute(pair, axis, 1) if step + 1 < axis.size else None
        key, value = _apart(pair, key, stacked)
        if not is_causal:
            parts[0] = _merged(parts[0], _block(query, key, value, False, scale))
            continue
        behind, nothing = _behind(query, axis, step), -math.inf
        (q1, q2), (k1, k2), (v1, v2) = (_halves(t, -2) for t in (query, key, value))
        parts[1] = _merged(parts[1], _block(q2, k1, v1, False, scale))
        chosen: list[Any] = [lang.where(behind, a, b) for a, b in ((q1, q2), (k1, k2), (v1, v2))]
        y, logarithm = _block(*[*chosen, False, scale])
        parts[0] = _merged(parts[0], (y, lang.where(behind, logarithm, nothing)))
        parts[1] = _merged(parts[1], (y, lang.where(behind, nothing, logarithm)))
    y, logarithm = parts[0] if len(parts) == 1 else (lang.cat([p[i] for p in parts], i - 2) for i in (0, 1))
    return lang.to(y, query.dtype), logarithm


def _gradients(
    dy: TensorProxy, query: TensorProxy, key: TensorProxy, value: TensorProxy, y: TensorProxy, logarithm: TensorProxy,
    axis: Axis, is_causal: bool, scale: float,
) -> tuple[TensorProxy, ...]:  # fmt: skip
    """Record the gradients of :func:`_attended`: keys go around once more, and their gradients with them, and home."""
    types = query.dtype, key.dtype, value.dtype
    rows = (dy, query, y, logarithm)
    dquery, dkey, dvalue = map(_wide, _of_block(*rows, key, value, is_causal, scale))
    dqueries = list(_halves(dquery, -2)) if is_causal else [dquery]
    pair, stacked = _pair(key, value)
    coming = prims.permute(pair, axis, 1) if axis.size > 1 else None
    for step in range(1, axis.size):
        travelling = prims.permute(_pair(dkey, dvalue)[0], axis, 1)
        pair = prims.wait(coming)
        coming = prims.permute(pair, axis, 1) if step + 1 < axis.size else None
        key, value = _apart(pair, key, stacked)
        if is_causal:
            behind = _behind(query, axis, step)
            of_rows: list[Any] = [_halves(t, -2) for t in (dy, query, y)] + [_halves(logarithm, -1)]
            later: list[Any] = [second for _, second in of_rows]
            (k1, k2), (v1, v2) = _halves(key, -2), _halves(value, -2)
            dq2, dk1, dv1 = map(_wide, _of_block(*[*later, k1, v1, False, scale]))
            chosen: list[Any] = [lang.where(behind, a, b) for a, b in (*of_rows, (k1, k2), (v1, v2))]
            dq, dk, dv = map(_wide, _of_block(*[*chosen, False, scale]))
            dqueries[0] = dqueries[0] + lang.where(behind, dq, 0.0)
            dqueries[1] = dqueries[1] + dq2 + lang.where(behind, 0.0, dq)
            made = [
                lang.cat([first + lang.where(behind, some, 0.0), lang.where(behind, 0.0, some)], -2)
                for first, some in ((dk1, dk), (dv1, dv))
            ]
        else:
            dq, *made = map(_wide, _of_block(*rows, key, value, False, scale))
            dqueries[0] = dqueries[0] + dq
        dkey, dvalue = (a + b for a, b in zip(_apart(prims.wait(travelling), key, stacked), made, strict=True))
    if axis.size > 1:
        dkey, dvalue = _apart(prims.wait(prims.permute(_pair(dkey, dvalue)[0], axis, 1)), key, stacked)
    dquery = lang.cat(dqueries, -2) if is_causal else dqueries[0]
    return tuple([lang.to(g, t) for g, t in zip((dquery, dkey, dvalue), types, strict=True)])


def _of_block(
    dy: TensorProxy, query: TensorProxy, y: TensorProxy, logarithm: TensorProxy, key: TensorProxy, value: TensorProxy,
    is_causal: bool, scale: float,
) -> tuple[TensorProxy, ...]:  # fmt: skip
    many = _for_heads(key, query), _for_heads(value, query)
    dquery, dkey, dvalue = block_gradients(dy, query, *many, y, logarithm, is_causal, scale)
    return dquery, _of_heads(dkey, key), _of_heads(dvalue, value)


# Gradients of one block -----------------------------------------------------------------------------------------------


def _block_gradients(
    dy: TensorProxy, query: TensorProxy, key: TensorProxy, value: TensorProxy, y: TensorProxy, logarithm: TensorProxy,
    is_causal: bool, scale: float,
) -> tuple[TensorProxy, ...]:  # fmt: skip
    dy, q, k, v, y = map(_wide, (dy, query, key, value, y))
    scores = lang.matmul(q, lang.matrix_transpose(k)) * scale
    if is_causal:
        seen = lang.tril(lang.full(scores.shape[-2:], True, dtypes.bool8, query.device))
        scores = lang.where(seen, scores, -math.inf)
    weights = lang.exp(scores - lang.unsqueeze(logarithm, -1))
    shared = lang.unsqueeze(lang.sum(dy * y, -1), -1)
    dscores = weights * (lang.matmul(dy, lang.matrix_transpose(v)) - shared) * scale
    made = (
        lang.matmul(dscores, k), lang.matmul(lang.matrix_transpose(dscores), q),
        lang.matmul(lang.matrix_transpose(weights), dy),
    )  # fmt: skip
    return tuple([lang.to(g, t.dtype) for g, t in zip(made, (query, key, value), strict=True)])


block_gradients = Symbol(
    "block_gradients", DIST_PRIMS, meta=lambda dy, query, key, value, *_: (query.like(), key.like(), value.like()),
    decomposition=_block_gradients, tags=frozenset({OpTags.MATMUL}), language=lang.core,
    doc="What keys and values of one block add to the gradients of attention to all; y and logarithms are of all.",
)  # fmt: skip


def _flash_takes(bound: BoundSymbol) -> bool:
    """Whether PyTorch's kernel for the CPU computes a block: it takes the result and the logarithms of all, too."""
    _, query, key, value = bound.args[:4]
    same_width = query.shape[-1] == key.shape[-1] == value.shape[-1]
    return bool(query.device.type == "cpu" and query.ndim == 4 and same_width)


@executor.implements(block_gradients, when=_flash_takes)
def flash_gradients(
    dy: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, y: torch.Tensor,
    logarithm: torch.Tensor, is_causal: bool, scale: float,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Compute the gradients of a block by PyTorch's kernel."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    made: tuple[torch.Tensor, ...] = kernel(
        dy, query, key, value, y, logarithm, 0.0, is_causal, attn_mask=None, scale=scale
    )
    return made


# Attention ------------------------------------------------------------------------------------------------------------


def _meta(query: TensorProxy, key: TensorProxy, value: TensorProxy, *_: Any) -> TensorProxy:
    return query.like(shape=(*query.shape[:-1], value.shape[-1]))


ring_attention = Symbol(
    "ring_attention", DIST_PRIMS, meta=_meta, decomposition=lambda *args: _attended(*args)[0],
    tags=frozenset({OpTags.MATMUL}), language=lang.core,
    doc="Attention of this process's queries to the keys of all processes of an axis, which go around the ring.",
)  # fmt: skip


@vjp_rule(ring_attention)
def ring_attention_vjp(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, axis: Axis, is_causal: bool, scale: float
) -> tuple[TensorProxy, Pullback]:
    """Of operands, result and logarithms; keys of other processes are not kept, and go around again."""
    y, logarithm = _attended(query, key, value, axis, is_causal, scale)
    return y, lambda dy: _gradients(dy, query, key, value, y, logarithm, axis, is_causal, scale)


__all__ = ["block_gradients", "flash_gradients", "ring_attention", "ring_attention_vjp"]
