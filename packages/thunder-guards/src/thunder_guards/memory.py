"""Where tensors lie in memory."""

from __future__ import annotations

from typing import Any

import torch

from thunder_ir import IntegerProxy
from thunder_torch.traits import Trait, state


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that covers all of a tensor's storage, in its dtype: ``[elements]``."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    return torch.as_strided(tensor.detach(), (elements,), (1,), 0)


def part_of(tensor: torch.Tensor, size: Any, stride: Any, offset: int) -> torch.Tensor:
    """Return what lies ``offset`` elements behind the first one of ``tensor``, whatever the storage of that."""
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


state(part_of, traits=(Trait.TOTAL,))


def covers(elements: int | IntegerProxy, size: Any, stride: Any, offset: int) -> bool:
    """Whether what ``part_of`` returns lies within the first ``elements`` elements."""
    if not all([type(n) is int for n in (*size, *stride)]) or 0 in size:
        return False
    last: int = offset + sum([(n - 1) * step for n, step in zip(size, stride, strict=True)])
    return offset >= 0 and bool(elements > last)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements of a tensor lie side by side in memory, each in a place of its own."""
    expected = 1
    for step, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length != 1 and step != expected:
            return tensor.numel() == 0
        expected *= length
    return True


def shows_only(tensor: torch.Tensor, size: Any, stride: Any, start: int) -> bool:
    """Whether all that a view by strides shows, from ``start`` in the storage on, are elements of ``tensor``."""
    offset = start - int(tensor.storage_offset())
    if 0 in size or is_dense(tensor):
        return 0 in size or covers(tensor.numel(), size, stride, offset)
    span = 1 + sum([(n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True)])
    if not covers(span, size, stride, offset):
        return False
    places, held = torch.arange(span), torch.zeros(span, dtype=torch.bool)
    held[places.as_strided(tuple(tensor.shape), tensor.stride()).reshape(-1)] = True
    return bool(held[places.as_strided(tuple(size), tuple(stride), offset).reshape(-1)].all())


def place_in_storage(tensor: torch.Tensor) -> tuple[int, int]:
    """Return where a tensor starts in its storage, in elements, and how large the storage is, in bytes."""
    return int(tensor.storage_offset()), tensor.untyped_storage().nbytes()


def span_in_storage(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of a tensor's elements in its storage, and the one behind the last."""
    start = int(tensor.storage_offset())
    steps = [(n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True)]
    end = start + 1 + int(sum(steps)) if tensor.numel() else start
    return start * tensor.element_size(), end * tensor.element_size()


def check_in_bounds(tensor: torch.Tensor, size: Any, stride: Any, storage_offset: int | None, there: int) -> None:
    """Refuse, as PyTorch does, arguments of ``as_strided`` that reach beyond its memory of ``there`` bytes."""
    if 0 in size or not (all(s > 0 for s in size) and all(s >= 0 for s in stride)):
        return
    offset = tensor.storage_offset() if storage_offset is None else storage_offset
    last = offset + sum([(n - 1) * step for n, step in zip(size, stride, strict=False)])
    needed = (last + 1) * tensor.element_size()
    if needed > there:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} require a storage size "
            f"of {needed} bytes and are out of bounds for storage of size {there}"
        )
