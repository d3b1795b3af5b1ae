"""Mutation made functional: which tensors of a program share memory, and what a write to one does to the others.

Every traced tensor belongs to a storage. The storage's root holds the value of all its elements; a view knows its
parent and the call that leads from it. A write gives the root a new value; a view whose version is behind is
computed again from its parent when it is next read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from thunder_guards.program import UnseenWrites
from thunder_ir import TensorProxy, flat_proxies
from thunder_tracing.tensors.traced_tensor import Storage, TracedTensor, Versions


@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """One step from a tensor to a view of it.

    Args:
        function: the torch function that is called.
        args, kwargs: what it gets besides the tensor, which is its first argument.
        index: which of its results is meant, where there are several.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    index: int | None

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the view of a tensor."""
        made = self.function(tensor, *self.args, **self.kwargs)
        return made if self.index is None else made[self.index]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """How a traced tensor is obtained from its parent.

    Args:
        parent: the tensor viewed.
        function, args, kwargs, index: see :class:`ViewStep`.
        tracked: whether autograd recorded it.
        in_place: whether the parent is what the tensor itself was, before its metadata were changed.
        apart: whether the view has a history of its own in autograd, whatever the function.
        fixed: why autograd cannot write the history of the view again, if that is for how it came about.
        uncounted: whether it counts versions of its own, as what ``.data`` returns does.
    """

    parent: TracedTensor
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    index: int | None
    tracked: bool = True
    in_place: bool = False
    apart: bool = False
    uncounted: bool = False
    fixed: str | None = None

    @property
    def step(self) -> ViewStep:
        """The step from the parent."""
        return ViewStep(self.function, self.args, self.kwargs, self.index)

    @property
    def detaches(self) -> bool:
        """Whether autograd does not see writes to the view."""
        return not self.tracked or self.cuts

    @property
    def cuts(self) -> bool:
        """Whether the view has a history of its own in autograd."""
        is_detach = getattr(self.function, "__name__", "") == "detach"
        return self.apart or is_detach or not self.parent._proxy.dtype.is_inexact


def own_storage(tensor: TracedTensor, given: torch.Tensor | None = None) -> None:
    """Give the tensor a storage of its own; that of ``given``, if it stands for an external tensor."""
    inference = torch.is_inference_mode_enabled() if given is None else given.is_inference()
    tensor._memory = Storage(tensor, outside=given is not None, inference=inference)
    tensor._versions = Versions()
    tensor._seen = tensor._made = 0
    tensor._viewed_as = None


def is_out_of_reach(tensor: TracedTensor) -> bool:
    """Whether a tensor must not be changed here: it was allocated in inference mode, and this is none.

    What ``.data`` returns counts versions of its own, and so may be.
    """
    view: View | None = tensor._viewed_as
    while view is not None and not view.uncounted:
        view = view.parent._viewed_as
    return tensor._memory.inference and view is None and not torch.is_inference_mode_enabled()


def share_storage(tensor: TracedTensor, view: View) -> None:
    """Make the tensor a view that shares its parent's storage."""
    if view.parent._proxy.dtype.is_inexact and not tensor._proxy.dtype.is_inexact:
        view = replace(view, apart=True)  # integers have no history
    tensor._viewed_as = view
    tensor._memory = view.parent._memory
    tensor._memory.views.append(tensor)
    tensor._versions = Versions() if view.uncounted else view.parent._versions
    tensor._seen, tensor._made = tensor._memory.version, tensor._versions.count


def count_apart(tensor: TracedTensor) -> None:
    """Give a view a version counter of its own, which does not count what was and is written to what it views."""
    tensor._viewed_as = replace(tensor._viewed_as, uncounted=True)
    tensor._versions, tensor._made = Versions(), 0


def count_metadata_write(tensor: TracedTensor) -> None:
    """Count a write that makes a tensor another view, whose history is that of now."""
    tensor._versions.count += 1
    tensor._made = tensor._versions.count


