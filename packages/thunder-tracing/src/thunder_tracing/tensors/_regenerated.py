"""Tensors that the epilogue makes of others: views of what the caller has, with the history and attributes they had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from thunder_ir import substitute
from thunder_tracing.tensors.storage import ViewStep


class WithHistory(torch.autograd.Function):
    """A tensor with the memory of one and the history of another; for autograd a view of the one, if that is said."""

    @staticmethod
    def forward(context: object, view: torch.Tensor, value: torch.Tensor, stays: bool) -> torch.Tensor:
        return view[...] if stays else view.detach()

    @staticmethod
    def backward(context: object, cotangent: torch.Tensor) -> Any:
        return None, cotangent, None


def with_history(view: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return a view that shares memory with others and has a history of its own: that of ``value``, its equal."""
    with torch.enable_grad():
        return WithHistory.apply(view.detach(), value, False)  # type: ignore[no-any-return, no-untyped-call]


def view_with_history(view: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the same, which autograd takes for a view, as it takes those that custom functions return."""
    with torch.enable_grad():
        return WithHistory.apply(view, value, True)  # type: ignore[no-any-return, no-untyped-call]


class WithoutGraph(torch.autograd.Function):
    """A tensor that requires grad, and has no gradient."""

    @staticmethod
    def forward(context: Any, reason: str, value: torch.Tensor, *sources: torch.Tensor) -> torch.Tensor:
        context.reason = reason
        return value.detach()

    @staticmethod
    @once_differentiable
    def backward(context: Any, cotangent: torch.Tensor) -> Any:
        raise RuntimeError(context.reason)


@dataclass(frozen=True, slots=True)
class NoGraph:
    """Makes a tensor of the same memory that requires grad, and whose gradient cannot be asked for.

    Args:
        reason: what is raised where user code does.
    """

    reason: str
    __name__ = "without_graph"

    def __call__(self, value: torch.Tensor, *sources: torch.Tensor) -> torch.Tensor:
        """Return the other tensor.

        Args:
            value: the tensor.
            sources: what the graph led to; who asks for their gradients is told, too.
        """
        with torch.enable_grad():
            anchor = torch.empty(0, requires_grad=True)
            return WithoutGraph.apply(self.reason, value.detach(), anchor, *sources)  # type: ignore[no-any-return, no-untyped-call]


def copied_with_history(tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return a tensor that holds ``value`` now, and has its history."""
    with torch.enable_grad():
        return tensor.copy_(value)


def with_gradient(tensor: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Return a tensor, with the ``grad`` that the program gave it."""
    tensor.grad = gradient
    return tensor


def with_contents(tensor: torch.Tensor, contents: torch.Tensor) -> torch.Tensor:
    """Return a tensor that holds something else now, of which autograd does not know."""
    tensor.data = contents  # what autograd has saved keeps its memory
    return tensor


def with_hooks(tensor: torch.Tensor, hooks: tuple[Callable[..., Any], ...]) -> torch.Tensor:
    """Return a tensor, with hooks on the gradients that come to it."""
    for hook in hooks:
        tensor.register_hook(hook)  # type: ignore[no-untyped-call]
    return tensor


def with_retained_gradient(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that keeps the gradients that come to it."""
    tensor.retain_grad()
    return tensor


def with_attributes(tensor: torch.Tensor, attributes: dict[str, Any]) -> torch.Tensor:
    """Return a tensor, with the attributes that the program gave it."""
    tensor.__dict__.update(attributes)
    return tensor


def in_inference_mode(tensor: torch.Tensor, inference: bool) -> torch.Tensor:
    """Return a tensor of the same memory as if it had been made in inference mode, or outside of it."""
    with torch.inference_mode(inference):
        if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
            return tensor.clone()
        place = (tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
        return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(*place)


@dataclass(frozen=True, slots=True, eq=False)
class RegeneratedView:
    """Makes a view of a tensor as the program did.

    Args:
        step: from the tensor to the view.
        tracked: whether autograd records it.
        given: the proxies among the arguments, in order; their values are passed after the tensor.
    """

    step: ViewStep
    tracked: bool
    given: tuple[Any, ...] = ()

    @property
    def __name__(self) -> str:
        return f"view_by_{getattr(self.step.function, '__name__', 'call').strip('_')}"

    def __call__(self, tensor: torch.Tensor, *values: Any) -> Any:
        """Return the view."""
        step = self.step
        if self.given:
            known = dict(zip([p.name for p in self.given], values, strict=True))
            step = replace(step, args=substitute(step.args, known), kwargs=substitute(step.kwargs, known))
        with torch.set_grad_enabled(self.tracked):
            return step(tensor)
