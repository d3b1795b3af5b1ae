"""Scaled dot product attention and its backward, with what the one leaves for the other."""

from __future__ import annotations

from typing import Any

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import DTypeError, OpTags, ShapeError, Symbol, TensorProxy, dtypes
from thunder_prims.axes import filled, of_dtype, positions, restored, swapped
from thunder_prims.checks import FLOATING, check_accepts
from thunder_prims.comparison import ge, isfinite
from thunder_prims.conditional import where
from thunder_prims.elementwise_unary import exp, log
from thunder_prims.fused import fused
from thunder_prims.linalg import matmul
from thunder_prims.operands import check_device_of, check_has_shape, check_operands
from thunder_prims.reduction import amax, sum
from thunder_prims.shape import batch_first, broadcast_in_dim, reshape
from thunder_vmap import batching_rule

__all__ = ["attention", "attention_backward"]


def _check(query: TensorProxy, key: TensorProxy, value: TensorProxy, mask: TensorProxy | None) -> None:
    check_operands("attention", query, key, value)
    check_accepts("attention", query, FLOATING)
    if (
        not 2 <= query.ndim == key.ndim == value.ndim
        or not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
        or query.shape[-1] != key.shape[-1]
        or key.shape[-2] != value.shape[-2]
    ):
        raise ShapeError(
            "attention needs shapes (..., l, e), (..., s, e) and (..., s, v), "
            f"got {query.type_string}, {key.type_string} and {value.type_string}"
        )
    if key.shape[-2] == 0:
        raise ShapeError(f"attention needs at least one key, got {key.type_string}")
    if mask is not None:
        check_has_shape("attention", "a mask", mask, (*query.shape[:-1], key.shape[-2]))
        check_device_of("attention", query, mask)
        if not mask.dtype.is_bool and mask.dtype is not query.dtype:
            raise DTypeError(
                f"attention of {query.type_string} needs a mask of bool8 or its dtype, got {mask.type_string}"
            )


@fused(OpTags.MATMUL)
def attention(
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    mask: TensorProxy | None,
    is_causal: bool,
    scale: float,
) -> tuple[TensorProxy, TensorProxy]:
    """Return ``softmax(query @ key.mT * scale + mask) @ value``, and the logarithms of the sums inside the softmax.

    Args:
        query: shape ``(..., l, e)``, floating-point.
        key: shape ``(..., s, e)``, with ``s`` at least 1.
        value: shape ``(..., s, v)``.
        mask: shape ``(..., l, s)``: of the dtype of ``query``, added to the scores, or ``bool8``, true for those that
            take part; or ``None``.
        is_causal: of the keys, the ``i``-th query sees those up to the ``i``-th only.
        scale: of the scores.

    Returns:
        The result, shape ``(..., l, v)``, and the logarithms, shape ``(..., l)``, in ``float32`` at least. A query that
        sees no key has the result 0 and the logarithm minus infinity.

    Source:
        ``torch.nn.functional.scaled_dot_product_attention``.
    """
    _check(query, key, value, mask)
    scores = _scores(query, key, mask, is_causal, scale)
    last = (scores.ndim - 1,)
    greatest = _finite(amax(scores, last))
    logarithm = log(sum(exp(scores - restored(greatest, scores.shape, last)), last)) + greatest
    y = matmul(_weights(scores, logarithm), _wide(value))
    return of_dtype(y, query.dtype), logarithm


def _wide(a: Any) -> Any:
    """Return operands of a product in ``float32`` at least: errors of scores are errors of exponents."""
    return of_dtype(a, dtypes.float32) if a.dtype.bits < 32 else a