def replace_in_storage(tensor: TracedTensor, other: TracedTensor) -> None:
    """Put ``other`` in the place of ``tensor`` as a root or a view, and as the parent of its views."""
    memory = other._memory = tensor._memory
    other._viewed_as, other._versions = tensor._viewed_as, tensor._versions
    other._seen, other._made = tensor._seen, tensor._made
    if memory.root is tensor:
        memory.root = other
    memory.views = [other if v is tensor else v for v in memory.views]
    for view in memory.views:
        if view._viewed_as is not None and view._viewed_as.parent is tensor:
            view._viewed_as = replace(view._viewed_as, parent=other)


class Recorder(Protocol):
    """What records the calls that views and writes amount to.

    ``unseen`` tells what was written behind autograd's back.
    """

    unseen: UnseenWrites

    def on_values(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a call of a torch function on proxies."""

    def scatter(self, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
        """Return the parent's value after ``value`` was written to its view."""

    def overwritten(self, old: TensorProxy, new: TensorProxy, tracked: bool) -> TensorProxy:
        """Return what a tensor that requires grad holds after ``new``, which does not, was written to it."""

    def is_forgotten(self, tensor: TracedTensor) -> bool:
        """Whether autograd, which writes the history of a view again, finds none of what it views."""

    def unconnected(self, value: TensorProxy) -> TensorProxy:
        """Return ``value`` such that it requires grad, and its gradient goes nowhere."""


def place_is_known(tensor: TracedTensor) -> bool:
    """Whether it is known before the program runs where in its storage a tensor lies."""
    view: View | None = tensor._viewed_as
    while view is not None:
        if flat_proxies((view.args, view.kwargs)):
            return False
        view = view.parent._viewed_as
    return True


def current_value(tensor: TracedTensor, recorder: Recorder) -> TensorProxy:
    """Return the proxy of what the tensor holds now, making its view again if its storage was written since."""
    storage = tensor._memory
    if tensor._seen == storage.version:
        return tensor._proxy
    view = tensor._viewed_as
    if view is not None:
        parent = current_value(view.parent, recorder)
        with torch.set_grad_enabled(view.tracked):
            result = recorder.on_values(view.function, (parent, *view.args), view.kwargs)
        now = result if view.index is None else result[view.index]
        apart = view.detaches or tensor._leaf is not None
        if apart and tensor._proxy.requires_grad and not now.requires_grad:  # it has a history of its own
            now = recorder.overwritten(tensor._proxy, now, False)
        elif not apart and now.requires_grad and recorder.is_forgotten(tensor):
            now = recorder.unconnected(now)
        tensor._proxy = now
    tensor._seen = storage.version
    return tensor._proxy


def write(tensor: TracedTensor, value: TensorProxy, recorder: Recorder, tracked: bool) -> None:
    """Make ``value`` what the tensor holds, in its storage and so in everything that shares it.

    Args:
        tensor: what is written to.
        value: of the tensor's shape and dtype.
        recorder: records what that amounts to.
        tracked: whether autograd sees the write.
    """
    tensor._versions.count += 1
    _write(tensor, value, recorder, tracked, tensor._versions)


def _write(tensor: TracedTensor, value: TensorProxy, recorder: Recorder, tracked: bool, counted_by: Versions) -> None:
    old = current_value(tensor, recorder)
    if old.requires_grad and not value.requires_grad:
        value = recorder.overwritten(old, value, tracked)
    view = tensor._viewed_as
    if view is None or view.cuts:
        tensor._recorded |= tracked and value.requires_grad
    if view is None:
        if counted_by is not tensor._versions:
            recorder.unseen.memory.update([t._proxy.name for t in (tensor, *tensor._memory.views)])
        tensor._memory.version += 1
    else:
        detached = (view.detaches or tensor._leaf is not None) and value.requires_grad
        written = recorder.on_values(torch.Tensor.detach, (value,), {}) if detached else value
        parent = recorder.scatter(view, current_value(view.parent, recorder), written)
        _write(view.parent, parent, recorder, tracked and not view.detaches, counted_by)
        if not detached:
            return  # what it holds is a view of what its parent holds now
    tensor._proxy = value
    tensor._seen = tensor._memory.version
