"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from collections.abc import Sequence

from torch.utils._pytree import TreeSpec


def children_of(spec: TreeSpec) -> Sequence[TreeSpec]:
    """Return what a tree has directly within it, of which PyTorch 2.9 has an attribute and later ones a method."""
    return spec.children() if hasattr(spec, "children") else spec.children_specs


__all__ = ["children_of"]
