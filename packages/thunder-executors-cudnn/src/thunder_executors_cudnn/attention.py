"""Scaled dot product attention by cuDNN, and its derivative."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from thunder_autograd import DRAWS_APART
from thunder_executors import Declined, takes_tensors
from thunder_executors_cudnn import running
from thunder_executors_cudnn.executor import executor, layout_of, takes
from thunder_executors_cudnn.problems import Attention, AttentionGradient, Layout
from thunder_ir import OpTags, TensorProxy, current_builder, dtypes
from thunder_torch import call_arguments, symbol_of
from thunder_torch.call_arguments import called_with

Rule = tuple[Any, Any]
Mask = torch.Tensor | None
STATE = (1, 1, 1, 1)
LARGEST_SEED = 2**62


def _layout(tensor: torch.Tensor) -> Layout:
    return Layout(tuple(tensor.shape), tensor.stride(), str(tensor.dtype).removeprefix("torch."))


def dense_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as the kernels read it: the elements of a row one after the other, and none of them twice."""
    shared = any([step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)])
    return tensor.contiguous() if shared or tensor.stride(-1) != 1 else tensor


def empty_in_order(like: torch.Tensor, width: int) -> torch.Tensor:
    """Return an empty tensor as ``like``, of another width, with the dimensions in the same order in memory."""
    strides = like.stride()
    order = sorted(range(like.ndim), key=lambda d: (-strides[d], d))
    shape = (*like.shape[:-1], width)
    made = like.new_empty([shape[d] for d in order])
    return made.permute([order.index(d) for d in range(like.ndim)])


def _problem(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Mask, out: torch.Tensor, causal: bool,
    dropout: float, scale: float, statistics: bool,
) -> Attention:  # fmt: skip
    mask = None if bias is None else _layout(bias)
    tensors = (_layout(query), _layout(key), _layout(value))
    return Attention(*tensors, mask, _layout(out), causal, dropout, scale, statistics)


def run_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Mask, causal: bool, dropout: float,
    scale: float, statistics: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Return the result; if statistics are wanted, the rows' logarithms of sums, and seed and offset of the dropout.

    The seed is drawn by PyTorch's generator of the device, where it stays: no value is waited for.
    """
    query, key, value = dense_rows(query), dense_rows(key), dense_rows(value)
    bias = None if bias is None else bias.contiguous()
    out = empty_in_order(query, value.shape[-1])
    problem = _problem(query, key, value, bias, out, causal, dropout, scale, statistics)
    tensors = {"query": query, "key": key, "value": value, "out": out}
    if bias is not None:
        tensors["bias"] = bias
    found = [out]
    if dropout:
        seed = torch.randint(LARGEST_SEED, STATE, dtype=torch.int64, device=query.device)
        tensors |= {"seed": seed, "offset": torch.zeros_like(seed)}
    if statistics:
        tensors["statistics"] = query.new_empty((*query.shape[:3], 1), dtype=torch.float32)
        found += [tensors["statistics"], *([tensors["seed"], tensors["offset"]] if dropout else [])]
    running.machine.run(problem, tensors, query.device)
    return tuple(found)


def run_attention_gradient(
    dout: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Mask, out: torch.Tensor,
    statistics: torch.Tensor, causal: bool, dropout: float, scale: float, *state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the gradients of query, key and value; ``state`` is seed and offset of the dropout, if there was one."""
    query, key, value, dout = dense_rows(query), dense_rows(key), dense_rows(value), dense_rows(dout)
    bias = None if bias is None else bias.expand(*bias.shape[:2], query.shape[2], -1).contiguous()
    gradients = [empty_in_order(t, t.shape[-1]) for t in (query, key, value)]
    forward = _problem(query, key, value, bias, out, causal, dropout, scale, True)
    deterministic = torch.are_deterministic_algorithms_enabled()
    dquery, dkey, dvalue = gradients
    layouts = (_layout(dquery), _layout(dkey), _layout(dvalue))
    problem = AttentionGradient(forward, _layout(dout), *layouts, deterministic)
    tensors = {"query": query, "key": key, "value": value, "out": out, "dout": dout, "statistics": statistics}
    if bias is not None:
        tensors["bias"] = bias
    tensors |= dict(zip(("seed", "offset"), state, strict=False))
    tensors |= dict(zip(("dquery", "dkey", "dvalue"), gradients, strict=True))
    running.machine.run(problem, tensors, query.device)
    return dquery, dkey, dvalue


