"""Embeddings that do more than look up: they renormalise their weight in place, or have sparse gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_tracing.tensors._handlers import answers
from thunder_tracing.tensors.calls import Calls

T = torch.Tensor


@answers(F.embedding)
def _embedding(
    calls: Calls,
    input: T,
    weight: T,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    _renormalise(calls, weight, input, max_norm, norm_type)
    if sparse is True:
        return _recorded(calls, sparsely_embedded, input, weight, padding_idx, scale_grad_by_freq)
    return _recorded(calls, F.embedding, input, weight, padding_idx, None, 2.0, scale_grad_by_freq, sparse)


@answers(F.embedding_bag)
def _embedding_bag(
    calls: Calls,
    input: T,
    weight: T,
    offsets: T | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: T | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    _renormalise(calls, weight, input, max_norm, norm_type)
    return _recorded(
        calls, F.embedding_bag, input, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
        sparse=sparse, per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )  # fmt: skip


def sparsely_embedded(input: T, weight: T, padding_idx: int | None, scale_grad_by_freq: bool) -> T:
    """Return what ``embedding`` returns, with a gradient that holds only the rows that were looked up."""
    return F.embedding(input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=True)


def _renormalise(calls: Calls, weight: T, input: T, max_norm: float | None, norm_type: float) -> None:
    """Write the rows that are looked up anew where they are too long: unseen by autograd, as eager does."""
    if max_norm is not None:
        with torch.no_grad():
            calls(torch.embedding_renorm_, (weight, input, max_norm, norm_type), {})


def _recorded(calls: Calls, function: object, *args: Any, **kwargs: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return calls.record(function, args, kwargs)
