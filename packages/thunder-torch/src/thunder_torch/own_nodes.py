"""Nodes in autograd's graph of which a tensor is the only result.

PyTorch mistakes the place of a tensor among the results of its node for its place among those of the node that a write
in place gives it, where it has to move the gradient that the tensor keeps (``retain_grad()``): it raises an internal
error, or reads beyond its memory. Eager's operations hardly ever have several results; a program often has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

_LIFT = torch.ops.aten.lift.default  # the identity; autograd records it on the very tensor, unless that is complex


class Identity(torch.autograd.Function):
    """The same for complex tensors."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor) -> torch.Tensor:
        context.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(context: Any, cotangent: Any) -> Any:
        return cotangent


_IDENTITY: Callable[..., Any] = Identity.apply


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
        if result._is_view() or not result.requires_grad:
            continue
        if result.is_complex():
            with _unsafe_preserve_version_counter(result):
                _IDENTITY(result)
        else:
            _LIFT(result)


def _node_types() -> tuple[type, type]:
    with torch.inference_mode(False), torch.enable_grad():
        tensor = torch.zeros((), device="cpu", requires_grad=True).clone()
        return type(_LIFT(tensor).grad_fn), Identity._backward_cls


_NODES = _node_types()


def has_own_node(node: Any) -> bool:
    """Whether a node is one that :func:`give_own_node` makes."""
    return type(node) in _NODES
