"""Graphs of cuDNN as functions of PyTorch, for what PyTorch has no function of: sequences that lie one after the other,
keys and values in pages, and products whose elements are changed before they are written.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from thunder_executors_cudnn import running
from thunder_executors_cudnn.problems import Attention, AttentionGradient, Layout, Pages, Problem, Product
from thunder_executors_cudnn.rules import why_not

STEP = 128
"""Lengths are rounded up to a multiple of it: one plan serves all of them."""


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _run(problem: Problem, tensors: dict[str, torch.Tensor], device: torch.device) -> None:
    reason = why_not(problem, running.machine.target(device).capability)
    if reason is not None:
        raise running.GraphError(reason.text)
    running.machine.run(problem, tensors, device)


def _packed(tensor: torch.Tensor, batch: int, longest: int) -> Layout:
    """Return how the library sees ``(total, heads, width)``: as if each sequence were as long as the longest."""
    _, heads, width = tensor.shape
    return Layout(
        (batch, heads, longest, width), (longest * heads * width, width, heads * width, 1), _dtype(tensor)
    )  # fmt: skip


def _starts(starts: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return at which element sequences begin that begin at these rows."""
    return starts.to(torch.int64) * (tensor.shape[1] * tensor.shape[2])


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Any, key: Any, value: Any, query_starts: Any, key_starts: Any, longest: Any, causal: bool,
        scale: float,
    ) -> Any:  # fmt: skip
        batch = query_starts.shape[0] - 1
        out = query.new_empty((*query.shape[:2], value.shape[2]))
        rows, columns = (-(-n // STEP) * STEP for n in longest)
        q, o = (_packed(t, batch, rows) for t in (query, out))
        k, v = (_packed(t, batch, columns) for t in (key, value))
        wanted = any(ctx.needs_input_grad[:3])
        problem = Attention(q, k, v, None, o, causal, 0.0, scale, wanted, padded=True, packed=True)
        tensors = {
            "query": query, "key": key, "value": value, "out": out,
            "query_starts": _starts(query_starts, query), "key_starts": _starts(key_starts, key),
            "value_starts": _starts(key_starts, value), "out_starts": _starts(query_starts, out),
            "query_lengths": query_starts.diff().to(torch.int32), "key_lengths": key_starts.diff().to(torch.int32),
        }  # fmt: skip
        if wanted:
            tensors["statistics"] = query.new_empty((*q.shape[:3], 1), dtype=torch.float32)
        _run(problem, tensors, query.device)
        ctx.problem, ctx.names = problem, tuple(tensors)
        ctx.save_for_backward(*tensors.values())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Any) -> Any:
        tensors = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        gradients = [torch.empty_like(tensors[name]) for name in ("query", "key", "value")]
        p = ctx.problem
        exact = torch.are_deterministic_algorithms_enabled()
        given = dict(zip(("dquery", "dkey", "dvalue"), gradients, strict=True))
        problem = AttentionGradient(p, p.out, p.query, p.key, p.value, exact)
        _run(problem, {**tensors, "dout": dout.contiguous(), **given}, dout.device)
        return *gradients, None, None, None, None, None


def packed_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, query_starts: torch.Tensor, key_starts: torch.Tensor,
    longest_query: int, longest_key: int, causal: bool = False, scale: float | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return the attention of sequences that lie one after the other.

    Args:
        query: ``(rows of all, heads, width)``, float16 or bfloat16.
        key: ``(rows of all, groups, width)``; ``groups`` divides ``heads``.
        value: ``(rows of all, groups, other width)``.
        query_starts: at which row each sequence of queries begins, and after the last its end, integers.
        key_starts: the same of keys and values.
        longest_query: a length that no sequence of queries exceeds.
        longest_key: the same of keys.
        causal: whether a row sees only the keys up to its own number in its sequence.
        scale: of the scores; one divided by the square root of the width if not given.

    Returns:
        ``(rows of all, heads, other width)``; it has gradients for query, key and value.

    Raises:
        GraphError: the library makes no plan for it.
    """
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    longest = (max(longest_query, 1), max(longest_key, 1))
    apply: Any = _Packed.apply
    out: torch.Tensor = apply(query, key, value, query_starts, key_starts, longest, causal, factor)
    return out


def paged_attention(
    query: torch.Tensor, key_pool: torch.Tensor, value_pool: torch.Tensor, table: torch.Tensor,
    key_lengths: torch.Tensor, causal: bool = False, scale: float | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return the attention to keys and values that lie in blocks of a pool, as caches of serving programs have them.

    Args:
        query: ``(batch, heads, length, width)``, float16 or bfloat16.
        key_pool: ``(blocks, groups, size, width)``; ``size`` is a power of two.
        value_pool: ``(blocks, groups, size, other width)``.
        table: ``(batch, number of blocks)``, int32: which blocks a sequence has, in order.
        key_lengths: ``(batch,)``: how many rows of these count.
        causal: whether a row sees only the keys up to its own number.
        scale: of the scores; one divided by the square root of the width if not given.

    Returns:
        ``(batch, heads, length, other width)``, without a gradient.

    Raises:
        GraphError: a gradient is wanted, or the library makes no plan for it.
    """
    _no_gradient("attention to pages", query, key_pool, value_pool)
    query, key_pool, value_pool = query.contiguous(), key_pool.contiguous(), value_pool.contiguous()
    batch, heads, length, width = query.shape
    blocks, groups, size, _ = key_pool.shape
    pages = Pages(blocks, size, table.shape[1])
    most = pages.each * size
    key = Layout((batch, groups, most, width), key_pool.stride(), _dtype(query))
    value = Layout((batch, groups, most, value_pool.shape[3]), value_pool.stride(), _dtype(query))
    out = query.new_empty((batch, heads, length, value_pool.shape[3]))
    q, o = (Layout(tuple(t.shape), t.stride(), _dtype(t)) for t in (query, out))
    factor = 1 / math.sqrt(width) if scale is None else scale
    problem = Attention(q, key, value, None, o, causal, 0.0, factor, False, padded=True, pages=pages)
    tensors = {
        "query": query, "key": key_pool, "value": value_pool, "out": out, "key_table": table.to(torch.int32),
        "value_table": table.to(torch.int32), "key_lengths": key_lengths.to(torch.int32),
        "query_lengths": torch.full((batch,), length, dtype=torch.int32, device=query.device),
    }  # fmt: skip
    _run(problem, tensors, query.device)
    return out


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, activation: str = "none",
    gate: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return ``activation(linear(x, weight, bias)) * gate`` by one kernel.

    Args:
        x: ``(..., inner)``, float16 or bfloat16.
        weight: ``(columns, inner)``.
        bias: ``(columns,)``.
        activation: ``"none"``, ``"relu"``, ``"gelu"``, ``"gelu_tanh"`` or ``"silu"``.
        gate: ``(..., columns)``.

    Returns:
        ``(..., columns)``, without a gradient.

    Raises:
        GraphError: a gradient is wanted, or the library makes no plan for it.
    """
    given = {"weight": weight, "bias": bias, "gate": gate}
    _no_gradient("a product with what follows it", x, *given.values())
    matrix = x.reshape(-1, x.shape[-1]).contiguous()
    rows, inner = matrix.shape
    problem = Product(rows, inner, weight.shape[0], _dtype(x), bias is not None, activation, gate is not None)
    out = x.new_empty((*x.shape[:-1], weight.shape[0]))
    tensors = {name: tensor.contiguous() for name, tensor in given.items() if tensor is not None}
    _run(problem, {"input": matrix, **tensors, "out": out}, x.device)
    return out


def _no_gradient(what: str, *tensors: torch.Tensor | None) -> None:
    if torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in tensors]):
        raise running.GraphError(f"{what} has no gradient here; call it under torch.no_grad()")


__all__ = ["linear", "packed_attention", "paged_attention"]
