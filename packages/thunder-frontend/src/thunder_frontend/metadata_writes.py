"""In-place methods that change what a tensor is and not what it holds, such as ``t_``, ``squeeze_``, ``detach_``.

Within a program the tensor becomes a view of what it was. If the caller has the tensor, the epilogue calls the method
on it, after what the program wrote, and after views were made of what the tensor was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_frontend.program import Effect
from thunder_frontend.traced_tensor import TracedTensor

T = torch.Tensor
METADATA_WRITES = {
    T.t_: T.t, T.transpose_: T.transpose, T.squeeze_: T.squeeze, T.unsqueeze_: T.unsqueeze, T.swapaxes_: T.swapaxes,
    T.swapdims_: T.swapdims,
}  # fmt: skip
"""Methods that change the shape of their target in place, and the views that they amount to."""


@dataclass(frozen=True, slots=True, eq=False)
class MetadataWrite:
    """Calls such a method as the program did.

    Args:
        method: ``torch.Tensor.t_``, say.
        args, kwargs: what it gets besides the tensor.
        tracked: whether autograd sees it.
    """

    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tracked: bool

    @property
    def __name__(self) -> str:
        return getattr(self.method, "__name__", "method")

    def __call__(self, tensor: torch.Tensor) -> None:
        """Call the method on ``tensor``."""
        with torch.set_grad_enabled(self.tracked):
            self.method(tensor, *self.args, **self.kwargs)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A tensor of the caller's, before the program changed its metadata.

    Args:
        before: holds what the tensor held.
        target: the tensor.
        write: what is done to it.
        views: templates of views that are made of the tensor as it was.
    """

    before: TracedTensor
    target: TracedTensor
    write: MetadataWrite
    views: list[Any] = field(default_factory=list)


class Stages:
    """The changes that a program makes to the metadata of the caller's tensors, in order."""

    def __init__(self) -> None:
        self._stages: dict[int, Stage] = {}

    def add(self, before: TracedTensor, target: TracedTensor, write: MetadataWrite) -> None:
        """Note a change: of ``target``, which was like ``before``."""
        self._stages[id(before)] = Stage(before, target, write)
        for name in ("_input", "_argument"):
            if name in target.__dict__:
                setattr(before, name, target.__dict__[name])

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._stages.values())

    def was_detached(self, before: TracedTensor) -> bool:
        """Whether a tensor stands for one of the caller's before ``detach_``, which makes that a leaf."""
        stage = self._stages.get(id(before))
        return stage is not None and stage.write.method is T.detach_

    def befores(self) -> list[TracedTensor]:
        """Return what stands for the tensors as they were."""
        return [s.before for s in self._stages.values()]

    def note_view(self, parent: TracedTensor, template: Any) -> None:
        """Note the template of a view of ``parent``, in case that is a tensor as it was."""
        stage = self._stages.get(id(parent))
        if stage is not None:
            stage.views.append(template)

    def effects(self, template: Callable[[TracedTensor], Any]) -> list[Effect]:
        """Return the changes as effects; each one's value is what is to be made before it."""
        return [Effect("metadata", template(s.target), s.write, s.views) for s in self._stages.values()]


__all__ = ["METADATA_WRITES", "MetadataWrite", "Stages"]
