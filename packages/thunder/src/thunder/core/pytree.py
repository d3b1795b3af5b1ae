"""Re-exports :mod:`thunder_ir.trees`."""

from collections.abc import Iterable
from typing import Any

from thunder_ir.trees import *  # noqa: F403
from thunder_ir.trees import flatten, unflatten

tree_flatten = flatten


def tree_unflatten(leaves: Iterable[Any], structure: Any) -> Any:
    """Return what :func:`tree_flatten` took apart, made of other leaves."""
    return unflatten(structure, leaves)
