"""Nodes in autograd's graph of which a tensor is the only result.

PyTorch mistakes the place of a tensor among the results of its node for its place among those of the node that a write
in place gives it, where it has to move the gradient that the tensor keeps (``retain_grad()``): it raises an internal
error, or reads beyond its memory. Eager's operations hardly ever have several results; a program often has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

_LIFT = torch.ops.aten.lift.default  # the identity; autograd records it on the very tensor


def give_own_node(results: Sequence[Any], places: Iterable[int]) -> None:
    """Give results of a node that require grad nodes of their own, above that, with the same gradients.

    Args:
        results: of a node.
        places: of those that are to have one. Views keep theirs.

    Example:
        >>> import torch
        >>> from thunder_torch.own_nodes import give_own_node
        >>> q, r = torch.linalg.qr(torch.eye(2, requires_grad=True))
        >>> give_own_node((q, r), [1])
        >>> q.output_nr, r.output_nr, r.grad_fn.next_functions[0][1]
        (0, 0, 1)
    """
    for i in places:
        result = results[i]
        if not result._is_view():
            _LIFT(result)


def _node_type() -> type:
    with torch.inference_mode(False), torch.enable_grad():
        tensor = torch.zeros((), device="cpu", requires_grad=True).clone()
        return type(_LIFT(tensor).grad_fn)


_NODE = _node_type()


def has_own_node(node: Any) -> bool:
    """Whether a node is one that :func:`give_own_node` makes."""
    return type(node) is _NODE


__all__ = ["give_own_node", "has_own_node"]
