"""Gradients that tensors of a program keep which are no leaves, as ``retain_grad()`` asks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_tracing.derivatives._intermediates import beneath_hooks, edges
from thunder_tracing.tensors.traced_tensor import TracedTensor
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor


def retaining(calls: WriteCalls, reached: Collection[str]) -> list[TracedTensor]:
    """Return the tensors that keep their gradient of those among these values."""
    tensors = calls.leaves.retaining
    return [t for t, p in zip(tensors, edges(calls, tensors), strict=True) if p.name in reached]


def retained_gradients(
    calls: WriteCalls, results: object, tensors: Sequence[TracedTensor], cotangents: object, create_graph: bool
) -> Sequence[Any]:
    """Return the gradients of results by tensors that keep them.

    Args:
        calls: the acquisition.
        results: what is differentiated.
        tensors: by which.
        cotangents: as many as results, or ``None``.
        create_graph: whether the gradients have gradients.

    Raises:
        AcquisitionError: there are hooks, which are to be called once.
    """
    if not tensors:
        return ()
    if calls.hooks:
        raise AcquisitionError(
            "torch.autograd.grad inside of a compiled program goes through tensors that keep their gradient, and "
            "through hooks that are registered inside; register the hooks outside"
        )
    return calls.inner_gradients(results, tensors, cotangents, create_graph=create_graph, allow_unused=True)


def beneath_all_hooks(calls: WriteCalls, tensors: Sequence[TracedTensor]) -> list[TracedTensor]:
    """Return tensors whose gradients are what tensors keep, as their hooks come first."""
    values = edges(calls, tensors)
    beneath = beneath_hooks(calls.builder.bound_symbols, values, all_see=True)
    return [t if b is v else calls.wrap(b) for t, v, b in zip(tensors, values, beneath, strict=True)]


def retain(calls: WriteCalls, tensors: Sequence[TracedTensor], gradients: Sequence[Any]) -> None:
    """Add to the ``grad`` of each tensor what comes to it, as autograd does: a copy at first, then a sum."""
    for tensor, gradient in zip(tensors, gradients, strict=True):
        if gradient is None:
            continue
        before = calls.leaves.gradient(tensor)
        if before is None:
            made = calls(T.clone, (gradient,), {"memory_format": torch.contiguous_format})
        else:
            made = calls(T.add, (before, gradient), {})
        calls.leaves.set_gradient(tensor, made)