def _scores(query: Any, key: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """Return the scores, with minus infinity where a query does not see a key, in ``float32`` at least."""
    scores = matmul(_wide(query), swapped(_wide(key))) * scale
    if mask is not None and mask.dtype.is_bool:
        scores = where(mask, scores, float("-inf"))
    elif mask is not None:
        scores = scores + of_dtype(mask, scores.dtype)
    if is_causal:
        shape = scores.shape[-2:]
        seen = ge(positions(scores, shape, 0), positions(scores, shape, 1))
        scores = where(broadcast_in_dim(seen, scores.shape, (scores.ndim - 2, scores.ndim - 1)), scores, float("-inf"))
    return scores


def _finite(a: Any) -> Any:
    return where(isfinite(a), a, 0.0)


def _weights(scores: Any, logarithm: Any) -> Any:
    return exp(scores - restored(_finite(logarithm), scores.shape, (scores.ndim - 1,)))


@fused(OpTags.MATMUL)
def attention_backward(
    dy: TensorProxy,
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    mask: TensorProxy | None,
    y: TensorProxy,
    logarithm: TensorProxy,
    is_causal: bool,
    scale: float,
) -> tuple[TensorProxy, TensorProxy, TensorProxy]:
    """Return the gradients of query, key and value of ``attention``, computing its weights again.

    Args:
        dy: of the shape of ``y``.
        query, key, value, mask, is_causal, scale: as for ``attention``.
        y, logarithm: what ``attention`` returned.
    """
    gradients = _gradients(dy, None, query, key, value, mask, y, logarithm, is_causal, scale)
    return gradients[:3]


def _gradients(
    dy: Any,
    dlogarithm: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    y: Any,
    logarithm: Any,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of query, key, value and scores."""
    weights = _weights(_scores(query, key, mask, is_causal, scale), logarithm)
    last = (weights.ndim - 1,)
    wide_dy = _wide(dy)
    dvalue = of_dtype(matmul(swapped(weights), wide_dy), value.dtype)
    dweights = matmul(wide_dy, swapped(_wide(value)))
    shared = sum(weights * dweights, last)  # of the result, which is rounded, it would be less precise
    if dlogarithm is not None:
        shared = shared - dlogarithm
    dscores = weights * (dweights - restored(shared, weights.shape, last))
    scaled = dscores * scale
    dquery, dkey = matmul(scaled, _wide(key)), matmul(swapped(scaled), _wide(query))
    return of_dtype(dquery, query.dtype), of_dtype(dkey, key.dtype), dvalue, dscores


@vjp_rule(attention)
def attention_vjp(
    query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: float
) -> tuple[tuple[TensorProxy, TensorProxy], Pullback]:
    """From operands, result and logarithms, as flash attention does; no weights are kept.

    Source:
        T. Dao et al., *FlashAttention*, 2022, algorithm 4.
    """
    y, logarithm = attention(query, key, value, mask, is_causal, scale)

    def pullback(dy: Any, dlogarithm: Any) -> tuple[Any, ...]:
        saved = (query, key, value, mask, y, logarithm, is_causal, scale)
        has_bias = mask is not None and not mask.dtype.is_bool
        if dlogarithm is None and not has_bias:
            return attention_backward(dy, *saved)  # type: ignore[no-any-return]
        dy = filled(y, 0) if dy is None else dy
        dquery, dkey, dvalue, dscores = _gradients(dy, dlogarithm, *saved)
        return dquery, dkey, dvalue, of_dtype(dscores, mask.dtype) if has_bias else None

    return (y, logarithm), pullback


@jvp_rule(attention)
def attention_jvp(*both: Any) -> tuple[Any, Any]:
    """``dy = dweights @ value + weights @ dvalue`` with ``dweights = weights * (dscores - sum(weights * dscores))``."""
    (query, key, value, mask, is_causal, scale), (dquery, dkey, dvalue, dmask, *_) = both[:6], both[6:]
    y, logarithm = attention(query, key, value, mask, is_causal, scale)
    weights = _weights(_scores(query, key, mask, is_causal, scale), logarithm)
    last = (weights.ndim - 1,)
    parts = []
    if dquery is not None:
        parts.append(matmul(_wide(dquery), swapped(_wide(key))) * scale)
    if dkey is not None:
        parts.append(matmul(_wide(query), swapped(_wide(dkey))) * scale)
    if dmask is not None:
        parts.append(of_dtype(dmask, weights.dtype))
    dy = None if dvalue is None else matmul(weights, _wide(dvalue))
    if not parts:
        return (y, logarithm), (None if dy is None else of_dtype(dy, y.dtype), None)
    dscores = parts[0]
    for part in parts[1:]:
        dscores = dscores + part
    dlogarithm = sum(weights * dscores, last)
    dweights = weights * (dscores - restored(dlogarithm, weights.shape, last))
    through = matmul(dweights, _wide(value))
    return (y, logarithm), (of_dtype(through if dy is None else dy + through, y.dtype), dlogarithm)


def _batches_attention(*symbols: Symbol) -> None:
    """Give attention its batching rule: the batch joins the first of the leading dimensions, if there are any."""

    def register(symbol: Symbol) -> None:
        @batching_rule(symbol)
        def rule(size: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            tensors = [
                batch_first(a, d, size) if isinstance(a, TensorProxy) else a for a, d in zip(args, dims, strict=True)
            ]
            single = tensors[1].ndim == 3
            output = symbol(*(tensors if single else map(_joined, tensors)))
            if not single:
                output = tuple([reshape(o, (size, o.shape[0] // size, *o.shape[1:])) for o in output])
            return output, (0,) * len(output)

    for symbol in symbols:
        register(symbol)


def _joined(a: Any) -> Any:
    return reshape(a, (a.shape[0] * a.shape[1], *a.shape[2:])) if isinstance(a, TensorProxy) else a


_batches_attention(attention, attention_backward)