def _meta(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, bias: Any, causal: bool, dropout: float, scale: float,
    statistics: bool,
) -> tuple[TensorProxy, ...]:  # fmt: skip
    out = query.like(shape=(*query.shape[:3], value.shape[3]))
    if not statistics:
        return (out,)
    sums = query.like(shape=(*query.shape[:3], 1), dtype=dtypes.float32, requires_grad=False)
    state = [query.like(shape=STATE, dtype=dtypes.int64, requires_grad=False) for _ in range(2 if dropout else 0)]
    return out, sums, *state


def _gradient_meta(dout: Any, query: TensorProxy, key: TensorProxy, value: TensorProxy, *rest: Any) -> Any:
    return tuple([t.like(requires_grad=False) for t in (query, key, value)])


attention = executor.register_operator("attention", meta=_meta, fn=run_attention, tags=(OpTags.MATMUL,))
attention_with_dropout = executor.register_operator(
    "attention_with_dropout", meta=_meta, fn=run_attention, tags=(OpTags.MATMUL, OpTags.RANDOM)
)
attention_gradient = executor.register_operator(
    "attention_gradient", meta=_gradient_meta, fn=run_attention_gradient, tags=(OpTags.MATMUL,)
)


def _scale(c: call_arguments.Attention) -> float:
    return 1 / math.sqrt(c.query.shape[-1]) if c.scale is None else float(c.scale)


@called_with(call_arguments.Attention)
def takes_attention(c: call_arguments.Attention) -> bool | Declined:
    """Whether cuDNN takes this attention, and its gradient if one is wanted."""
    operands, mask = (c.query, c.key, c.value), c.attn_mask
    answer = takes_tensors(*operands, mask, on=running.machine.types)
    if not answer:
        return answer
    if any([t.ndim != 4 for t in operands]):
        return Declined("it takes query, key and value of four dimensions")
    if mask is not None and (c.is_causal or mask.ndim != 4 or mask.requires_grad):
        return Declined("it takes a mask of four dimensions that needs no gradient, and is_causal= without one")
    if c.query.shape[1] != c.key.shape[1] and not c.enable_gqa:
        return Declined("query and key have not as many heads, and enable_gqa= is not set")
    inputs = (_read(c.query), _read(c.key), _read(c.value))
    out = Layout.dense((*inputs[0].shape[:3], inputs[2].shape[3]), inputs[0].dtype)
    bias = None if mask is None else Layout.dense(layout_of(mask).shape, mask.dtype.name)
    wanted = any([t.requires_grad for t in operands])
    problem = Attention(*inputs, bias, out, c.is_causal, c.dropout_p, _scale(c), wanted)
    answer = takes(problem, c.query.device)
    if not answer or not wanted:
        return answer
    deterministic = torch.are_deterministic_algorithms_enabled()
    return takes(AttentionGradient(with_each_row(problem), out, *inputs, deterministic), c.query.device)


def with_each_row(problem: Attention) -> Attention:
    """Return attention with a mask of as many rows as the scores: gradients are wrong where it has one for all."""
    if problem.bias is None:
        return problem
    batch, heads, _, columns = problem.bias.shape
    shape = (batch, heads, problem.query.shape[2], columns)
    return replace(problem, bias=Layout.dense(shape, problem.bias.dtype))


def _read(tensor: TensorProxy) -> Layout:
    """Return how a tensor is laid out when the kernels read it; see :func:`dense_rows`."""
    layout = layout_of(tensor)
    plain = layout.strides[-1] == 1 and 0 not in layout.strides
    return layout if plain else replace(layout, strides=Layout.dense(layout.shape, layout.dtype).strides)


@called_with(call_arguments.Attention)
def scaled_dot_product_attention(c: call_arguments.Attention) -> Rule:
    """Save the operands, the result, the rows' logarithms of sums, and where the dropout began to draw."""
    operands, options = (c.query, c.key, c.value, c.attn_mask), (c.is_causal, c.dropout_p, _scale(c))
    runs = attention_with_dropout if c.dropout_p else attention
    with current_builder().tagged(*([DRAWS_APART] if c.dropout_p else [])):  # each kernel in its own order
        out, statistics, *state = runs(*operands, *options, True)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        found: tuple[Any, ...] = attention_gradient(dy, *operands, out, statistics, *options, *state)
        return found

    return out, pullback


@called_with(call_arguments.Attention)
def attention_alone(c: call_arguments.Attention) -> Any:
    """The result, where no gradient is asked for."""
    runs = attention_with_dropout if c.dropout_p else attention
    return runs(c.query, c.key, c.value, c.attn_mask, c.is_causal, c.dropout_p, _scale(c), False)[0]


executor.runs_by_rule(
    symbol_of(torch.nn.functional.scaled_dot_product_attention),
    scaled_dot_product_attention,
    takes_attention,
    attention_alone,
)
