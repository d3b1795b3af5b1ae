"""What a call saved, tensor by tensor: user code may have written to some of it that a derivative does not read.

PyTorch hands out what a node saved as a whole, and refuses where any of it was written to since. Eager's operations
have a node each, and those of results that nothing uses do not run.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from operator import attrgetter
from typing import Any

from torch import Tensor

_VERSION = attrgetter("_version")


class SavedApart:
    """The tensors that a call saved, each checked where it is read, as PyTorch checks all of them.

    Args:
        context: of the call. What it saved passes through hooks from then on, which check it in the same way.
        versions: how often each was written to when it was saved.

    Raises:
        RuntimeError: it is freed, or passes through hooks of another's.
    """

    def __init__(self, context: Any, versions: Sequence[int | None]) -> None:
        self._versions = versions
        self._tensors: list[Tensor] = []
        for i, saved in enumerate(context._raw_saved_tensors):
            saved.register_hooks(self._tensors.append, lambda _, i=i: self._checked(i))

    def values(self, reads: Container[int]) -> list[Tensor | None]:
        """Return those that are read, and ``None`` in the places of the others.

        Raises:
            RuntimeError: one of those that are read was written to since.
        """
        return [self._checked(i) if i in reads else None for i in range(len(self._tensors))]

    def _checked(self, i: int) -> Tensor:
        check_unchanged(f"value {i} that a compiled function saved", self._tensors[i], self._versions[i])
        return self._tensors[i]


def check_unchanged(what: str, tensor: Tensor, version: int | None) -> None:
    """Raise what PyTorch raises if a tensor was written to.

    Args:
        what: it is, for the error.
        tensor: what a derivative reads.
        version: how often it was written to before; ``None`` where that is not counted.

    Raises:
        RuntimeError: it was written to since.
    """
    if version is not None and tensor._version != version:
        raise RuntimeError(
            f"one of the variables needed for gradient computation has been modified by an inplace operation: {what}, "
            f"of shape {list(tensor.shape)}, is at version {tensor._version}; expected version {version} instead"
        )


def versions_of(tensors: Sequence[Tensor]) -> list[int | None]:
    """Return how often each tensor was written to; ``None`` for those of inference mode, where that is not counted."""
    try:
        return list(map(_VERSION, tensors))
    except RuntimeError:
        return [None if t.is_inference() else t._version for t in tensors]
