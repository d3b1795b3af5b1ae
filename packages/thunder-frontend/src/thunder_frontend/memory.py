"""Where tensors lie in memory."""

from __future__ import annotations

import torch


def storage_key(tensor: torch.Tensor) -> int:
    """Return what tells storages apart while they live."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that covers all of a tensor's storage, in its dtype: ``[elements]``."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    return torch.as_strided(tensor, (elements,), (1,), 0)


def place_in_storage(tensor: torch.Tensor) -> tuple[int, int]:
    """Return where a tensor starts in its storage, in elements, and how large the storage is, in bytes."""
    return tensor.storage_offset(), tensor.untyped_storage().nbytes()
