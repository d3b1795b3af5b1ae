"""Mutation made functional: which tensors of a program share memory, and what a write to one does to the others.

Every traced tensor belongs to a storage. The storage's root holds the value of all its elements; a view knows its
parent and the call that leads from it. A write gives the root a new value; a view whose version is behind is
computed again from its parent when it is next read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from thunder_frontend.traced_tensor import TracedTensor
from thunder_ir import TensorProxy


@dataclass(slots=True, eq=False)
class Storage:
    """Memory that traced tensors share.

    Args:
        root: the tensor that covers all of it.
        version: how many writes there were.
        outside: whether the caller can see it, because its root came from outside of the program.
        recorded: whether autograd recorded a write.
        views: the views of it that were made, in order.
    """

    root: TracedTensor
    version: int = 0
    outside: bool = False
    recorded: bool = False
    views: list[TracedTensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """How a traced tensor is obtained from its parent.

    Args:
        parent: the tensor viewed.
        function: the torch function that was called.
        args, kwargs: its arguments, without the tensor viewed, which is the first positional one.
        index: which of the results it is, where there are several.
        tracked: whether autograd recorded it.
    """

    parent: TracedTensor
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    index: int | None
    tracked: bool = True

    @property
    def detaches(self) -> bool:
        """Whether autograd does not see writes to the view."""
        return not self.tracked or getattr(self.function, "__name__", "") == "detach"


Replay = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def own_storage(tensor: TracedTensor, outside: bool = False) -> None:
    """Give the tensor a storage of its own."""
    tensor._memory = Storage(tensor, 0, outside)
    tensor._seen = 0
    tensor._viewed_as = None


def share_storage(tensor: TracedTensor, view: View) -> None:
    """Make the tensor a view that shares its parent's storage."""
    tensor._viewed_as = view
    tensor._memory = view.parent._memory
    tensor._memory.views.append(tensor)
    tensor._seen = tensor._memory.version


def replace_in_storage(tensor: TracedTensor, other: TracedTensor) -> None:
    """Put ``other`` in the place of ``tensor`` as a root or a view, and as the parent of its views."""
    memory = other._memory = tensor._memory
    other._viewed_as, other._seen = tensor._viewed_as, tensor._seen
    if memory.root is tensor:
        memory.root = other
    memory.views = [other if v is tensor else v for v in memory.views]
    for view in memory.views:
        if view._viewed_as is not None and view._viewed_as.parent is tensor:
            view._viewed_as = replace(view._viewed_as, parent=other)


def current_value(tensor: TracedTensor, replay: Replay) -> TensorProxy:
    """Return the proxy of what the tensor holds now, replaying its view if its storage was written since."""
    storage = tensor._memory
    if tensor._seen == storage.version:
        return tensor._proxy
    view = tensor._viewed_as
    if view is not None:
        parent = current_value(view.parent, replay)
        with torch.set_grad_enabled(view.tracked):
            result = replay(view.function, (parent, *view.args), view.kwargs)
        tensor._proxy = result if view.index is None else result[view.index]
    tensor._seen = storage.version
    return tensor._proxy


Scatter = Callable[[View, TensorProxy, TensorProxy], TensorProxy]
Settle = Callable[[TensorProxy, TensorProxy, bool], TensorProxy]


def write(
    tensor: TracedTensor, value: TensorProxy, replay: Replay, scatter: Scatter, settle: Settle, tracked: bool
) -> None:
    """Make ``value`` what the tensor holds, in its storage and so in everything that shares it.

    Args:
        tensor: what is written to.
        value: of the tensor's shape and dtype.
        replay: calls a torch function on proxies.
        scatter: from a view, its parent's value and the view's new value to the parent's new value.
        settle: from a value that requires grad, the one written in its place that does not, and whether autograd sees
            the write, to one that does.
        tracked: whether autograd sees the write.
    """
    old = current_value(tensor, replay)
    if old.requires_grad and not value.requires_grad:
        value = settle(old, value, tracked)
    view = tensor._viewed_as
    if view is None:
        tensor._memory.version += 1
        tensor._memory.recorded |= tracked and value.requires_grad
    else:
        parent_value = scatter(view, current_value(view.parent, replay), value)
        write(view.parent, parent_value, replay, scatter, settle, tracked and not view.detaches)
        return  # what it holds is a view of what its parent holds now
    tensor._proxy = value
    tensor._seen = tensor._memory.version
