"""Hooks on the gradients of tensors of the outside world, where a program itself computes these gradients."""

from __future__ import annotations

from typing import Any

import torch

from thunder_frontend.tensors.traced_tensor import TracedTensor


def hooks_of(calls: Any, tensor: TracedTensor, name: str = "_backward_hooks") -> list[Any]:
    """Guard and return the hooks that somebody registered on the gradient of a tensor of the outside world.

    Args:
        calls: the acquisition.
        tensor: whose gradient.
        name: of the attribute that holds them.
    """
    if tensor.source is None or tensor.given is None:
        return []
    with torch._C.DisableTorchFunction():
        hooks = getattr(tensor.given, name, None)
    calls.world.read(tensor.source, "attribute", name, hooks)
    if hooks is None:
        return []
    calls.world.containers.keys(hooks)
    return [calls.world.containers.item(hooks, key, hook) for key, hook in hooks.items()]


def with_hooks(calls: Any, tensor: TracedTensor, gradient: Any, create_graph: bool) -> Any:
    """Return what the hooks of a tensor make of its gradient.

    Args:
        calls: the acquisition.
        tensor: whose gradient.
        gradient: the gradient; ``None`` if there is none.
        create_graph: whether the gradient has gradients.
    """
    if gradient is None:
        return None
    for hook in hooks_of(calls, tensor):
        with torch.set_grad_enabled(create_graph):
            changed = calls.interpreted(hook)(gradient)
        gradient = gradient if changed is None else changed
    return gradient


__all__ = ["hooks_of", "with_hooks"]
