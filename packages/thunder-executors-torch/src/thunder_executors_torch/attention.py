"""Attention by PyTorch's fused kernels: flash on the CPU; flash, efficient and cuDNN on CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import thunder_prims as prims
from thunder_autograd import DRAWS_APART
from thunder_executors_torch import calls
from thunder_executors_torch.executor import executor, gradients
from thunder_ir import BoundSymbol, OpTags, TensorProxy, current_builder, dtypes
from thunder_ir.number_proxies import Dimension
from thunder_torch import to_torch_device, to_torch_dtype

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
Masks = TensorProxy | None
Rule = tuple[Any, Any]


def _lse(query: TensorProxy) -> TensorProxy:
    dtype = dtypes.float32 if query.dtype.bits < 32 else query.dtype
    return query.like(shape=query.shape[:-1], dtype=dtype, requires_grad=False)


def _out(query: TensorProxy, value: TensorProxy) -> TensorProxy:
    return query.like(shape=(*query.shape[:-1], value.shape[-1]))


def _state(query: TensorProxy, *shape: int) -> TensorProxy:
    return query.like(shape=shape, dtype=dtypes.int64, requires_grad=False)


def _cpu_meta(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, dropout_p: float, is_causal: bool, **options: Any
) -> tuple[TensorProxy, TensorProxy]:
    return _out(query, value), _lse(query)


def _backward_meta(
    dy: TensorProxy, query: TensorProxy, key: TensorProxy, value: TensorProxy, *rest: Any, **options: Any
) -> Any:
    return query.like(), key.like(), value.like()


def _flash_meta(
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    dropout_p: float,
    is_causal: bool,
    debug: bool,
    **options: Any,
) -> tuple[Any, ...]:
    state, unused = (_state(query, *shape).like(dtype=dtypes.uint64) for shape in ((2,), ()))
    lengths = (query.shape[2], key.shape[2])
    return (_out(query, value), _lse(query), None, None, *lengths, state, unused, query.like(shape=(0,)))


def _efficient_meta(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, bias: Any, compute_lse: bool, *rest: Any, **options: Any
) -> tuple[TensorProxy, ...]:
    length = query.shape[2]
    padded = (length + 31) // 32 * 32
    lse = query.like(shape=(*query.shape[:2], padded), dtype=dtypes.float32, requires_grad=False)
    return _out(query, value), lse, _state(query), _state(query)


def _efficient_backward_meta(
    dy: TensorProxy, query: TensorProxy, key: TensorProxy, value: TensorProxy, *rest: Any, **options: Any
) -> tuple[Any, ...]:
    return query.like(), key.like(), value.like(), None


def _cudnn_meta(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, bias: Any, compute_lse: bool, *rest: Any, **options: Any
) -> tuple[Any, ...]:
    lse = query.like(shape=(*query.shape[:-1], 1), dtype=dtypes.float32, requires_grad=False)
    state = _state(query)
    return _out(query, value), lse, None, None, query.shape[2], key.shape[2], state, _state(query), None


def flash_gradients(
    dy: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: Any, lse: Any, *rest: Any, **options: Any
) -> tuple[torch.Tensor, ...]:
    """What the kernel computes, by way of matmuls, which PyTorch's autograd can differentiate again."""
    _, is_causal = rest

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, **options)

    return tuple(gradients(attend, (query, key, value), dy))


VECTOR, WIDTHS = 16, 8
"""What strides of a mask for the memory-efficient kernel, and widths of heads for flash, are multiples of."""


def aligned(mask: torch.Tensor) -> torch.Tensor:
    """Return a mask whose rows begin where the memory-efficient kernel may read vectors: it, or a copy."""
    *strides, last = mask.stride()
    if last == 1 and all([stride % VECTOR == 0 for stride in strides]):
        return mask
    length = mask.shape[-1]
    odd = length % VECTOR
    rows = torch.nn.functional.pad(mask, (0, VECTOR - odd)) if odd else mask
    if not odd or not rows.is_contiguous():
        rows = rows.clone(memory_format=torch.contiguous_format)
    return rows.narrow(-1, 0, length)


