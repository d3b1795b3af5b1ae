"""What changes a tensor and not what it holds: ``t_``, ``squeeze_``, ``detach_``, ``requires_grad_``, ``x.data = y``.

Within a program the tensor becomes a view of what it was, or of what it got the memory of. If the caller has the
tensor, the epilogue makes the change, after what the program wrote, and after views were made of what the tensor was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_guards.program import Effect
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


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
        tensor.grad_fn  # noqa: B018 - a view finds out that its base has a history
        inference = torch.is_inference_mode_enabled() or tensor.is_inference()
        with torch.inference_mode(inference), torch.set_grad_enabled(self.tracked):
            self.method(tensor, *self.args, **self.kwargs)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A tensor of the caller's, before the program changed it.

    Args:
        before: holds what the tensor held.
        target: the tensor.
        change: the method that is called on it, or the tensor whose memory it gets.
        views: templates of views that are made of the tensor as it was.
    """

    before: TracedTensor
    target: TracedTensor
    change: MetadataWrite | TracedTensor
    views: list[Any] = field(default_factory=list)


class Stages:
    """The changes that a program makes to the caller's tensors themselves, in order."""

    def __init__(self) -> None:
        self._stages: dict[int, Stage] = {}

    def add(self, before: TracedTensor, target: TracedTensor, change: MetadataWrite | TracedTensor) -> None:
        """Note a change: of ``target``, which was like ``before``."""
        self._stages[id(before)] = Stage(before, target, change)
        for name in ("_input", "_argument", "_given"):
            if name in target.__dict__:
                setattr(before, name, target.__dict__[name])

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._stages.values())

    def was_detached(self, before: TracedTensor) -> bool:
        """Whether a tensor stands for one of the caller's before ``detach_``, which makes that a leaf."""
        stage = self._stages.get(id(before))
        return stage is not None and isinstance(stage.change, MetadataWrite) and stage.change.method is T.detach_

    def befores(self) -> list[TracedTensor]:
        """Return what stands for the tensors as they were."""
        return [s.before for s in self._stages.values()]

    def note_view(self, view: TracedTensor, template: object) -> None:
        """Note the template of a view, in case it is one of a tensor as it was, or of views of that."""
        seen = view._viewed_as
        while seen is not None:
            stage = self._stages.get(id(seen.parent))
            if stage is not None:
                stage.views.append(template)
                return
            seen = seen.parent._viewed_as
            if seen is not None and (seen.in_place or seen.cuts):
                return

    def effects(
        self, template: Callable[[TracedTensor], Any], history: Callable[[TracedTensor], list[Effect]]
    ) -> list[Effect]:
        """Return the changes as effects, the value of each with what is to be made before it.

        Args:
            template: of a tensor.
            history: returns what gives a tensor the history that it has before a change.
        """
        made = []
        for stage in self._stages.values():
            made += history(stage.before)
            target = template(stage.target)
            if isinstance(stage.change, MetadataWrite):
                made.append(Effect("metadata", target, stage.change, stage.views))
            else:
                made.append(Effect("memory", target, None, (template(stage.change), stage.views)))
        return made
