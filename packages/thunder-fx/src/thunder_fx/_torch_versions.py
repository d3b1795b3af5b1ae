"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils._pytree import TreeSpec


def children_of(spec: TreeSpec) -> Sequence[TreeSpec]:
    """Return what a tree has directly within it, of which PyTorch 2.9 has an attribute and later ones a method."""
    return spec.children() if hasattr(spec, "children") else spec.children_specs


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


__all__ = ["children_of", "context_and_tensors"]
