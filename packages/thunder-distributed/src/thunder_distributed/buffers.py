"""Memory of buckets that outlives a step: taken again by the next one, as long as nothing else has it."""

from __future__ import annotations

import weakref
from collections.abc import Hashable

import torch

from thunder_ir import Context, register_literal

ITS_OWN = 2
"""Users of a storage that nothing else has: the tensor that is kept, and the storage as Python has it, who asks."""


class Buffer:
    """Memory for a bucket. The system clears fresh memory page by page, which takes longer than filling it.

    Gradients are views of it, and a step that clears them lets go of it. If they are kept, the next step gets other
    memory, and that is kept from then on.

    Example:
        >>> import torch
        >>> buffer = Buffer()
        >>> first = buffer.take(4, torch.float32, "cpu")
        >>> address = first.data_ptr()
        >>> buffer.take(4, torch.float32, "cpu").data_ptr() == address  # the first one is still there
        False
        >>> address = buffer.take(4, torch.float32, "cpu").data_ptr()  # nobody has this one any more
        >>> buffer.take(4, torch.float32, "cpu").data_ptr() == address
        True
    """

    __slots__ = ("__weakref__", "_kept")

    def __init__(self) -> None:
        self._kept: list[torch.Tensor] = []

    def take(self, count: int, dtype: torch.dtype, device: torch.device | str) -> torch.Tensor:
        """Return ``count`` elements of memory that is not initialised."""
        try:
            kept = self._kept.pop()  # at once, so that of two threads only one has it
        except IndexError:
            kept = None
        if kept is None or not _has_no_other_user(kept):
            kept = torch.empty(count, dtype=dtype, device=device)
        taken = kept.view(count)
        if not self._kept:
            self._kept.append(kept)
        return taken


def _has_no_other_user(kept: torch.Tensor) -> bool:
    storage = kept.untyped_storage()  # held while it is asked: PyTorch 2.9 counts it no longer than that
    return torch._C._storage_Use_Count(storage._cdata) <= ITS_OWN


def _printed(buffer: Buffer, context: Context) -> str:
    return context.object(buffer, "buffer")


register_literal(Buffer, _printed)


class Buffers:
    """The buffers of an axis. Programs that send the same have the same, which ends with the last of them."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: weakref.WeakValueDictionary[Hashable, Buffer] = weakref.WeakValueDictionary()

    def of(self, what: Hashable) -> Buffer:
        """Return the buffer of a bucket: of one size, dtype, device, and place among the buckets of a program."""
        buffer = self._buffers.get(what)
        if buffer is None:
            buffer = self._buffers[what] = Buffer()
        return buffer


__all__ = ["Buffer", "Buffers"]
