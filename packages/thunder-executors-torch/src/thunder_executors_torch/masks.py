"""Masks that several calls of attention share are turned once into what is added to their scores.

PyTorch does that in each call, for a mask of bools. Layers of a model share their mask.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from thunder_executors_torch.executor import executor
from thunder_ir import BoundSymbol, DType, TensorProxy, Trace
from thunder_ir.passes import trace_pass
from thunder_torch import to_torch_dtype
from thunder_torch.convert import from_torch_dtype

ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
Key = tuple[str, DType]


def added_to_scores(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return zeros where a mask of bools is true, and minus infinity elsewhere, in its shape.

    Args:
        mask: of any shape; what it shares along dimensions, the result shares.
        dtype: of the scores.

    Example:
        >>> import torch
        >>> from thunder_executors_torch.masks import added_to_scores
        >>> added_to_scores(torch.tensor([True, False]), torch.float32)
        tensor([0., -inf])
    """
    once = mask
    for dim, stride in enumerate(mask.stride()):
        if stride == 0 and mask.shape[dim] > 1:
            once = once.narrow(dim, 0, 1)
    added = torch.zeros(once.shape, dtype=dtype).masked_fill_(once.logical_not(), -torch.inf)
    return added if once is mask else added.expand(mask.shape)


_added_to_scores = executor.plain(added_to_scores, lambda mask, dtype: mask.like(dtype=from_torch_dtype(dtype)))


def mask_of(bound: BoundSymbol) -> Key | None:
    """Return name and dtype of what a call of attention needs of a mask of bools on the CPU; ``None`` for others."""
    if bound.symbol.path != ATTENTION:
        return None
    query, mask = bound.args[0], bound.args[3] if len(bound.args) > 3 else bound.kwargs.get("attn_mask")
    if not isinstance(mask, TensorProxy) or not mask.dtype.is_bool or mask.device.type != "cpu":
        return None
    return (mask.name, query.dtype) if isinstance(query, TensorProxy) and query.dtype.is_floating else None


@trace_pass
def share_masks(trace: Trace) -> Trace:
    """Turn the masks that several calls of attention share before the first of them.

    Args:
        trace: a program of calls that this executor makes, or others.
    """
    keys = [mask_of(bound) for bound in trace.bound_symbols]
    shared = {key for key, count in Counter(keys).items() if key is not None and count > 1}
    if not shared:
        return trace
    turned: dict[Key, TensorProxy] = {}
    names = trace.names()
    bounds: list[BoundSymbol] = []
    for bound, key in zip(trace.bound_symbols, keys, strict=True):
        if key in shared and key is not None:
            mask: Any = next(p for p in bound.inputs if p.name == key[0])
            if key not in turned:
                args = mask, to_torch_dtype(key[1])
                turned[key] = mask.like(dtype=key[1]).renamed(names.fresh("mask"))
                bounds.append(BoundSymbol(_added_to_scores, args, {}, turned[key], bound.location))
            bound = bound.substituted({key[0]: turned[key]})
        bounds.append(bound)
    return trace.replace(bound_symbols=tuple(bounds))


executor.passes.append(share_masks)

__all__ = ["added_to_scores", "share_masks"]
