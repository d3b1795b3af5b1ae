"""External hooks where a program itself computes gradients: on these, and on what is saved for them."""

from __future__ import annotations

from typing import Any

import torch

from thunder_tracing.bailouts import EagerFallback
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.traced_tensor import TracedTensor


def hooks_of(calls: Calls, tensor: TracedTensor, name: str = "_backward_hooks") -> list[Any]:
    """Guard and return the hooks that user code registered on the gradient of an external tensor.

    Args:
        calls: the acquisition.
        tensor: whose gradient.
        name: of the attribute that holds them.
    """
    if tensor.source is None or tensor.given is None:
        return []
    with torch._C.DisableTorchFunction():
        hooks = getattr(tensor.given, name, None)
    calls.external.read(tensor.source, "attribute", name, hooks)
    if hooks is None:
        return []
    calls.external.keys(hooks)
    return [calls.external.item(hooks, key, hook) for key, hook in hooks.items()]


def with_hooks(calls: Calls, tensor: TracedTensor, gradient: object, create_graph: bool) -> Any:
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


def refuse_observed(calls: Calls) -> None:
    """Guard that nothing observes a derivative inside of a program: no hooks on what is saved for it, no anomaly mode.

    Raises:
        EagerFallback: something does. A program's own derivatives read values, and save none; NaN is no error.
    """
    if torch.is_anomaly_enabled():
        raise EagerFallback("anomaly mode is on where a program computes gradients")
    calls.external.result_of(torch.is_anomaly_enabled, (), False)
    hooks = torch._C._autograd._top_saved_tensors_default_hooks
    if hooks(True) is not None:
        raise EagerFallback("there are saved_tensors_hooks around a program that computes gradients")
    calls.external.result_of(hooks, (True,), None)
