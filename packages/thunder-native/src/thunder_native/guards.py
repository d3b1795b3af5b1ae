"""Guards on many tensors in native code: whether they are as they were when PyTorch's own check passed."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import torch

from thunder_guards import snapshots
from thunder_native.runtime import runtime
from thunder_native.schema import dtype_word
from thunder_native.table import CannotExpress


@snapshots
def unchanged(tensors: tuple[torch.Tensor, ...], others: int) -> Callable[[tuple[Any, ...]], bool] | None:
    """Return what tells whether tensors are the same objects as now, of the same class, dispatch keys, dtype, sizes and
    strides, and require gradients as they do now.

    Args:
        tensors: all that are to be apart from each other.
        others: how many of them, the first ones, may be different objects at each call.

    Returns:
        It takes a tuple. ``None`` where native code is not in memory, does not know a dtype, or a tensor is not a
        strided one of the CPU.
    """
    if not runtime.cache_info().currsize:
        return None
    made = runtime()
    words = [len(tensors) - others, others, made.layout.tensor, made.layout.keys]
    try:
        for t in tensors[others:]:
            keys = torch._C._dispatch_keys(t).raw_repr()
            if t.layout is not torch.strided or t.device.type != "cpu":  # dispatch keys do not tell a device's index
                return None
            words += (id(t), id(type(t)), _signed(keys), dtype_word(t.dtype), int(t.requires_grad), t.ndim)
            words += (*t.shape, *t.stride())
    except CannotExpress:
        return None
    head = array("q", words)
    return made.callable_of("unchanged", head.buffer_info()[0], (head,))


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