def widened(a: torch.Tensor) -> torch.Tensor:
    """Return heads of a width that flash takes, the rest of it zeros."""
    return torch.nn.functional.pad(a, (0, -a.shape[-1] % WIDTHS))


def _widened_meta(a: TensorProxy) -> TensorProxy:
    return a.like(shape=(*a.shape[:-1], a.shape[-1] + -a.shape[-1] % WIDTHS))


def _narrowed_meta(a: TensorProxy, dim: int, start: int, length: int) -> TensorProxy:
    return a.like(shape=(*a.shape[:-1], length))


aligned_rows = executor.function(aligned, lambda mask: mask.like(), OpTags.VIEW, OpTags.MAY_COPY)
widened_heads = executor.function(widened, _widened_meta)
narrowed_heads = executor.call("torch.narrow", _narrowed_meta, OpTags.VIEW)
HEAVY = (OpTags.MATMUL,)
flash_on_cpu = executor.call("torch._scaled_dot_product_flash_attention_for_cpu", _cpu_meta, *HEAVY)
flash_on_cpu_backward = executor.call(
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
    _backward_meta,
    *HEAVY,
    differentiable=flash_gradients,
)
flash = executor.call("torch.ops.aten._scaled_dot_product_flash_attention.default", _flash_meta, *HEAVY, OpTags.RANDOM)
flash_backward = executor.call(
    "torch.ops.aten._scaled_dot_product_flash_attention_backward.default", _backward_meta, *HEAVY
)
efficient = executor.call(
    "torch.ops.aten._scaled_dot_product_efficient_attention.default", _efficient_meta, *HEAVY, OpTags.RANDOM
)
efficient_backward = executor.call(
    "torch.ops.aten._scaled_dot_product_efficient_attention_backward.default", _efficient_backward_meta, *HEAVY
)
cudnn = executor.call("torch.ops.aten._scaled_dot_product_cudnn_attention.default", _cudnn_meta, *HEAVY, OpTags.RANDOM)
cudnn_backward = executor.call(
    "torch.ops.aten._scaled_dot_product_cudnn_attention_backward.default", _backward_meta, *HEAVY
)


