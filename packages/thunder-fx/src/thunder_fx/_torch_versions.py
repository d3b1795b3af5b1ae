"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def context_and_tensors(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[tuple[None, ...], int]:
    """Tell how the graphs of a custom function are called, by what ``autograd_function_apply`` was given.

    Args:
        args: what the forward graph takes.
        options: the operator's options.

    Returns:
        What comes before the arguments of both graphs, which was a context until PyTorch 2.9, and how many of ``args``
        get gradients: once the first few, and then all of them.
    """
    mask = options.get("args_tensor_mask")
    return ((), len(args)) if mask is None else ((None,), sum(mask))
