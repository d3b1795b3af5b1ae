"""Embeddings that do more than look up: they renormalise their weight in place, or have sparse gradients."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_tracing.tensors._handlers import answers_each
from thunder_tracing.tensors.calls import Calls

T = torch.Tensor


@answers_each(F.embedding, F.embedding_bag)
def _embedding(function: Any, calls: Calls, *args: Any, **kwargs: Any) -> Any:
    bound = signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given["max_norm"] is not None:  # rows that are too long are written anew: unseen by autograd, as eager does
        with torch.no_grad():
            calls(torch.embedding_renorm_, tuple([given[n] for n in ("weight", "input", "max_norm", "norm_type")]), {})
        given["max_norm"], given["norm_type"] = None, 2.0
    with torch._C.DisableTorchFunctionSubclass():
        if function is F.embedding and given["sparse"] is True:
            names = ("input", "weight", "padding_idx", "scale_grad_by_freq")
            return calls.record(sparsely_embedded, tuple([given[n] for n in names]), {})
        return calls.record(function, bound.args, bound.kwargs)


def sparsely_embedded(input: T, weight: T, padding_idx: int | None, scale_grad_by_freq: bool) -> T:
    """Return what ``embedding`` returns, with a gradient that holds only the rows that were looked up."""
    return F.embedding(input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=True)