def fused(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> bool:
    """Whether a fused kernel is for this call."""
    return _kernel(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) is not None


def _kernel(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: Any, is_causal: Any, scale: Any, gqa: Any
) -> Callable[..., Rule] | None:
    """Return the rule of the kernel that PyTorch would choose; ``None`` where it composes attention of matmuls."""
    tensors = (query, key, value)
    if not all(isinstance(t, TensorProxy) and t.ndim == 4 and 0 not in t.shape for t in tensors):
        return None
    if any(t.dtype is not query.dtype or t.dtype not in FLOATS for t in tensors):
        return None
    if not (query.shape[0] == key.shape[0] == value.shape[0] and key.shape[1:3] == value.shape[1:3]):
        return None  # kernels do not broadcast, and read beyond what is there
    if query.shape[1] != key.shape[1] and (not gqa or query.shape[1] % key.shape[1]):
        return None
    if isinstance(mask, TensorProxy) and (is_causal or not _fits(mask, query, key)):
        return None
    if not all([t.strides is None or t.strides[-1] == 1 for t in tensors]):
        return None  # rows that lie apart
    if query.device.type == "cpu":
        same_width = query.shape[3] == key.shape[3] == value.shape[3]
        on: bool = torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
        return _flash_on_cpu if on and same_width and dropout_p == 0 else None
    if query.device.type == "cuda" and torch.cuda.is_available():
        return _ON_CUDA.get(_choice_on_cuda(query, key, value, mask, dropout_p, is_causal, scale))
    return None


def _fits(mask: TensorProxy, query: TensorProxy, key: TensorProxy) -> bool:
    """Whether kernels take a mask: one that broadcasts to the scores."""
    scores = (*query.shape[:3], key.shape[2])
    if mask.requires_grad or mask.ndim not in (2, 4):
        return False
    return all([m in (1, n) for m, n in zip(mask.shape, scores[-mask.ndim :], strict=True)])


def _choice_on_cuda(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: Masks, dropout_p: float, is_causal: bool, scale: Any
) -> int:
    """Ask PyTorch, which wants tensors: those of one batch, which nothing reads, share what memory they need."""
    heads = query.shape[1]

    def probe(shape: tuple[Any, ...], like: TensorProxy) -> torch.Tensor:
        return torch.empty(shape, dtype=to_torch_dtype(like.dtype), device=to_torch_device(like.device))

    q, k, v = (probe((1, heads, *t.shape[2:]), t).requires_grad_() for t in (query, key, value))
    bias = None if mask is None else probe((1, 1, query.shape[2], key.shape[2]), mask)
    return int(torch._fused_sdp_choice(q, k, v, bias, dropout_p, is_causal, scale=scale))


def _additive(mask: Masks, query: TensorProxy) -> Masks:
    """Return the mask as what is added to the scores."""
    if mask is None:
        return None
    if not mask.dtype.is_bool:
        return mask if mask.dtype is query.dtype else calls.to_dtype(mask, to_torch_dtype(query.dtype))
    scores: TensorProxy = calls.where(mask, calls.full((), 0.0, query.dtype, query.device), float("-inf"))
    return scores


def _flash_on_cpu(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: Masks, dropout_p: float, is_causal: bool, scale: Any
) -> Rule:
    options = {"attn_mask": _additive(mask, query), "scale": scale}
    out, lse = flash_on_cpu(query, key, value, dropout_p, is_causal, **options)

    def pullback(dy: TensorProxy) -> Any:
        return flash_on_cpu_backward(dy, query, key, value, out, lse, dropout_p, is_causal, **options)

    return out, pullback


def _flash(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: Masks, dropout_p: float, is_causal: bool, scale: Any
) -> Rule:
    width = query.shape[3]
    odd = width % WIDTHS != 0
    if odd:  # the scale is that of the heads as they were
        scale = float(width) ** -0.5 if scale is None else scale
        query, key, value = (widened_heads(t) for t in (query, key, value))
    out, lse, cum_q, cum_k, max_q, max_k, state, unused, _ = flash(
        query, key, value, dropout_p, is_causal, False, scale=scale
    )

    def pullback(dy: TensorProxy) -> Any:
        saved = (out, lse, cum_q, cum_k, max_q, max_k)
        given = (widened_heads(dy) if odd else dy, query, key, value)
        found = flash_backward(*given, *saved, dropout_p, is_causal, state, unused, scale=scale)
        return tuple([narrowed_heads(t, -1, 0, width) for t in found]) if odd else found

    return narrowed_heads(out, -1, 0, width) if odd else out, pullback


def _efficient(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: Masks, dropout_p: float, is_causal: bool, scale: Any
) -> Rule:
    bias = _expanded(_additive(mask, query), query, key, in_vectors=True)
    out, lse, seed, offset = efficient(query, key, value, bias, True, dropout_p, is_causal, scale=scale)

    def pullback(dy: TensorProxy) -> Any:
        saved = (bias, out, lse, seed, offset, dropout_p, (True, True, True, False), is_causal)
        return efficient_backward(dy, query, key, value, *saved, scale=scale)[:3]

    return out, pullback


def _cudnn(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: Masks, dropout_p: float, is_causal: bool, scale: Any
) -> Rule:
    bias = _expanded(_additive(mask, query), query, key)
    out, lse, cum_q, cum_k, max_q, max_k, seed, offset, _ = cudnn(
        query, key, value, bias, True, dropout_p, is_causal, False, scale=scale
    )

    def pullback(dy: TensorProxy) -> Any:
        saved = (out, lse, seed, offset, bias, cum_q, cum_k, max_q, max_k, dropout_p, is_causal)
        return cudnn_backward(dy, query, key, value, *saved, scale=scale)

    return out, pullback


def _expanded(bias: Masks, query: TensorProxy, key: TensorProxy, in_vectors: bool = False) -> Masks:
    """Return what is added to the scores for every head, without taking memory for each.

    Args:
        bias: of two dimensions, or of four.
        query: of the scores.
        key: of the scores.
        in_vectors: whether its rows have to begin where vectors can be read.
    """
    if bias is None:
        return None
    if in_vectors:
        bias = aligned_rows(calls.expand(bias, (*bias.shape[:-2], query.shape[2], key.shape[2])))
    expanded: TensorProxy = calls.expand(bias, (*query.shape[:3], key.shape[2]))
    return expanded


_ON_CUDA = {1: _flash, 2: _efficient, 3: _cudnn}  # the numbers are those of torch.nn.attention.SDPBackend


@executor.differentiates_torch(torch.nn.functional.scaled_dot_product_attention, when=fused)
def scaled_dot_product_attention(
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    attn_mask: Masks = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Rule:
    """Save the operands, the result, and the logarithm of the sum of exponentials of each row."""
    rule = _kernel(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    assert rule is not None
    heads = query.shape[1]
    many_key, many_value = _for_all_heads(key, heads), _for_all_heads(value, heads)
    state = [OpTags.HOST_STATE] if dropout_p > 0 else []
    with current_builder().tagged(*([DRAWS_APART] if dropout_p > 0 else []), *state):  # each kernel in its own order
        out, pull = rule(query, many_key, many_value, attn_mask, dropout_p, is_causal, scale)

    def pullback(dy: TensorProxy) -> tuple[Any, ...]:
        with current_builder().tagged(*state):
            dquery, dkey, dvalue = pull(dy)
        return dquery, _summed_heads(dkey, key), _summed_heads(dvalue, value)

    return out, pullback


def _for_all_heads(a: TensorProxy, heads: Dimension) -> TensorProxy:
    """Repeat each head of keys or values for the group of query heads that share it."""
    batch, groups, length, width = a.shape
    if groups == heads:
        return a
    with current_builder().tagged(OpTags.RECOMPUTE):  # PyTorch's own kernel keeps what it is given
        each = prims.broadcast_in_dim(a, (batch, groups, heads // groups, length, width), (0, 1, 3, 4))
        return prims.reshape(each, (batch, heads, length, width))


def _summed_heads(gradient: TensorProxy, a: TensorProxy) -> TensorProxy:
    """Add up the gradients of a head over the query heads that shared it."""
    batch, groups, length, width = a.shape
    if gradient.shape[1] == groups:
        return gradient
    shape = (batch, groups, gradient.shape[1] // groups, length, width)
    return prims.sum(prims.reshape(gradient, shape), (2,))


def flash_can_run(bound: BoundSymbol) -> bool:
    """Whether a call of the prim, or of its backward, is for the kernel of the CPU: no mask, and four dimensions."""
    query, key, value, mask = bound.args[:4]
    plain = mask is None and query.ndim == 4 and query.dtype in FLOATS and query.device.type == "cpu"
    return bool(plain and query.shape[3] == key.shape[3] == value.shape[3] and 0 not in (*query.shape, *key.shape))


@executor.transforms(prims.attention, when=flash_can_run)
def attention(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: None, is_causal: bool, scale: float
) -> Any:
    return flash_on_cpu(query, key, value, 0.0, is_causal, attn_mask=None, scale=scale)


@executor.transforms(prims.attention_backward, when=lambda bound: flash_can_run(bound.replace(args=bound.args[1:])))
def attention_backward(
    dy: TensorProxy,
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    mask: None,
    y: TensorProxy,
    logarithm: TensorProxy,
    is_causal: bool,
    scale: float,
) -> Any:
    saved = (query, key, value, y, logarithm, 0.0, is_causal)
    return flash_on_cpu_backward(dy, *saved, attn_mask=None, scale=scale)
